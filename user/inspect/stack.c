/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/locals.h"
#include "target/object.h"

#define TYPE_NAME_BYTES 257
#define TYPE_NAME_READS 8

static void put_marker(const struct walk_frame *from, struct inspect_frame *out)
{
	out->name = out->marker;
	out->name_len = (size_t)snprintf(out->marker, sizeof(out->marker), CODE_INTERPRETER,
					 (uint64_t)from->frame);
	out->file = "";
	out->file_len = 0;
}

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
	if (from->flags & FRAME_INTERPRETER)
		put_marker(from, out);
	if (from->identity)
		r = codes_get(codes, w, p, from->identity, from->code, &code);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	out->name = code->name;
	out->file = code->file;
	out->name_len = code->name_len;
	out->file_len = code->file_len;
	out->first_line = code->first_line;
	out->at = from->flags & FRAME_COMPILED
			  ? (struct code_position){ (int)from->instr, (int)from->instr, -1, -1 }
			  : code_position(code, p->off->lines, from->instr);
	return 0;
}

int stack_read(struct inspect_codes *codes, struct walker *w, const struct walk_process *p,
	       const struct walk *walk, struct inspect_frame **frames, size_t *count)
{
	struct inspect_frame *list = calloc(walk->depth ? walk->depth : 1, sizeof(*list));
	size_t shown = 0;
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < walk->depth && !r; i++) {
		r = put_frame(codes, w, p, &walk->frames[i], &list[shown]);
		shown += !r && !code_is_shim(list[shown].name, list[shown].file);
	}
	if (r < 0) {
		free(list);
		return r;
	}
	*frames = list;
	*count = shown;
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

char *stack_type_name(const struct walk_process *p, uint64_t type)
{
	struct object_reader r;
	char name[TYPE_NAME_BYTES];

	if (object_reader_init(&r, p->off, TYPE_NAME_READS, p->read, p->arg) < 0 ||
	    object_type_name(&r, type, name, sizeof(name)) < 0)
		return NULL;
	return strdup(name);
}
