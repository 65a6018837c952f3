/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the seeds of tests/fuzz/corpus/unwind: worlds in which the unwinder goes far, one file for
 * each shape and layout given here.
 *
 *	unwind_seeds FOLDER
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hamt.h"
#include "rows.h"
#include "tape.h"
#include "world.h"

static const struct world_bases bases = {
	.runtime = 0x100,
	.heap = 0x1000,
	.stack = 0xa000,
	.cstack = 0xe000,
};

static void build_stack(struct world *w)
{
	world_enter(w);
	world_recurse(w, 12);
}

static void build_mixed(struct world *w)
{
	__u64 code = world_code(w, "f"), generator = world_code(w, "g");

	for (unsigned i = 0; i < 4; i++) {
		world_enter(w);
		world_push(w, code, 2 * i);
		world_push_generator(w, generator, 2 * i);
	}
}

static void build_cycle(struct world *w)
{
	__u64 code = world_code(w, "f"), root;

	world_enter(w);
	root = world_push(w, code, 2);
	world_push(w, code, 4);
	world_set_previous(w, root, world_push(w, code, 6));
}

static void build_interpreters(struct world *w)
{
	__u64 interp = world_interp(w), tstate = world_tstate(w, interp, WORLD_THREAD);

	world_set_status(w, tstate, 0x1b);
	world_set_current(w, tstate);
	if (w->off->frame_kind != FRAME_CFRAME)
		w->tstate = tstate;
	build_stack(w);
}

/* A context with an array, nodes below it and keys that share a hash. */
static void build_context(struct world *w)
{
	struct hamt_item items[24];
	struct hamt_types types;

	build_stack(w);
	hamt_types_init(w, &types);
	for (unsigned i = 0; i < 24; i++)
		items[i] = (struct hamt_item){
			.var = hamt_var(w, world_str(w, unwinder_variables[i % UNWINDER_LABELS]),
					i),
			.value = i % 2 ? hamt_int(w, types.integer, i % 4, &(__u32){ i }, 1)
				       : hamt_text(w, &types, TEXT_ASCII, 1, "/orders", 7),
			.hash = i < 20   ? i
				: i < 22 ? 0x43
					 : 0x20 * i,
		};
	hamt_enter(w, hamt_tree(w, &types, items, 24));
}

static void put(FILE *f, unsigned value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		fputc(value >> 8 * i & 0xff, f);
}

/* Runs of bytes that are not zero; runs less than four zeros apart are one. */
static void put_page(FILE *f, const struct memory *m, __u64 addr)
{
	__u8 page[PAGE_BYTES];

	memory_read(m, addr, page, sizeof(page));
	put(f, addr, 2);
	put(f, 0, 1);
	for (unsigned at = 0; at < PAGE_BYTES; at++) {
		unsigned end = at, zeros = 0;

		if (!page[at])
			continue;
		for (unsigned i = at; i < PAGE_BYTES && zeros < 4 && i - at < 255; i++) {
			zeros = page[i] ? 0 : zeros + 1;
			if (page[i])
				end = i + 1;
		}
		put(f, addr + at, 2);
		put(f, end - at, 1);
		fwrite(page + at, 1, end - at, f);
		at = end - 1;
	}
}

static int write_seed(const char *folder, const char *shape, const struct row *row, unsigned number,
		      void (*build)(struct world *w))
{
	char path[4096];
	struct world w;
	FILE *f;
	int r;

	snprintf(path, sizeof(path), "%s/%s-%s", folder, row->name, shape);
	f = fopen(path, "we");
	if (!f) {
		perror(path);
		return -1;
	}
	world_init_at(&w, &row->off, &bases);
	build(&w);
	world_publish(&w);
	put(f, number, 1);
	put(f, 0, 1);
	put(f, bases.runtime, 2);
	put(f, WORLD_THREAD & TAPE_MASK, 2);
	put(f, 0, 1);
	memory_write_u64(w.m, w.tstate + row->off.tstate_thread_id, WORLD_THREAD & TAPE_MASK);
	for (__u64 addr = 0; addr <= TAPE_MASK; addr += PAGE_BYTES)
		if (memory_is_present(w.m, addr))
			put_page(f, w.m, addr);
	r = ferror(f);
	if (fclose(f) || r) {
		perror(path);
		return -1;
	}
	world_release(&w);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *row, *shape;
		void (*build)(struct world *w);
	} seeds[] = {
		{ "3.7", "stack", build_stack },
		{ "3.8", "cycle", build_cycle },
		{ "3.10", "interpreters", build_interpreters },
		{ "3.11", "mixed", build_mixed },
		{ "3.12", "mixed", build_mixed },
		{ "3.13", "stack", build_stack },
		{ "3.14", "mixed", build_mixed },
		{ "3.14t", "stack", build_stack },
		{ "3.15", "interpreters", build_interpreters },
		{ "3.15", "cycle", build_cycle },
		{ "3.8", "context", build_context },
		{ "3.12", "context", build_context },
		{ "3.13t", "context", build_context },
		{ "3.15", "context", build_context },
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		for (unsigned v = 0; v < row_count; v++)
			if (!strcmp(rows[v].name, seeds[i].row) &&
			    write_seed(argv[1], seeds[i].shape, &rows[v], v, seeds[i].build))
				return 1;
	return 0;
}
