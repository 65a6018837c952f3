/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What linetable_oracle.py calls inside each interpreter: one call for each code object. */
#include <stdlib.h>
#include <string.h>

#include "symbolize/linetable.h"

#define SCAN_BYTES_MAX (64u << 20) /* linetable_line() reads the table anew each time */
#define PIECE_BYTES 61             /* odd, so that it cuts entries everywhere */

uint32_t linetable_oracle_compare(int format, const uint8_t *table, size_t len, int first,
				  uint32_t count, const uint32_t *instrs, const int32_t *want,
				  uint32_t *bad_index, int32_t *bad_line);

/*
 * Asks for count instructions in three ways: from the table, from all of it decoded, from it
 * decoded piece by piece. Returns how many answers differ from want; the first of them is
 * *bad_line, for instrs[*bad_index].
 */
uint32_t linetable_oracle_compare(int format, const uint8_t *table, size_t len, int first,
				  uint32_t count, const uint32_t *instrs, const int32_t *want,
				  uint32_t *bad_index, int32_t *bad_line)
{
	uint32_t stride = 1 + (uint32_t)((uint64_t)len * count / SCAN_BYTES_MAX);
	struct lines whole, pieces;
	uint32_t bad = 0;

	lines_init(&whole, (enum lines_format)format, first);
	lines_init(&pieces, (enum lines_format)format, first);
	lines_extend(&whole, table, len, len);
	for (size_t known = 0; known < len; known += PIECE_BYTES) {
		uint8_t *prefix = malloc(known ? known : 1); /* nothing behind it */

		if (!prefix)
			abort();
		memcpy(prefix, table, known);
		lines_extend(&pieces, prefix, known, len);
		free(prefix);
	}
	lines_extend(&pieces, table, len, len);

	for (uint32_t i = 0; i < count; i++) {
		int32_t got[3] = { want[i], lines_find(&whole, instrs[i]),
				   lines_find(&pieces, instrs[i]) };

		if (i % stride == 0)
			got[0] = linetable_line((enum lines_format)format, table, len, first,
						instrs[i]);
		for (int way = 0; way < 3; way++) {
			if (got[way] == want[i])
				continue;
			if (!bad++) {
				*bad_index = i;
				*bad_line = got[way];
			}
		}
	}
	lines_release(&whole);
	lines_release(&pieces);
	return bad;
}

/* The same of positions: four numbers an instruction in want, in the order of struct code_position,
 * -1 where there is none. */
uint32_t linetable_oracle_positions(const uint8_t *table, size_t len, int first, uint32_t count,
				    const int32_t *want, uint32_t *bad_index, int32_t bad[4]);

uint32_t linetable_oracle_positions(const uint8_t *table, size_t len, int first, uint32_t count,
				    const int32_t *want, uint32_t *bad_index, int32_t bad[4])
{
	uint32_t stride = 1 + (uint32_t)((uint64_t)len * count / SCAN_BYTES_MAX), found = 0;

	for (uint32_t i = 0; i < count; i += stride) {
		struct code_position p;
		int32_t got[4];

		if (linetable_position(LINES_LOCATIONS, table, len, first, 2 * i, &p) < 0)
			abort();
		memcpy(got,
		       (int32_t[]){ p.line ? p.line : -1, p.line ? p.end_line : -1, p.column,
				    p.end_column },
		       sizeof(got));
		if (memcmp(got, want + 4 * (size_t)i, sizeof(got)) && !found++) {
			*bad_index = i;
			memcpy(bad, got, sizeof(got));
		}
	}
	return found;
}
