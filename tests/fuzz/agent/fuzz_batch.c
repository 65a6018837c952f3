/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Entries of a spool, which a crash or others may have changed: one twice, packed or not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	for (enum engine e = ENGINE_PYROSCOPE; e <= ENGINE_PARCA; e++) {
		struct spool_entry entry = { .number = 1 };
		struct batch b = { .count = 0 };
		int r;

		require(batch_add(&b, e, &entry, bytes, len) == 1);
		r = batch_add(&b, e, &entry, bytes, len);
		require(r == 0 || r == 1);
		require(b.count == (size_t)r + 1);
		require(!batch_finish(&b, e));
		require(r || (b.body.len == len && (!len || !memcmp(b.body.bytes, bytes, len))));
		batch_release(&b);
	}
	return 0;
}
