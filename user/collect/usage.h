/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_USAGE_H
#define COLLECT_USAGE_H

#include <stdint.h>

/* How full something is that fills up. */
struct usage {
	const char *name; /* static */
	uint64_t used;
	uint64_t max; /* 0: it has no bound of its own */
};

#endif
