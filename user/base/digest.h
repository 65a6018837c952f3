/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/*
 * The first eight bytes of the SHA-256 of bytes, little-endian; never 0. Who names the digest of a
 * file has read the file: it is not to be had from its name, size or times.
 */
uint64_t digest_of(const void *bytes, size_t len);

#endif
