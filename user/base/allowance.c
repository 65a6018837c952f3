/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/allowance.h"

#include "base/clock.h"

#define LOOK_BYTES (64u << 10)
#define CALL_BYTES 1024 /* what a call costs more than its bytes do */

static _Thread_local struct {
	uint64_t begin_ns, end_ns; /* CPU time of the thread; end_ns 0: no allowance has begun */
	uint64_t bytes;            /* since the clock was looked at */
	bool is_spent;
} own;

void allowance_begin(uint64_t ns)
{
	own.begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	own.end_ns = ns < UINT64_MAX - own.begin_ns ? own.begin_ns + ns : 0;
	own.bytes = 0;
	own.is_spent = false;
}

bool allowance_is_spent(void)
{
	if (own.end_ns && !own.is_spent)
		own.is_spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) >= own.end_ns;
	return own.is_spent;
}

bool allowance_take(uint64_t bytes)
{
	own.bytes += bytes + CALL_BYTES;
	if (own.bytes < LOOK_BYTES)
		return !own.is_spent;
	own.bytes = 0;
	return !allowance_is_spent();
}

uint64_t allowance_used_ns(void)
{
	return difference(clock_ns(CLOCK_THREAD_CPUTIME_ID), own.begin_ns);
}
