/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SYMBOLIZE_PYSTRING_H
#define SYMBOLIZE_PYSTRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A str of the target as it lies in memory: its code points, little-endian. Borrowed bytes. */
struct pystring {
	const uint8_t *bytes;
	size_t len;    /* bytes, not code points */
	unsigned kind; /* bytes in a code point: 1 (ASCII or Latin-1), 2, 4; 0: could not be read */
	bool is_cut;   /* the target has more of it than was copied */
};

/*
 * What pystring_utf8() needs at most for a string of len bytes, NUL included. Reached by surrogates
 * (two bytes become six), a cut mark and the NUL.
 */
#define PYSTRING_UTF8_BYTES(len) (3 * (size_t)(len) + 4)

/*
 * Writes s as valid UTF-8 and a NUL behind it.
 *
 * Surrogates become six ASCII characters, as Python's backslashreplace writes them: \udc80. That
 * covers the bytes of file names that are no UTF-8 (surrogateescape). CPython never stores pairs,
 * so none are joined. NUL and control characters are kept: the exporters escape. Values above
 * 10FFFF become U+FFFD, and so does an incomplete code point at the end; in a cut string it is
 * dropped, and U+2026 marks the cut.
 *
 * @out_size  at least PYSTRING_UTF8_BYTES(s->len)
 *
 * Returns the length without the NUL (the text may hold NULs), -EINVAL for another kind, -ENOBUFS
 * for a small buffer; out is untouched then.
 */
ssize_t pystring_utf8(const struct pystring *s, char *out, size_t out_size);

#endif
