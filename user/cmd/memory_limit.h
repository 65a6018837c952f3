/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_MEMORY_LIMIT_H
#define CMD_MEMORY_LIMIT_H

#include <stdint.h>

/*
 * One limit for all that a command makes of files, wherever it is allocated: the kernel refuses
 * more data (RLIMIT_DATA), and every allocation that fails is an error.
 */

/* bytes, or the default if they are 0. */
uint64_t memory_limit_or_default(uint64_t bytes);

/* bytes: beyond what the program has now; 0: the default. A lower limit of the caller stays. */
void memory_limit_set(uint64_t bytes);

/* For a program that is started and is no part of us. */
void memory_limit_lift(void);

/* The limit that allocations meet. Data are a part of the address space. */
enum memory_limit_kind {
	MEMORY_LIMIT_NONE,          /* but what the machine has */
	MEMORY_LIMIT_DATA,          /* that of memory_limit_set() */
	MEMORY_LIMIT_ADDRESS_SPACE, /* ulimit -v, the lower one */
};

enum memory_limit_kind memory_limit(uint64_t *bytes);

#endif
