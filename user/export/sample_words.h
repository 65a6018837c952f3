/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_SAMPLE_WORDS_H
#define EXPORT_SAMPLE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* What single samples are called, where formats have them. */

struct sample_flag {
	uint16_t bit; /* enum sample_bits */
	const char *name;
};
extern const struct sample_flag sample_flags[];
extern const size_t sample_flag_count;

struct sample_kind_words {
	const char *name; /* NUL-terminated, borrowed */
	enum sample_unit unit;
	uint64_t period; /* a value of 1 is so many of the unit */
};
struct sample_kind_words sample_kind_of(const struct profile *p, const struct recording *r,
					const struct sample *s);

#endif
