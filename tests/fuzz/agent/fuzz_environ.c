/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /proc/PID/environ: memory of the process, which may have written anything there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/origin.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

/* What a label may hold: UTF-8 without controls. */
static void check_value(const char *value, size_t size)
{
	size_t len = strnlen(value, size);

	require(len < size);
	for (size_t i = 0; i < len;) {
		uint32_t c;
		size_t n = utf8_decode(value + i, len - i, &c);

		require(c >= 0x20 && !(c >= 0x7f && c < 0xa0) && c != UTF8_REPLACEMENT);
		i += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const names[] = { "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "A" };
	char *text = malloc(len + 1), value[24] = "";

	require(text != NULL);
	memcpy(text, bytes, len);
	text[len] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		origin_of_environment(text, len, names[i], value, sizeof(value));
		check_value(value, sizeof(value));
	}
	origin_of_attributes(text, value, sizeof(value));
	check_value(value, sizeof(value));
	free(text);
	return 0;
}
