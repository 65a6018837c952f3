/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT_DIGITS_MAX 17 /* that tell every double from the next */
#define DIGIT_BITS 30

/* Where repr() changes to exponents (Python/pystrtod.c, format 'r'). */
#define EXPONENT_MIN -4
#define EXPONENT_MAX 16

static bool reads_back(const char *text, double value, bool is_single)
{
	return is_single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/*
 * The fewest digits that read back as value, which is_single: a float. Returns the exponent of the
 * first of them.
 */
static int shortest_digits(double value, bool is_single, char digits[FLOAT_DIGITS_MAX + 1])
{
	char text[64];
	int exponent = 0;

	for (int precision = 0; precision < FLOAT_DIGITS_MAX; precision++) {
		size_t len = 0;

		snprintf(text, sizeof(text), "%.*e", precision, value);
		exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
		for (const char *p = text; *p != 'e'; p++)
			if (*p >= '0' && *p <= '9' && len < FLOAT_DIGITS_MAX)
				digits[len++] = *p;
		digits[len] = '\0';
		if (reads_back(text, value, is_single))
			break;
		/*
		 * Below a power of two floats are twice as close as above it: the next decimal may
		 * read back where the nearest does not. After a 9 it is one of fewer digits.
		 */
		if (digits[len - 1] == '9')
			continue;
		++*(strchr(text, 'e') - 1);
		if (reads_back(text, value, is_single)) {
			digits[len - 1]++;
			break;
		}
	}
	return exponent;
}

static void put_exponent(struct strbuf *out, const char *digits, int exponent)
{
	strbuf_putc(out, digits[0]);
	if (digits[1])
		strbuf_appendf(out, ".%s", digits + 1);
	strbuf_appendf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

static void put_plain(struct strbuf *out, const char *digits, int exponent, bool is_whole)
{
	const int len = (int)strlen(digits), point = exponent + 1;

	if (point <= 0)
		strbuf_puts(out, "0.");
	for (int i = point; i < 0; i++)
		strbuf_putc(out, '0');
	for (int i = 0; i < len; i++) {
		if (i && i == point)
			strbuf_putc(out, '.');
		strbuf_putc(out, digits[i]);
	}
	for (int i = len; i < point; i++)
		strbuf_putc(out, '0');
	if (len <= point && is_whole)
		strbuf_puts(out, ".0");
}

static int put_number(struct strbuf *out, double value, bool is_single, bool is_whole)
{
	char digits[FLOAT_DIGITS_MAX + 1];
	int exponent;

	if (isnan(value))
		return strbuf_puts(out, "nan");
	if (signbit(value))
		strbuf_putc(out, '-');
	value = fabs(value);
	if (isinf(value))
		return strbuf_puts(out, "inf");
	exponent = shortest_digits(value, is_single, digits);
	if (exponent < EXPONENT_MIN || exponent >= EXPONENT_MAX)
		put_exponent(out, digits, exponent);
	else
		put_plain(out, digits, exponent, is_whole);
	return strbuf_error(out);
}

int number_float(struct strbuf *out, double value, bool is_whole)
{
	return put_number(out, value, false, is_whole);
}

int number_single(struct strbuf *out, float value)
{
	return put_number(out, value, true, true);
}

int number_complex(struct strbuf *out, double real, double imaginary)
{
	const bool has_real = real != 0 || signbit(real);

	if (has_real) {
		strbuf_putc(out, '(');
		number_float(out, real, false);
		if (!signbit(imaginary) || isnan(imaginary))
			strbuf_putc(out, '+');
	}
	number_float(out, imaginary, false);
	return strbuf_puts(out, has_real ? "j)" : "j");
}

/* Divides, and returns the remainder: the lowest nine decimal digits. */
static uint32_t divide(uint32_t *digits, size_t count)
{
	uint64_t rest = 0;

	for (size_t i = count; i-- > 0;) {
		rest = rest << DIGIT_BITS | digits[i];
		digits[i] = (uint32_t)(rest / 1000000000);
		rest %= 1000000000;
	}
	return (uint32_t)rest;
}

int number_digits(struct strbuf *out, uint32_t *digits, size_t count, size_t shown_max)
{
	/* log10(2^30) < 9.04, in groups of nine */
	char text[NUMBER_DIGITS_MAX * 10 + 10], *start = text + sizeof(text);
	size_t len;

	assert(count <= NUMBER_DIGITS_MAX);
	for (;;) {
		uint32_t nine;

		while (count && !digits[count - 1])
			count--;
		if (!count)
			break;
		nine = divide(digits, count);
		for (int i = 0; i < 9; i++, nine /= 10)
			*--start = (char)('0' + nine % 10);
	}
	while (start < text + sizeof(text) && *start == '0')
		start++;
	len = text + sizeof(text) - start;
	if (!len)
		return strbuf_putc(out, '0');
	strbuf_append(out, start, len > shown_max ? shown_max : len);
	if (len > shown_max)
		strbuf_appendf(out, "...+%zu", len - shown_max);
	return strbuf_error(out);
}
