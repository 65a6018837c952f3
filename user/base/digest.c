/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/digest.h"

#include <nettle/sha2.h>

uint64_t digest_of(const void *bytes, size_t len)
{
	struct sha256_ctx context;
	uint8_t start[8];
	uint64_t digest = 0;

	sha256_init(&context);
	sha256_update(&context, len, bytes);
	sha256_digest(&context, sizeof(start), start);
	for (size_t i = 0; i < sizeof(start); i++)
		digest |= (uint64_t)start[i] << 8 * i;
	return digest ? digest : 1;
}
