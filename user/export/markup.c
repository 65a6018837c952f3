/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/markup.h"

#include "base/escape.h"

static const char *entity_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

int markup_append(struct strbuf *out, const char *bytes, size_t len)
{
	size_t plain = 0; /* start of the run not yet copied */

	for (size_t i = 0; i < len; i++) {
		const char *entity = entity_of(bytes[i]);

		if (!entity)
			continue;
		strbuf_append(out, bytes + plain, i - plain);
		strbuf_puts(out, entity);
		plain = i + 1;
	}
	return strbuf_append(out, bytes + plain, len - plain);
}

int markup_foreign(struct strbuf *out, const char *bytes, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = escape_append(&text, bytes, len, "");

	return r < 0 ? r : markup_append(out, strbuf_str(&text), text.len);
}
