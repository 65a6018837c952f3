/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/budget.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"

/* A call that costs more than before. */
struct claim {
	uint32_t node;
	bool is_new;
	double up;
};

struct claims {
	struct claim *items; /* a VEC */
	size_t len;
	size_t cap;
};

static void claims_release(struct claims *c)
{
	vec_release(c);
}

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->is_new != y->is_new)
		return x->is_new ? -1 : 1;
	if (x->up != y->up)
		return x->up > y->up ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* What a node's own code and calls that are gone took: work that went to its other calls. Own code
 * that takes more than before has been paid first. */
static double released(const struct diff *d, uint32_t at, double unit)
{
	const struct diff_node *nodes = d->nodes, *n = &nodes[at];
	double sum = (double)n->base_self * unit - (double)n->self;

	for (uint32_t c = at + 1; c < n->end; c = nodes[c].end)
		if (!nodes[c].total)
			sum += (double)nodes[c].base_total * unit;
	return sum;
}

static int find_claims(struct claims *out, const struct diff *d, uint32_t at, double unit,
		       double least)
{
	const struct diff_node *nodes = d->nodes;
	int r = 0;

	out->len = 0;
	for (uint32_t c = at + 1; c < nodes[at].end && !r; c = nodes[c].end) {
		double up = (double)nodes[c].total - (double)nodes[c].base_total * unit;

		if (up > least)
			r = vec_push(out, ((struct claim){ c, !nodes[c].base_total, up }));
	}
	if (out->len)
		qsort(out->items, out->len, sizeof(*out->items), compare_claims);
	return r;
}

/* Callers before callees: what a node was paid it hands on with what it released itself. */
static int spend(const struct diff *d, double unit, double least, double *of_node)
{
	_cleanup_(claims_release) struct claims claims = { 0 };

	for (uint32_t i = 1; i < d->node_count; i++) {
		double budget = of_node[i] + released(d, i, unit);

		if (!(budget > 0))
			continue;
		if (find_claims(&claims, d, i, unit, least) < 0)
			return -ENOMEM;
		for (size_t k = 0; k < claims.len && budget > 0; k++) {
			double share = fmin(budget, claims.items[k].up);

			of_node[claims.items[k].node] = share;
			budget -= share;
		}
	}
	return 0;
}

int budget_spend(const struct diff *d, double unit, double least, double **paid)
{
	_cleanup_(freep) uint32_t *inside = calloc(d->function_count + 1, sizeof(*inside));
	_cleanup_(freep) double *of_node = calloc(d->node_count, sizeof(*of_node));
	_cleanup_(freep) double *sums = calloc(d->function_count + 1, sizeof(*sums));

	if (!inside || !of_node || !sums || spend(d, unit, least, of_node) < 0)
		return -ENOMEM;
	for (uint32_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];

		if (i < inside[n->function])
			continue;
		inside[n->function] = n->end;
		sums[n->function] += of_node[i];
	}
	*paid = take_ptr(sums);
	return 0;
}
