/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_CODES_H
#define INSPECT_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "inspect/walker.h"
#include "symbolize/linetable.h"

/*
 * The code objects of one process: names and line tables, by identity. They stay until the end, as
 * a process has no more of them on its stacks than it has frames.
 */
struct inspect_codes;

struct inspect_code {
	uint64_t identity;
	const char *name, *file; /* UTF-8, NUL behind; CODE_UNKNOWN: could not be read */
	size_t name_len, file_len;
	int first_line; /* >= 1 */
	const uint8_t *lines;
	size_t lines_len;
	bool has_lines; /* the table was read */
};

int codes_new(struct inspect_codes **out);
void codes_free(struct inspect_codes *c);
DEFINE_CLEANUP(struct inspect_codes *, codes_free)

/*
 * The code object at an address, read if it is not known. Borrowed, valid until codes_free() or
 * codes_forget(). -EFAULT: it cannot be read, -ENOMEM.
 */
int codes_get(struct inspect_codes *c, struct walker *w, const struct walk_process *p,
	      uint64_t identity, uint64_t code, const struct inspect_code **out);

/* The same, of a thread that has gone on: -EFAULT also if another object is at the address by now.
 */
int codes_get_late(struct inspect_codes *c, struct walker *w, const struct walk_process *p,
		   uint64_t identity, uint64_t code, const struct inspect_code **out);

/* How many there are; and as if those that came since had not been asked for: they may be torn. */
size_t codes_count(const struct inspect_codes *c);
void codes_forget(struct inspect_codes *c, size_t count);

/*
 * The place of an instruction. An instruction without a line is on that of the def; line and
 * end_line are 0 where the table could not be read, or not up to there.
 */
struct code_position code_position(const struct inspect_code *code, enum lines_format format,
				   uint32_t instr);

#endif
