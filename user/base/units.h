/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

/*
 * Numbers with units, both ways. What is read is a decimal number and a unit, with nothing
 * around them: "99", "1.5k", "30s". The result must be a whole number of Hz, ns, bytes or ppm:
 * "0.5" Hz is refused, "0.5s" is 500,000,000 ns.
 *
 * Readers return 0, -EINVAL with a message that shows the text and examples, or -ERANGE if it
 * does not fit; the output is untouched then.
 */

/* "99", "99hz", "1k", "10khz", "1M": in any case. */
int units_parse_hz(const char *s, uint64_t *hz);

/* ns, us, ms, s, m or min, h, d. A bare number is seconds. */
int units_parse_ns(const char *s, uint64_t *ns);

/* KiB, MiB, GiB, TiB and K, M, G, T are powers of 1024; kB, MB, GB, TB of 1000; B or none: bytes.
 */
int units_parse_bytes(const char *s, uint64_t *bytes);

/*
 * "10%", "0.5%", in parts per million; without the sign it is refused: 0.1 may mean either. "0" may
 * not.
 */
int units_parse_share(const char *s, uint64_t *ppm);

/* Digits only. */
int units_parse_count(const char *s, uint64_t *count);

/* Text by value, to be used on the spot: printf("%s", units_ns(t).s). */
struct units_text {
	char s[32];
};

/*
 * For people, rounded: "850 ns", "1.2 ms", "34.5 s", "2 min 5 s", "1 h 12 min", "3 d 4 h"; one
 * digit after the point below 100, none after that, never a trailing ".0".
 */
struct units_text units_ns(uint64_t ns);

/* "512 B", "3.4 MiB". */
struct units_text units_bytes(uint64_t bytes);

/* "12,345". */
struct units_text units_count(uint64_t count);

/* Exact, in the form units_parse_hz() reads: "99", "1500", "10k", "1M". */
struct units_text units_hz(uint64_t hz);

/* Exact, in the form units_parse_ns() reads: "500ms", "30s", "90s", "24h". */
struct units_text units_ns_exact(uint64_t ns);

/* Exact, in the form units_parse_share() reads: "10%", "0.5%". */
struct units_text units_share(uint64_t ppm);

#endif
