/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_SAMPLE_WORDS_H
#define EXPORT_SAMPLE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* What single samples are called, where formats have them. */

struct sample_kind_words {
	const char *name; /* NUL-terminated, borrowed */
	enum sample_unit unit;
	uint64_t period; /* a value of 1 is so many of the unit */
};
struct sample_kind_words sample_kind_of(const struct profile *p, const struct recording *r,
					const struct sample *s);

#endif
