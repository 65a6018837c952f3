/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Columns, whether the expression ends on another line; the rest is the line of source. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/carets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct code_position at = { .line = 1, .end_line = 1 };
	struct carets c;
	char *line;

	if (len < 3)
		return 0;
	at.column = (int8_t)bytes[0];
	at.end_column = (int8_t)bytes[1];
	at.end_line += bytes[2] & 1;
	len -= 3;
	line = malloc(len ? len : 1); /* nothing behind it */
	if (!line)
		abort();
	memcpy(line, bytes + 3, len);
	if (carets_find(line, len, &at, &c) &&
	    (c.start >= c.end || c.end > len || c.hot_start < c.start || c.hot_start >= c.hot_end ||
	     c.hot_end > c.end))
		abort();
	free(line);
	return 0;
}
