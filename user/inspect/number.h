/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_NUMBER_H
#define INSPECT_NUMBER_H

/* Numbers as repr() writes them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* What Python writes of an int (sys.int_max_str_digits) is no longer than these digits take. */
#define NUMBER_DIGITS_MAX 480

/*
 * The shortest decimal that is this float; is_whole: "1.0", else "1", as in the parts of a complex.
 * 0 or -ENOMEM.
 */
int number_float(struct strbuf *out, double value, bool is_whole);

/* The shortest decimal that is this float of 32 bits. */
int number_single(struct strbuf *out, float value);

/* (1+2j), or 2j without a real part. 0 or -ENOMEM. */
int number_complex(struct strbuf *out, double real, double imaginary);

/*
 * An int of count digits of 30 bits, at most NUMBER_DIGITS_MAX, least significant first; changed.
 * Of more than shown_max decimal digits the first ones, and how many more there are. 0 or -ENOMEM.
 */
int number_digits(struct strbuf *out, uint32_t *digits, size_t count, size_t shown_max);

#endif
