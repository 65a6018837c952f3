/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define INITIAL_NAMESPACE 0xEFFFFFFAU /* PROC_TIME_INIT_INO of the kernel */

struct clock_offsets clock_offsets;

/* timens_offsets is of the namespace of our children, which may be another one than ours. */
static bool is_in_a_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/time", &st) && st.st_ino != INITIAL_NAMESPACE;
}

__attribute__((constructor)) static void read_offsets(void)
{
	_cleanup_(fclosep) FILE *f =
		is_in_a_namespace() ? fopen("/proc/self/timens_offsets", "re") : NULL;
	long long seconds[2], ns[2];

	if (!f ||
	    fscanf(f, "%*s %lld %lld %*s %lld %lld", &seconds[0], &ns[0], &seconds[1], &ns[1]) != 4)
		return;
	clock_offsets.monotonic_ns = (uint64_t)seconds[0] * NS_PER_SECOND + (uint64_t)ns[0];
	clock_offsets.boottime_ns = (uint64_t)seconds[1] * NS_PER_SECOND + (uint64_t)ns[1];
}

struct timespec deadline_of(uint64_t ns)
{
	uint64_t ahead = clock_offsets.monotonic_ns;
	bool is_ahead = ahead <= INT64_MAX;

	return timespec_of(is_ahead && ns > UINT64_MAX - ahead ? UINT64_MAX : ns + ahead);
}
