/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/code_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CODE_BYTES 256 /* of the struct that are read; checked by offsets_check() */

void code_objects_forget(struct code_objects *c)
{
	for (size_t i = 0; i < c->codes.len; i++)
		lines_release(&c->codes.items[i].lines);
	c->codes.len = 0;
	address_map_clear(&c->map);
}

void code_objects_release(struct code_objects *c)
{
	code_objects_forget(c);
	vec_release(&c->codes);
	address_map_release(&c->map);
	text_cache_release(&c->texts);
}

static uint64_t pointer_in(const uint8_t *block, uint16_t offset)
{
	uint64_t value;

	memcpy(&value, block + offset, sizeof(value));
	return value;
}

/* What is torn or too long leaves the lines that are before it. */
static int read_lines(struct object_reader *r, uint64_t table, struct lines *lines)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint64_t size;
	int e;

	if ((e = object_get(r, table + r->off->bytes_size, &size, sizeof(size))) < 0)
		return e;
	if (size > LINETABLE_BYTES_MAX)
		return 0; /* no line is known */
	if (!(bytes = malloc(size + 1)))
		return -ENOMEM;
	for (size_t done = 0, n; done < size; done += n) {
		n = size - done < OBJECT_READ_BYTES ? size - done : OBJECT_READ_BYTES;
		e = object_get(r, table + r->off->bytes_data + done, bytes + done, n);
		if (e < 0)
			return e;
	}
	e = lines_extend(lines, bytes, size, size);
	return e == -ENOMEM ? e : 0;
}

static int read_code(struct code_objects *c, struct object_reader *r, struct code_object *out)
{
	const struct py_offsets *off = r->off;
	uint8_t block[CODE_BYTES];
	char type[8];
	uint64_t type_address;
	int32_t first_line;
	int e;

	if ((e = object_type(r, out->address, &type_address)) < 0 ||
	    (e = object_type_name(r, type_address, type, sizeof(type))) < 0)
		return e;
	if (strcmp(type, "code") != 0)
		return -EBADMSG;
	if ((e = object_get(r, out->address, block, off->code_size)) < 0)
		return e;
	memcpy(&first_line, block + off->code_firstlineno, sizeof(first_line));
	out->first_line = first_line > 0 ? first_line : 1;
	lines_init(&out->lines, off->lines, out->first_line);
	out->bytecode = off->frame_kind == FRAME_OBJECT
				? pointer_in(block, off->code_adaptive) + off->bytes_data
				: out->address + off->code_adaptive;
	if ((e = text_cache_get(&c->texts, r, pointer_in(block, off->code_name), &out->own_name)) <
		    0 ||
	    (e = text_cache_get(&c->texts, r, pointer_in(block, off->code_filename), &out->file)) <
		    0)
		return e;
	out->name = out->own_name;
	if (off->code_qualname != OFF_NONE &&
	    (e = text_cache_get(&c->texts, r, pointer_in(block, off->code_qualname), &out->name)) <
		    0)
		return e;
	return read_lines(r, pointer_in(block, off->code_linetable), &out->lines);
}

int code_objects_get(struct code_objects *c, struct object_reader *r, uint64_t address,
		     const struct code_object **out)
{
	uint32_t known = address_map_get(&c->map, address);
	struct code_object code = { .address = address };
	int e;

	if (known != ADDRESS_NONE) {
		*out = &c->codes.items[known];
		return 0;
	}
	if (!address)
		return -EBADMSG;
	e = read_code(c, r, &code);
	if (!e)
		e = address_map_put(&c->map, address, c->codes.len);
	if (!e)
		e = vec_push(&c->codes, code);
	if (e < 0) {
		lines_release(&code.lines);
		return e;
	}
	*out = &c->codes.items[c->codes.len - 1];
	return 0;
}

int code_object_line(const struct code_object *code, uint32_t instr)
{
	int line = instr > INT32_MAX ? 0 : lines_find(&code->lines, instr);

	return line < 0 ? 0 : line ?: code->first_line;
}

bool code_file_ends_in(const char *file, const char *end)
{
	size_t len = strlen(file), end_len = strlen(end);

	return len >= end_len && !strcmp(file + len - end_len, end);
}
