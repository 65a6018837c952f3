/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "inspect/address_map.h"
#include "symbolize/code.h"
#include "symbolize/pystring.h"

struct inspect_codes {
	VEC(struct inspect_code *)
	items;                  /* in the order in which they came; each owned, with its
				   text and table behind it */
	struct address_map map; /* from an identity to its place */
};

int codes_new(struct inspect_codes **out)
{
	struct inspect_codes *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*out = c;
	return 0;
}

void codes_free(struct inspect_codes *c)
{
	if (!c)
		return;
	while (c->items.len)
		free(c->items.items[--c->items.len]);
	vec_release(&c->items);
	address_map_release(&c->map);
	free(c);
}

size_t codes_count(const struct inspect_codes *c)
{
	return c->items.len;
}

void codes_forget(struct inspect_codes *c, size_t count)
{
	if (c->items.len <= count)
		return;
	while (c->items.len > count)
		free(c->items.items[--c->items.len]);
	address_map_clear(&c->map);
	for (size_t i = 0; i < count; i++) /* there is room: it keeps its memory */
		address_map_put(&c->map, c->items.items[i]->identity, (uint32_t)i);
}

/* A str as the walker copied it; returns its length, the NUL not counted. */
static size_t put_text(const struct pystring *s, char *out)
{
	ssize_t len = pystring_utf8(s, out, PYSTRING_UTF8_BYTES(s->len) + sizeof(CODE_UNKNOWN));

	if (len >= 0)
		return (size_t)len;
	memcpy(out, CODE_UNKNOWN, sizeof(CODE_UNKNOWN));
	return sizeof(CODE_UNKNOWN) - 1;
}

/* What is told of it, in one piece of memory. */
static struct inspect_code *code_of(const struct walk_process *p, const struct code_event *e)
{
	const uint8_t *bytes = (const uint8_t *)(e + 1);
	const struct pystring file = { .bytes = bytes,
				       .len = e->filename_bytes,
				       .kind = e->filename_kind,
				       .is_cut = e->is_cut & 1 };
	const struct pystring name = { .bytes = bytes + file.len,
				       .len = e->name_bytes,
				       .kind = e->name_kind,
				       .is_cut = e->is_cut >> 1 & 1 };
	bool has_lines = e->lines_total <= LINETABLE_BYTES_MAX;
	size_t lines_len = has_lines ? e->lines_total : 0;
	size_t texts = PYSTRING_UTF8_BYTES(file.len) + PYSTRING_UTF8_BYTES(name.len) +
		       2 * sizeof(CODE_UNKNOWN);
	struct inspect_code *code = malloc(sizeof(*code) + texts + lines_len);
	char *text = (char *)(code + 1);
	uint8_t *lines;

	if (!code)
		return NULL;
	*code = (struct inspect_code){ .identity = e->code,
				       .first_line = (int32_t)e->first_line > 0
							     ? (int32_t)e->first_line
							     : 1 };
	code->file = text;
	code->file_len = put_text(&file, text);
	code->name = text + code->file_len + 1;
	code->name_len = put_text(&name, text + code->file_len + 1);
	lines = (uint8_t *)text + texts;
	memcpy(lines, bytes + file.len + name.len,
	       lines_len < e->lines_bytes ? lines_len : e->lines_bytes);
	if (lines_len > e->lines_bytes &&
	    p->read(p->arg, e->lines_addr + e->lines_bytes, lines + e->lines_bytes,
		    lines_len - e->lines_bytes) < 0)
		has_lines = false;
	code->lines = lines;
	code->lines_len = lines_len;
	code->has_lines = has_lines;
	return code;
}

int codes_get(struct inspect_codes *c, struct walker *w, const struct walk_process *p,
	      uint64_t identity, uint64_t addr, const struct inspect_code **out)
{
	uint32_t known = address_map_get(&c->map, identity);
	const struct code_event *event;
	struct inspect_code *code;
	int r;

	if (known != ADDRESS_NONE) {
		*out = c->items.items[known];
		return 0;
	}
	r = walker_describe(w, p, identity, addr, &event);
	if (r < 0)
		return r;
	code = code_of(p, event);
	if (!code || vec_reserve(&c->items, 1) < 0 ||
	    address_map_put(&c->map, identity, (uint32_t)c->items.len) < 0) {
		free(code);
		return -ENOMEM;
	}
	c->items.items[c->items.len++] = code;
	*out = code;
	return 0;
}

int codes_get_late(struct inspect_codes *c, struct walker *w, const struct walk_process *p,
		   uint64_t identity, uint64_t addr, const struct inspect_code **out)
{
	size_t count = c->items.len;
	int r = codes_get(c, w, p, identity, addr, out);

	if (r < 0 || c->items.len == count || walker_identify(w, p, addr) == identity)
		return r;
	codes_forget(c, count);
	return -EFAULT;
}

struct code_position code_position(const struct inspect_code *code, enum lines_format format,
				   uint32_t instr)
{
	struct code_position p = { .column = -1, .end_column = -1 };
	int r = -EFAULT;

	if (code->has_lines)
		r = linetable_position(format, code->lines, code->lines_len, code->first_line,
				       instr, &p);
	if (r <= 0) {
		int line = r ? 0 : code->first_line;

		p = (struct code_position){ line, line, -1, -1 };
	}
	return p;
}
