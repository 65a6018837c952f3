/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/value_stack.h"

#include <errno.h>

#include "symbolize/exceptiontable.h"

#define TABLE_BYTES_MAX 16384 /* of an exception table */
#define BLOCK_BYTES 12        /* PyTryBlock: type, handler, level */
#define BLOCKS_MAX 20         /* CO_MAXBLOCKS */

/* clang-format off */
static const struct value_stack_layout layouts[] = {
	{ .minor_first = 8, .minor_last = 9,
	  .iblock = 112, .blockstack = 120, .valuestack = 64, .code_stacksize = 16 },
	{ .minor_first = 10, .minor_last = 10,
	  .iblock = 104, .blockstack = 112, .valuestack = 64, .code_stacksize = 16 },
	{ .minor_first = 11, .minor_last = 11, .localsplus = 72,
	  .code_stacksize = 52, .code_nlocalsplus = 60, .code_exceptiontable = 24 },
	{ .minor_first = 12, .minor_last = 13, .localsplus = 72,
	  .code_stacksize = 48, .code_nlocalsplus = 56, .code_exceptiontable = 24 },
	{ .minor_first = 14, .minor_last = 15, .localsplus = 80, .stackpointer = 64,
	  .code_stacksize = 48, .code_nlocalsplus = 56, .code_exceptiontable = 24 },
};
/* clang-format on */

const struct value_stack_layout *value_stack_layout_find(unsigned minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (minor >= layouts[i].minor_first && minor <= layouts[i].minor_last)
			return &layouts[i];
	return NULL;
}

/* One that is read. */
struct reading {
	const struct walk_process *p;
	const struct value_stack_layout *layout;
	const struct inspect_frame *frame;
	uint64_t head; /* sizeof(PyObject) */
};

static int get(const struct reading *r, uint64_t addr, void *out, size_t len)
{
	return r->p->read(r->p->arg, addr, out, len);
}

/* Up to 3.10: how many entries are left when the innermost block ends. */
static size_t live_of_blocks(const struct reading *r)
{
	const uint64_t first = r->frame->frame + r->layout->blockstack;
	int32_t blocks, block[3];

	if (get(r, r->frame->frame + r->layout->iblock, &blocks, sizeof(blocks)) < 0 ||
	    blocks <= 0 || blocks > BLOCKS_MAX ||
	    get(r, first + (uint64_t)(blocks - 1) * BLOCK_BYTES, block, sizeof(block)) < 0 ||
	    block[2] < 0)
		return 0;
	return (size_t)block[2];
}

static size_t live_of_table(const struct reading *r)
{
	const struct py_offsets *off = r->p->off;
	uint8_t table[TABLE_BYTES_MAX];
	uint64_t bytes, size;
	int depth;

	if (get(r, r->frame->code + r->head + r->layout->code_exceptiontable, &bytes, 8) < 0 ||
	    get(r, bytes + off->bytes_size, &size, 8) < 0 || size > sizeof(table) ||
	    get(r, bytes + off->bytes_data, table, size) < 0)
		return 0;
	depth = exceptiontable_depth(table, size, r->frame->instr);
	return depth < 0 ? 0 : (size_t)depth;
}

static int find_stack(const struct reading *r, uint64_t *at, size_t *count)
{
	const struct value_stack_layout *l = r->layout;
	const uint64_t code = r->frame->code + r->head;
	int32_t size, locals = 0;
	uint64_t end;

	if (get(r, code + l->code_stacksize, &size, 4) < 0 || size < 0)
		return -EFAULT;
	*count = (size_t)size;
	if (l->valuestack)
		return get(r, r->frame->frame + l->valuestack, at, 8);
	if (get(r, code + l->code_nlocalsplus, &locals, 4) < 0 || locals < 0)
		return -EFAULT;
	*at = r->frame->frame + l->localsplus + 8 * (uint64_t)locals;
	if (!l->stackpointer || get(r, r->frame->frame + l->stackpointer, &end, 8) < 0)
		return 0;
	/* 0 while it runs bytecode. */
	if (end >= *at && (end - *at) / 8 <= *count)
		*count = (end - *at) / 8;
	return 0;
}

int value_stack_read(const struct walk_process *p, const struct value_stack_layout *layout,
		     const struct inspect_frame *f, struct value_stack *out)
{
	const struct reading r = { p, layout, f, p->off->str_length };
	uint64_t at;

	if (!f->identity || f->flags & FRAME_COMPILED || find_stack(&r, &at, &out->count) < 0)
		return -EFAULT;
	if (out->count > VALUE_STACK_MAX)
		out->count = VALUE_STACK_MAX;
	if (out->count && get(&r, at, out->entries, 8 * out->count) < 0)
		return -EFAULT;
	for (size_t i = 0; i < out->count; i++)
		out->entries[i] &= ~(uint64_t)p->off->tagged_mask;
	out->live = layout->valuestack ? live_of_blocks(&r) : live_of_table(&r);
	if (out->live > out->count)
		out->live = out->count;
	return 0;
}
