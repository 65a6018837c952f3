/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_CHANCE_H
#define BASE_CHANCE_H

#include <stdint.h>

/* Chance from the kernel; for no secrets: where it has none to give yet, it is the clock's. Never
 * waits. */
uint64_t chance_u64(void);

/* Uniform in [0, 1). */
double chance_share(void);

#endif
