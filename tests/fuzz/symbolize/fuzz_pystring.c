/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A kind, whether it is cut; the rest is the string. The output is UTF-8 and keeps its bound. */
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "symbolize/pystring.h"

#define HEAD 2

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct pystring s;
	uint32_t code_point;
	ssize_t written;
	char *out;

	if (len < HEAD)
		return 0;
	s = (struct pystring){ .bytes = bytes + HEAD,
			       .len = len - HEAD,
			       .kind = bytes[0] % 8,
			       .is_cut = bytes[1] & 1 };
	out = malloc(PYSTRING_UTF8_BYTES(s.len));
	if (!out)
		abort();
	written = pystring_utf8(&s, out, PYSTRING_UTF8_BYTES(s.len));
	if ((written >= 0) != (s.kind == 1 || s.kind == 2 || s.kind == 4))
		abort();
	for (ssize_t at = 0; at < written;) {
		size_t step = utf8_decode(out + at, (size_t)(written - at), &code_point);

		/* A replacement must be a written one: three bytes. */
		if (code_point == UTF8_REPLACEMENT && step != 3)
			abort();
		at += (ssize_t)step;
	}
	if (written >= 0 && out[written])
		abort();
	free(out);
	return 0;
}
