/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND 1000000000ULL

static inline uint64_t timespec_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NS_PER_SECOND + (uint64_t)t->tv_nsec;
}

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_SECOND),
				  .tv_nsec = (long)(ns % NS_PER_SECOND) };
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return timespec_ns(&t);
}

/* What has come since, of a clock or a counter; nothing where `before` is the later one. */
static inline uint64_t difference(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/*
 * time_namespaces(7): how far the clocks of the one that we are in are ahead of the kernel's,
 * modulo 2^64. Set before main(), for good.
 */
struct clock_offsets {
	uint64_t monotonic_ns, boottime_ns;
};
extern struct clock_offsets clock_offsets;

/* The times of bpf_ktime_get_ns() and bpf_ktime_get_boot_ns(), in each time namespace. */
static inline uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - clock_offsets.monotonic_ns;
}

static inline uint64_t monotonic_coarse_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) - clock_offsets.monotonic_ns;
}

static inline uint64_t boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME) - clock_offsets.boottime_ns;
}

/* A time of monotonic_ns() for pthread_cond_timedwait(), which waits by our own CLOCK_MONOTONIC. */
struct timespec deadline_of(uint64_t ns);

#endif
