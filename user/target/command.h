/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_COMMAND_H
#define TARGET_COMMAND_H

/* What a command is going to run, judged by files before it begins. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/runtime.h"

/* The file that execvp() runs for this name. -ENOENT, -EACCES; without a message. */
int command_find(const char *name, char path[PATH_MAX]);

/*
 * What the first line of a script is run by, as for command_find(), past env(1): in text, which is
 * changed. NULL: it is no script, or names nothing.
 */
const char *command_of_script(char *text);

/* A Python that a program is going to have. */
struct command_runtime {
	struct py_runtime runtime; /* as of runtime_read_file() */
	bool is_library;
	uint64_t inode, dev; /* of the program, as runtime.text_inode and text_dev */
	/* From mm_struct.start_code to _PyRuntime; in a library, to a pointer into that. 0: none.
	 */
	int64_t from_start;
};

/*
 * The Python of the program that execvp() runs for this name in the end: of a script that is what
 * its first line names. A library is looked for where it mostly is, so that nothing found means
 * little. -ENOENT: nothing found, or one that says its version at run time only (3.10 and before).
 */
int command_find_runtime(struct runtime_cache *cache, const char *name,
			 struct command_runtime *out);

#endif
