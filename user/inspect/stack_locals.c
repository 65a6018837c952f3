/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/stack_locals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define PAGES 128 /* a power of two */
#define PROCESS_READS 10000000
#define PROCESS_BYTES (256u << 20)

/* What was read of a stack's objects, by page: they lie next to each other, and share types. */
struct pages {
	const struct walk_process *process;
	struct {
		uint64_t addr; /* 0: none */
		uint8_t bytes[OBJECT_READ_BYTES];
	} pages[PAGES];
};

/* From one page to the next. A page that is not there all the same has no part that is. */
static int read_pages(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct pages *p = arg;

	for (size_t done = 0, n; done < len; done += n) {
		const uint64_t at = (addr + done) % OBJECT_READ_BYTES, page = addr + done - at;
		const size_t slot = page / OBJECT_READ_BYTES % PAGES;
		int e = 0;

		n = OBJECT_READ_BYTES - at < len - done ? OBJECT_READ_BYTES - at : len - done;
		if (p->pages[slot].addr != page || !page) {
			p->pages[slot].addr = 0;
			e = p->process->read(p->process->arg, page, p->pages[slot].bytes,
					     OBJECT_READ_BYTES);
		}
		if (e < 0)
			return e;
		p->pages[slot].addr = page;
		memcpy((char *)buf + done, p->pages[slot].bytes + at, n);
	}
	return 0;
}

static int read_frames(struct object_reader *r, const struct locals_options *options,
		       struct locals_budget *budget, struct inspect_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct inspect_locals *locals;
		int e;

		if (!frames[i].identity || frames[i].flags & FRAME_COMPILED || !r->reads_left ||
		    !budget->bytes)
			continue;
		locals = frames[i].locals = calloc(1, sizeof(*locals));
		if (!locals)
			return -ENOMEM;
		e = locals_read(r, frames[i].frame, frames[i].code, options, locals);
		if (e == -ENOMEM)
			return e;
		budget->bytes -= locals->bytes < budget->bytes ? locals->bytes : budget->bytes;
		if (e < 0) {
			locals_release(locals);
			free(locals);
			frames[i].locals = NULL;
		}
	}
	return 0;
}

static int read_stack(const struct walk_process *p, const struct locals_options *options,
		      struct locals_budget *budget, struct inspect_frame *frames, size_t count)
{
	_cleanup_(freep) struct pages *pages = malloc(sizeof(*pages));
	struct object_reader r;
	uint32_t reads = options->render.limits == &render_full ? 4 * STACK_LOCALS_READS
								: STACK_LOCALS_READS;
	int e;

	if (!pages)
		return -ENOMEM;
	reads = reads < budget->reads ? reads : budget->reads;
	pages->process = p;
	for (size_t i = 0; i < PAGES; i++)
		pages->pages[i].addr = 0;
	if (object_reader_init(&r, p->off, reads, read_pages, pages) < 0)
		return 0; /* a version whose objects are not known */
	e = read_frames(&r, options, budget, frames, count);
	budget->reads -= reads - r.reads_left;
	return e;
}

int locals_visit(void *visitor, struct inspect_process *p, struct inspect_thread *t)
{
	struct locals_visitor *v = visitor;

	if (v->pid != p->pid) {
		v->pid = p->pid;
		v->budget =
			(struct locals_budget){ .reads = PROCESS_READS, .bytes = PROCESS_BYTES };
	}
	return read_stack(&p->memory, v->options, &v->budget, t->frames, t->frame_count);
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool stack_locals_same(const struct inspect_frame *a, const struct inspect_frame *b)
{
	const struct inspect_locals *x = a->locals, *y = b->locals;

	if (!x || !y)
		return x == y;
	if (x->len != y->len || x->left_out != y->left_out)
		return false;
	for (size_t i = 0; i < x->len; i++)
		if (!is_same_text(x->items[i].name, y->items[i].name) ||
		    !is_same_text(x->items[i].value, y->items[i].value))
			return false;
	return true;
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
	return text ? hash_string(text, seed) : hash_u64(seed);
}

uint64_t stack_locals_hash(const struct inspect_frame *f, uint64_t seed)
{
	const struct inspect_locals *l = f->locals;

	if (!l)
		return seed;
	seed = hash_combine(seed, l->left_out);
	for (size_t i = 0; i < l->len; i++)
		seed = hash_text(l->items[i].value, hash_text(l->items[i].name, seed));
	return seed;
}
