/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_UNPACKED_H
#define IMPORT_UNPACKED_H

#include <stdint.h>

/*
 * Limits of what the bytes of a file may become, so that no file takes much memory or time that is
 * not paid for by its size. zstd packs the text of a real profile, deep stacks in order, up to some
 * 400:1; gzip cannot do more than 1032:1. Tables hold a prefix once: a real profile has some 20
 * bytes of them for each packed byte. The option --trust lifts these limits.
 */
#define UNPACKED_BASE_BYTES (64u << 20)
#define UNPACKED_RATIO_MAX 1000
#define TABLES_BASE_BYTES (32u << 20)
#define TABLES_RATIO_MAX 200
#define TABLES_RATIO_MAX_PLAIN 64 /* of a file that is not packed: a frame of 3 bytes takes 100 */

/*
 * packed: bytes of the file. unpacked: bytes that they became so far, 0 if they are not packed;
 * tables: bytes of the strings,
 * frames and stacks that were made of them. 0, or -E2BIG with a message that says the limit.
 */
int unpacked_check(uint64_t packed, uint64_t unpacked, uint64_t tables);

#endif
