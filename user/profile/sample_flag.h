/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_SAMPLE_FLAG_H
#define PROFILE_SAMPLE_FLAG_H

#include <stddef.h>
#include <stdint.h>

/* What enum sample_bits are called in formats that say them of single samples; docs/formats.md. */
struct sample_flag {
	uint16_t bit;
	const char *name;
};

extern const struct sample_flag sample_flags[];
extern const size_t sample_flag_count;

/* The bit of that name, which needs no NUL; 0: none is called so. */
uint16_t sample_flag_bit(const char *name, size_t len);

#endif
