/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/memory_limit.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"

#define DEFAULT_MIN_BYTES (UINT64_C(1) << 30)
#define DEFAULT_PART 4 /* a quarter */

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t default_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	uint64_t part = pages > 0 ? (uint64_t)pages * page_bytes() / DEFAULT_PART : 0;

	return part > DEFAULT_MIN_BYTES ? part : DEFAULT_MIN_BYTES;
}

/* What the kernel counts as data now: much in a build with a sanitizer. */
static uint64_t present_bytes(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages;

	if (!f || fscanf(f, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		return 0;
	return pages * page_bytes();
}

uint64_t memory_limit_or_default(uint64_t bytes)
{
	return bytes ?: default_bytes();
}

void memory_limit_set(uint64_t bytes)
{
	struct rlimit limit;
	uint64_t sum;

	if (getrlimit(RLIMIT_DATA, &limit) < 0 ||
	    __builtin_add_overflow(memory_limit_or_default(bytes), present_bytes(), &sum) ||
	    sum >= limit.rlim_cur)
		return;
	limit.rlim_cur = sum;
	setrlimit(RLIMIT_DATA, &limit);
}

void memory_limit_lift(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_DATA, &limit);
}

enum memory_limit_kind memory_limit(uint64_t *bytes)
{
	struct rlimit data = { .rlim_cur = RLIM_INFINITY }, space = data;

	getrlimit(RLIMIT_DATA, &data);
	getrlimit(RLIMIT_AS, &space);
	*bytes = data.rlim_cur < space.rlim_cur ? data.rlim_cur : space.rlim_cur;
	if (*bytes == RLIM_INFINITY)
		return MEMORY_LIMIT_NONE;
	return *bytes == space.rlim_cur ? MEMORY_LIMIT_ADDRESS_SPACE : MEMORY_LIMIT_DATA;
}
