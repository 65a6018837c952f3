/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_INTERPRETER_FILE_H
#define TARGET_INTERPRETER_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "target/c_library.h"
#include "target/debug_offsets.h"
#include "target/elf.h"
#include "target/maps.h"
#include "target/proc.h"

/* What a file that holds an interpreter says of it. */

#define INTERPRETER_MESSAGE_BYTES 192
#define RUNTIME_CACHE_FILES 8192 /* then all is forgotten; 0.8 MB, and 0.4 KB for each Python */

/* Where a file is read from. */
struct file_source {
	const char *path; /* if no process maps it */
	pid_t pid;
	const struct mapping *m; /* of pid; NULL: none */
};

/* What the file says. */
struct interpreter_file {
	uint64_t text_offset; /* of the executable segment */
	uint64_t text_last;   /* an offset behind all that its executable mappings can have */
	int64_t text_to_runtime;
	uint32_t version;
	uint8_t head[DEBUG_OFFSETS_HEAD]; /* of its _Py_DebugOffsets; zeros before 3.13 */
	bool is_from_memory;              /* the version is what a process says, not the file */
	int error;                        /* 0, or why it cannot be used */
	char message[INTERPRETER_MESSAGE_BYTES];
	char build[ELF_BUILD_TEXT_BYTES]; /* build ID, hexadecimal; "": it has none */
	struct py_offsets offsets;
};

/* What is known of files, by (device, inode, size, mtime). Not thread-safe. */
struct runtime_cache;

int runtime_cache_new(struct runtime_cache **out);
void runtime_cache_free(struct runtime_cache *cache);
DEFINE_CLEANUP(struct runtime_cache *, runtime_cache_free)

/* How many files had to be read so far. */
uint64_t runtime_cache_misses(const struct runtime_cache *cache);

/*
 * Of a file, which is read if it is not known. is_static: search .symtab too, not only the dynamic
 * symbols. 0 and *out, borrowed until the next call; NULL: no Python. An error, mostly with a
 * message, is this process's and not the file's: as runtime_find() has them, and those of open().
 */
int interpreter_file_find(struct runtime_cache *cache, const struct file_source *from,
			  bool is_static, const struct interpreter_file **out);

/*
 * The C library in a file, which must be one that interpreter_file_find() takes. is_program: as for
 * c_library_read(), and errors as of that; those of open(), too.
 */
int interpreter_file_c_library(struct runtime_cache *cache, const struct file_source *from,
			       bool is_program, struct c_library *out);

int file_source_id(const struct file_source *from, struct file_id *id);

/* -EBADMSG: two sources say different versions, PY_VERSION_HEX. */
int interpreter_versions_disagree(uint32_t a, const char *a_source, uint32_t b,
				  const char *b_source);

#endif
