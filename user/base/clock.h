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

/* As bpf_ktime_get_ns() has it. */
static inline uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
