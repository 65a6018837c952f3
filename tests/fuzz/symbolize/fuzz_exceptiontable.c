/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An instruction; the rest is the table. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/exceptiontable.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint32_t instr;
	int depth;

	if (len < sizeof(instr))
		return 0;
	memcpy(&instr, bytes, sizeof(instr));
	depth = exceptiontable_depth(bytes + sizeof(instr), len - sizeof(instr), instr);
	if (depth < 0 && depth != -ENOENT && depth != -EBADMSG)
		abort();
	return 0;
}
