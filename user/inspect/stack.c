/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/locals.h"
#include "symbolize/code.h"

#define TYPE_NAME_BYTES 256
#define PAGE_BYTES 4096

static int put_frame(struct inspect_codes *codes, struct walker *w, const struct walk_process *p,
		     const struct walk_frame *from, struct inspect_frame *out)
{
	const struct inspect_code *code;
	int r = -EFAULT;

	*out = (struct inspect_frame){
		.frame = from->frame,
		.code = from->code,
		.identity = from->identity,
		.instr = from->instr,
		.flags = from->flags,
		.name = CODE_UNKNOWN,
		.file = CODE_UNKNOWN,
		.name_len = sizeof(CODE_UNKNOWN) - 1,
		.file_len = sizeof(CODE_UNKNOWN) - 1,
		.at = { .line = 0, .end_line = 0, .column = -1, .end_column = -1 },
	};
	if (from->identity)
		r = codes_get(codes, w, p, from->identity, from->code, &code);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	out->name = code->name;
	out->file = code->file;
	out->name_len = code->name_len;
	out->file_len = code->file_len;
	out->at = code_position(code, p->off->lines, from->instr);
	return 0;
}

int stack_read(struct inspect_codes *codes, struct walker *w, const struct walk_process *p,
	       const struct walk *walk, struct inspect_frame **frames, size_t *count)
{
	struct inspect_frame *list = calloc(walk->depth ? walk->depth : 1, sizeof(*list));
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < walk->depth && !r; i++)
		r = put_frame(codes, w, p, &walk->frames[i], &list[i]);
	if (r < 0) {
		free(list);
		return r;
	}
	*frames = list;
	*count = walk->depth;
	return 0;
}

void stack_free(struct inspect_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (frames[i].locals)
			locals_release(frames[i].locals);
		free(frames[i].locals);
	}
	free(frames);
}

/* A string that ends in NUL; no page is touched behind the one in which it ends. */
static char *read_text(const struct walk_process *p, uint64_t addr)
{
	char text[TYPE_NAME_BYTES + 1];
	size_t len = 0;

	while (len < TYPE_NAME_BYTES) {
		size_t n = PAGE_BYTES - (addr + len) % PAGE_BYTES;

		if (n > TYPE_NAME_BYTES - len)
			n = TYPE_NAME_BYTES - len;
		if (p->read(p->arg, addr + len, text + len, n) < 0)
			return NULL;
		if (memchr(text + len, '\0', n))
			return strdup(text);
		len += n;
	}
	text[len] = '\0';
	return strdup(text);
}

char *stack_type_name(const struct walk_process *p, uint64_t object)
{
	uint64_t head = p->off->str_length; /* sizeof(PyObject), which ends in ob_type */
	uint64_t type, name;

	/* A type is an object with a size; tp_name follows. */
	if (p->read(p->arg, object + head - 8, &type, sizeof(type)) < 0 ||
	    p->read(p->arg, type + head + 8, &name, sizeof(name)) < 0)
		return NULL;
	return read_text(p, name);
}
