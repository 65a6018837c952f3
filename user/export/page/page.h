/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_PAGE_PAGE_H
#define EXPORT_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "profile/calltree.h"
#include "profile/cube.h"
#include "profile/profile.h"

/*
 * What an HTML page shows, laid out as its data are (assets/README.md, "The blob"): functions, the
 * tree by function, and its sites, which are the same by line.
 */
struct page_function {
	uint32_t name; /* string ids */
	uint32_t file;
	uint32_t line;         /* of the def; 0: unknown */
	uint32_t renamed_from; /* index of what it was called in base; 0: the same */
	uint32_t module;       /* id in page->modules; 0: none */
	uint8_t kind;          /* enum frame_type */
	uint8_t origin;        /* enum origin; numbers of the blob */
};

struct page_node {
	uint64_t self[CUBE_SIDES]; /* ticks */
	uint32_t parent;           /* an earlier index; of the root: 0 */
	uint32_t function;
	uint8_t class; /* the three of a differential page; numbers of the blob */
	uint8_t self_class;
	uint8_t match;
};

struct page_site {
	uint32_t caller; /* an earlier index; of the root: 0 */
	uint32_t node;
	uint32_t line; /* 0: unknown */
};

struct diff;
struct gil;
struct kinds;
struct texts;

struct page {
	const struct profile *profile;       /* borrowed */
	const struct cube *cube;             /* borrowed; finished */
	uint32_t blocks;                     /* of its runs; those that are in use at least */
	VEC(struct page_function) functions; /* 0 is the root's */
	struct strtab *modules;              /* names */
	VEC(struct page_node) nodes;         /* preorder, 0 the root */
	VEC(struct page_site) sites;         /* in order of nodes; 0 the root's */
	uint32_t *site_of[CUBE_SIDES];       /* by stack id; NULL: there is no such side */
	size_t stack_count;
	VEC(struct cube_tag)
	tags; /* thread, labels and kind of rows; empty: their thread says all */
	bool has_kind[KINDS_MAX + 1]; /* by kind: among the tags */
	uint32_t *tag_of;          /* by tag of the cube: index of tags, or the thread's number */
	const struct kinds *kinds; /* which its nodes are sums of; borrowed; NULL: ticks */
	uint64_t *waits;           /* by node: of its self of current what waits; NULL: not told */
	uint8_t *idle; /* by node: 1 + index of idle_rules, where waiting there is idle; NULL:
			  nowhere */
	const struct diff *diff;   /* borrowed; NULL: a plain page */
	const struct texts *notes; /* borrowed; NULL: none */
	const struct gil *gil;     /* borrowed; NULL: nothing is known of it */
	/* Of a comparison: whose counters are each side's. Borrowed; NULL: all are profile's. */
	const struct profile *counters[CUBE_SIDES];
};

void page_release(struct page *page);

/* NULL: it has none of that side. */
const struct cube_run *page_first_run(const struct page *page, enum cube_side side);

/* Are its rows of several kinds, or of one that are no ticks? */
bool page_has_kinds(const struct page *page);

/* Of samples of a kind, what a value of 1 counts in its nodes; 0: nothing. */
uint64_t page_factor(const struct page *page, uint16_t kind);

/* What a page tells apart. */
#define PAGE_AXES (CUBE_THREADS | CUBE_LABELS | CUBE_OPCODES | CUBE_TIME | CUBE_KINDS | CUBE_SPANS)

/*
 * A page of all runs as one. tree: of all kinds; kinds: those that are shown first. Keeps
 * references to all but the tree. 0 or -ENOMEM.
 */
int page_of_tree(struct page *page, const struct profile *p, const struct cube *c,
		 const struct calltree *tree, const struct kinds *kinds);

/*
 * A page of both sides of a comparison, whose classes and matches it takes over. d->input must be
 * by thread. Keeps a reference to d. 0 or -ENOMEM.
 */
int page_of_diff(struct page *page, const struct diff *d);

/*
 * For the two above, once functions and nodes are there: the functions' modules, and sites.
 * node_of: by side; NULL: has no such side. 0, -ENOMEM, -EOVERFLOW.
 */
int page_complete(struct page *page, const uint32_t *const node_of[CUBE_SIDES]);

/* Before that. 0 or -ENOMEM. */
int page_find_tags(struct page *page);

/*
 * Of a plain page whose tags are there, between nodes and sites: nodes become sums of the kinds
 * that are shown first, and are told what of them waits, and where that says nothing. Where there
 * is waiting siblings change their order. node_of: by stack; changes with it. 0 or -ENOMEM.
 */
int page_tell_kinds(struct page *page, uint32_t *node_of);

#endif
