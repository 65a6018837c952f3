/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_CHECKSUM_H
#define STORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/*
 * CRC-32C (Castagnoli polynomial 0x1edc6f41, reflected, initial value and final xor all ones:
 * RFC 3720, B.4). It finds every error of up to three bits and every burst of up to 32 bits in a
 * chunk, which a hash of its length finds only with high probability. Eight bytes a step.
 */
uint32_t crc32c(const uint8_t *bytes, size_t len);

#endif
