/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/chance.h"

#include <sys/random.h>

#include "base/clock.h"

uint64_t chance_u64(void)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = monotonic_ns() * 0x9e3779b97f4a7c15ULL;
	return random;
}

double chance_share(void)
{
	return (double)(chance_u64() >> 11) / (double)(1ULL << 53);
}
