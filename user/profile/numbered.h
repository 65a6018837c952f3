/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_NUMBERED_H
#define PROFILE_NUMBERED_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/strtab.h"

/*
 * Names that are told apart by numbers, "orders", "orders-2", "orders-3": how often each was asked
 * for, so that the thousandth does not try all numbers before its own. Zeroed it is empty.
 */
struct numbered {
	struct strtab *names;
	VEC(uint32_t) count; /* by id */
};
void numbered_release(struct numbered *n);

/* 1 for a name that nobody asked for before, then 2, 3... 0, or as strtab_intern(). */
int numbered_next(struct numbered *n, const char *name, size_t len, uint32_t *number);

#endif
