/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/varint.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

/* Numbers in a row: each read stays inside, and says the same when written and read again. */
static void read_varints(const uint8_t *p, const uint8_t *end)
{
	uint64_t v, again;

	while (p < end) {
		uint8_t buf[VARINT_MAX_BYTES], *w = buf;
		const uint8_t *before = p, *r = buf;

		if (varint_get(&p, end, &v) < 0) {
			require(p == before);
			return;
		}
		require(p > before && p <= end && p - before <= VARINT_MAX_BYTES);
		require(varint_put(&w, buf + sizeof(buf), v) == 0);
		require(w - buf <= p - before);
		require(varint_get(&r, w, &again) == 0 && again == v && r == w);
		require(zigzag_encode(zigzag_decode(v)) == v);
	}
}

static void read_utf8(const char *p, size_t len)
{
	while (len > 0) {
		uint32_t c;
		size_t n = utf8_decode(p, len, &c);

		require(n >= 1 && n <= 4 && n <= len);
		require(c <= 0x10ffff && (c < 0xd800 || c > 0xdfff));
		p += n;
		len -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	read_varints(bytes, bytes + len);
	read_utf8((const char *)bytes, len);
	return 0;
}
