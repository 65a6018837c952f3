/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/functions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NONE UINT32_MAX

static struct diff_function describe_function(const struct profile *p, const struct identity_key *k)
{
	int side = k->frame[DIFF_CURRENT] != NONE ? DIFF_CURRENT : DIFF_BASE;
	const struct frame *f = frametab_get(p->frames, k->frame[side]);
	struct diff_function fn = {
		.name = f->name,
		.file = f->file,
		.root_len = k->root_len[side],
		.frame = k->frame[side],
		.kind = f->kind,
	};

	fn.is_unsampled = f->kind == FRAME_MARKER &&
			  !strcmp(strtab_get(p->strings, f->name), PROFILE_NOT_SAMPLED);
	if (k->is_renamed && side == DIFF_CURRENT && k->frame[DIFF_BASE] != NONE) {
		const struct frame *old = frametab_get(p->frames, k->frame[DIFF_BASE]);

		fn.renamed_from = old->name;
		fn.renamed_from_file = old->file;
	}
	return fn;
}

/* Preorder: a node of a function within that function's subtree was counted further out. */
static void sum_functions(struct diff *d, uint32_t *inside)
{
	for (uint32_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		struct diff_function *f = &d->functions[n->function];

		f->base_self += n->base_self;
		f->self += n->self;
		if (i < inside[n->function])
			continue;
		f->base_total += n->base_total;
		f->total += n->total;
		inside[n->function] = n->end;
	}
}

static double change(const struct diff *d, const struct diff_function *f)
{
	return fabs((double)f->total - (double)f->base_total * d->scale);
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct diff *d = context;
	const struct diff_function *x = &d->functions[*(const uint32_t *)a];
	const struct diff_function *y = &d->functions[*(const uint32_t *)b];
	double i = change(d, x), j = change(d, y);

	if (i != j)
		return i > j ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* Largest change first, which nodes are told. */
static int order_functions(struct diff *d)
{
	size_t count = d->function_count;
	_cleanup_(freep) uint32_t *order = calloc(count + 1, sizeof(*order));
	_cleanup_(freep) uint32_t *place = calloc(count + 1, sizeof(*place));
	struct diff_function *sorted = calloc(count + 1, sizeof(*sorted));

	if (!order || !place || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	if (count)
		qsort_r(order, count, sizeof(*order), compare_functions, d);
	for (size_t i = 0; i < count; i++) {
		sorted[i] = d->functions[order[i]];
		place[order[i]] = (uint32_t)i;
	}
	for (size_t i = 1; i < d->node_count; i++)
		d->nodes[i].function = place[d->nodes[i].function];
	free(d->functions);
	d->functions = sorted;
	return 0;
}

int functions_make(struct diff *d, const struct identity *id)
{
	size_t count = id->keys.len;
	_cleanup_(freep) uint32_t *inside = calloc(count + 1, sizeof(*inside));

	d->functions = calloc(count + 1, sizeof(*d->functions));
	if (!inside || !d->functions)
		return -ENOMEM;
	d->function_count = count;
	for (size_t i = 0; i < count; i++)
		d->functions[i] = describe_function(d->input->profile, &id->keys.items[i]);
	sum_functions(d, inside);
	d->nodes[0].function = NONE;
	return order_functions(d);
}
