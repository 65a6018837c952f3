/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process publishes whatever it likes. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "target/process_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_text(const char *text)
{
	size_t len = strlen(text);

	if (len > PROCESS_CONTEXT_TEXT_MAX)
		abort();
	for (size_t i = 0; i < len;) {
		uint32_t c;
		size_t size = utf8_decode(text + i, len - i, &c);

		if (c == UTF8_REPLACEMENT && size != 3)
			abort();
		i += size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct process_context c = { 0 };
	uint8_t *copy = malloc(len ? len : 1); /* a byte too many is seen by a sanitizer */
	int r;

	if (!copy)
		return 0;
	memcpy(copy, bytes, len);
	r = process_context_parse(copy, len, &c);
	if (r && r != -EBADMSG)
		abort();
	if (c.attributes.len > PROCESS_CONTEXT_ATTRIBUTES_MAX ||
	    c.keys.len > PROCESS_CONTEXT_KEYS_MAX)
		abort();
	for (size_t i = 0; i < c.attributes.len; i++) {
		check_text(c.attributes.items[i].name);
		check_text(c.attributes.items[i].value);
	}
	for (size_t i = 0; i < c.keys.len; i++)
		check_text(c.keys.items[i]);
	process_context_release(&c);
	free(copy);
	return 0;
}
