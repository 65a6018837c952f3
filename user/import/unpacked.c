/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/unpacked.h"

#include <errno.h>

#include "base/err.h"
#include "base/units.h"

static int check(uint64_t packed, uint64_t base, unsigned int ratio, uint64_t bytes,
		 const char *what)
{
	uint64_t max;

	if (__builtin_mul_overflow(packed, ratio, &max) ||
	    __builtin_add_overflow(max, base, &max) || bytes <= max)
		return 0;
	return err_set(-E2BIG,
		       "%s more than %s, which is %s and %u times its bytes; if you trust it, "
		       "give --trust",
		       what, units_bytes(max).s, units_bytes(base).s, ratio);
}

int unpacked_check(uint64_t packed, uint64_t unpacked, uint64_t tables)
{
	unsigned int ratio = unpacked ? TABLES_RATIO_MAX : TABLES_RATIO_MAX_PLAIN;
	int r = check(packed, UNPACKED_BASE_BYTES, UNPACKED_RATIO_MAX, unpacked, "it unpacks to");

	return r ? r : check(packed, TABLES_BASE_BYTES, ratio, tables, "its stacks and names take");
}
