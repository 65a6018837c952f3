/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/text_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolize/pystring.h"

#define KIND_MAX 4

void text_cache_release(struct text_cache *c)
{
	for (size_t i = 0; i < c->texts.len; i++)
		free(c->texts.items[i]);
	vec_release(&c->texts);
	address_map_release(&c->map);
}

int text_cache_keep(struct text_cache *c, const char *text, const char **out)
{
	_cleanup_(freep) char *copy = strdup(text);

	if (!copy || vec_push(&c->texts, copy) < 0)
		return -ENOMEM;
	*out = take_ptr(copy);
	return 0;
}

int text_cache_get(struct text_cache *c, struct object_reader *r, uint64_t object, const char **out)
{
	uint32_t known = address_map_get(&c->map, object);
	uint8_t bytes[TEXT_CHARS_MAX * KIND_MAX];
	char utf8[PYSTRING_UTF8_BYTES(sizeof(bytes))];
	struct object_text text;
	int e;

	if (known != ADDRESS_NONE) {
		*out = c->texts.items[known];
		return 0;
	}
	e = object_str(r, object, bytes, sizeof(bytes), &text);
	if (e < 0)
		return e;
	if (pystring_utf8(&(struct pystring){ .bytes = bytes,
					      .len = text.len,
					      .kind = text.kind,
					      .is_cut = text.is_cut },
			  utf8, sizeof(utf8)) < 0)
		return -EBADMSG;
	e = text_cache_keep(c, utf8, out);
	return e < 0 ? e : address_map_put(&c->map, object, c->texts.len - 1);
}
