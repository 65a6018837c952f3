/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any name, as it stands in text and in JSON: one line of UTF-8 that drives no terminal. */
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

static void check_text(const char *text, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		uint32_t c;

		n = utf8_decode(text + at, len - at, &c);
		require(c != UTF8_REPLACEMENT || n == 3);
		require(!utf8_is_control(c));
	}
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* What was escaped, with the backslash among what is special, says all that there was. */
static void check_same(const char *text, size_t text_len, const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < len; i++) {
		bool is_escaped = at + 4 <= text_len && text[at] == '\\' && text[at + 1] == 'x';

		require(at < text_len);
		require((is_escaped ? digit(text[at + 2]) << 4 | digit(text[at + 3])
				    : (uint8_t)text[at]) == bytes[i]);
		at += is_escaped ? 4 : 1;
	}
	require(at == text_len);
}

static void check_json(const char *name, size_t len)
{
	char *text = NULL;
	size_t text_len = 0;
	FILE *out = open_memstream(&text, &text_len);
	struct json j;

	if (!out)
		return;
	json_init(&j, out);
	json_string_len(&j, name, len);
	require(json_finish(&j) == 0 && fclose(out) == 0);
	require(text_len >= 2 && text[0] == '"' && text[text_len - 1] == '"');
	check_text(text, text_len);
	require(!memmem(text, text_len, "</", 2) && !memmem(text, text_len, "<!", 2));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;

	if (escape_append(&out, (const char *)bytes, len, ";\\") < 0)
		return 0;
	check_text(strbuf_str(&out), strlen(strbuf_str(&out)));
	check_same(strbuf_str(&out), strlen(strbuf_str(&out)), bytes, len);
	check_json((const char *)bytes, len);
	return 0;
}
