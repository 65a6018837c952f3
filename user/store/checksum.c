/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/checksum.h"

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, its bits reversed */
#define STEP 8

/* tables[n][b]: what byte b becomes when n more bytes have been taken in behind it. */
static uint32_t tables[STEP][256];

__attribute__((constructor)) static void make_tables(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		tables[0][b] = crc;
	}
	for (int n = 1; n < STEP; n++)
		for (int b = 0; b < 256; b++) {
			uint32_t crc = tables[n - 1][b];

			tables[n][b] = crc >> 8 ^ tables[0][crc & 255];
		}
}

/* The remainder reaches the first four bytes of a step only: it has 32 bits. */
static uint32_t take_step(uint32_t crc, const uint8_t *bytes)
{
	uint32_t next = 0;

	for (int i = 0; i < STEP; i++) {
		uint8_t of_crc = i < 4 ? (uint8_t)(crc >> 8 * i) : 0;

		next ^= tables[STEP - 1 - i][bytes[i] ^ of_crc];
	}
	return next;
}

uint32_t crc32c(const uint8_t *bytes, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (; len >= STEP; len -= STEP, bytes += STEP)
		crc = take_step(crc, bytes);
	for (; len; len--, bytes++)
		crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 255];
	return ~crc;
}
