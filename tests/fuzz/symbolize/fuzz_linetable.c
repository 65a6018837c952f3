/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A format, a first line, an instruction, a length of the first piece; the rest is the table. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/linetable.h"

#define HEAD 11

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int find(enum lines_format format, const uint8_t *table, size_t len, size_t cut, int first,
		uint32_t instr)
{
	struct lines l;
	int line;

	lines_init(&l, format, first);
	if (cut < len) {
		uint8_t *prefix = malloc(cut ? cut : 1);

		if (!prefix)
			abort();
		memcpy(prefix, table, cut);
		lines_extend(&l, prefix, cut, len);
		free(prefix);
	}
	lines_extend(&l, table, len, len);
	if (l.state == LINES_PARTIAL || lines_bytes(&l) > 8 * (len + 1))
		abort();
	line = lines_find(&l, instr);
	lines_release(&l);
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	enum lines_format format;
	uint32_t instr;
	uint16_t cut;
	int32_t first;
	struct code_position at;
	int line;

	if (len < HEAD)
		return 0;
	format = bytes[0] % 3;
	memcpy(&first, bytes + 1, sizeof(first));
	memcpy(&instr, bytes + 5, sizeof(instr));
	memcpy(&cut, bytes + 9, sizeof(cut));
	bytes += HEAD;
	len -= HEAD;

	line = linetable_line(format, bytes, len, first, instr);
	if (find(format, bytes, len, len, first, instr) != line ||
	    find(format, bytes, len, cut, first, instr) != line)
		abort();
	if (linetable_position(format, bytes, len, first, instr, &at) != line ||
	    (line >= 0 && at.line != line) || at.column < -1 || at.end_column < -1 ||
	    at.end_line < 0)
		abort();
	return 0;
}
