/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/gate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "diff/dispersion.h"

#define ALPHA 0.05 /* chance that any of the lower ends is too high; as much above */
#define POWER 0.9  /* of `detectable` */

const char *const gate_result_names[GATE_RESULT_COUNT] = {
	[GATE_PASS] = "pass",
	[GATE_REGRESSION] = "regression",
	[GATE_INCONCLUSIVE] = "inconclusive",
};

const uint8_t gate_exit_codes[GATE_RESULT_COUNT] = {
	[GATE_PASS] = 0,
	[GATE_REGRESSION] = 5,
	[GATE_INCONCLUSIVE] = 6,
};

struct judge {
	const struct diff *d;
	struct gate *g;
	struct dispersion x;
	double scale;      /* of a base tick, by exposure */
	double base_total; /* in ticks of current */
	VEC(struct gate_row) rows;
	double *moved; /* by function: cost that came from its callers' own */
};

static void judge_release(struct judge *j)
{
	dispersion_release(&j->x);
	vec_release(&j->rows);
	free(j->moved);
}

static double cost(const struct judge *j, uint64_t base, uint64_t current)
{
	return (double)current - (double)base * j->scale;
}

/* --- cost that moved -------------------------------------------------------------------------- */

/* What a node's own code and calls that are gone took: work that moved to its other calls. */
static double released(const struct judge *j, uint32_t at)
{
	const struct diff_node *nodes = j->d->nodes, *n = &nodes[at];
	double sum = fmax(0, -cost(j, n->base_self, n->self));

	for (uint32_t c = at + 1; c < n->end; c = nodes[c].end)
		if (!nodes[c].total)
			sum += (double)nodes[c].base_total * j->scale;
	return sum;
}

/*
 * A child that costs more, below a caller that does not: did its cost come from the caller's own
 * code, or from calls that are gone? The nearest caller that is not up as well decides.
 */
static bool has_moved(const struct judge *j, uint32_t at)
{
	const struct diff_node *nodes = j->d->nodes;
	double up = cost(j, nodes[at].base_total, nodes[at].total);

	for (uint32_t a = at; a;) {
		a = nodes[a].parent;
		if (cost(j, nodes[a].base_total, nodes[a].total) <= up / 2)
			return a && released(j, a) >= up / 2;
	}
	return false;
}

static int find_moved(struct judge *j)
{
	const struct diff *d = j->d;
	_cleanup_(freep) uint32_t *inside = calloc(d->function_count + 1, sizeof(*inside));

	j->moved = calloc(d->function_count + 1, sizeof(*j->moved));
	if (!inside || !j->moved)
		return -ENOMEM;
	for (uint32_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		double up = cost(j, n->base_total, n->total);

		if (i < inside[n->function])
			continue;
		inside[n->function] = n->end;
		if (up > j->g->floor / 2 * j->base_total && has_moved(j, i))
			j->moved[n->function] += up;
	}
	return 0;
}

/* --- functions -------------------------------------------------------------------------------- */

static bool is_above_floor(const struct judge *j, struct counts n)
{
	double floor = j->g->floor * j->base_total;

	return (double)n.current > floor || (double)n.base * j->scale > floor;
}

/* Intervals of so many functions miss together as rarely as one should (Sidak). */
static double each_alpha(size_t count)
{
	return count ? -expm1(log1p(-ALPHA) / (double)count) : ALPHA;
}

static uint8_t judge_function(const struct judge *j, const struct gate_row *row, struct counts n)
{
	double limit = 1 + j->g->threshold, up = cost(j, n.base, n.current);
	double could = ((double)row->high - 1) * fmax((double)n.base, 0.5) * j->scale;

	if (row->low > limit && row->cost > j->g->floor)
		return j->moved[row->function] >= up / 2 ? GATE_MOVED : GATE_SLOWER;
	if (row->high > limit && could > j->g->floor * j->base_total)
		return GATE_UNDETERMINED;
	return GATE_FINE;
}

static int judge_functions(struct judge *j)
{
	struct contrast c = { .scale = j->scale, .centre = 1 };
	double beyond[4], limit = 1 + j->g->threshold;
	size_t count = 0;
	int r = 0;

	for (size_t i = 0; i < j->d->function_count; i++)
		count += is_above_floor(j, diff_counts(j->d, COUNTED_FUNCTION, i));
	c.alpha = 2 * each_alpha(count); /* contrast has it for both ends */
	contrast_prepare(&c, &j->x, COUNTED_FUNCTION);
	for (int s = 0; s < 4; s++)
		beyond[s] = c.t_of[s] + student_quantile(POWER, c.df_of[s]);
	for (size_t i = 0; i < j->d->function_count && !r; i++) {
		struct counts n = diff_counts(j->d, COUNTED_FUNCTION, i);
		struct gate_row row = { .function = (uint32_t)i };
		double low, high;

		if (!is_above_floor(j, n))
			continue;
		contrast_choose(&c, i, n);
		contrast_interval(&c, n, &low, &high);
		row.ratio = (float)contrast_ratio(&c, n);
		row.low = (float)low;
		row.high = (float)high;
		row.cost = (float)(cost(j, n.base, n.current) / j->base_total);
		row.detectable =
			(float)(limit * exp(beyond[contrast_sides(n)] * contrast_error(&c, n)));
		row.verdict = judge_function(j, &row, n);
		r = vec_push(&j->rows, row);
	}
	return r;
}

static int compare_rows(const void *a, const void *b)
{
	const struct gate_row *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Sets the verdict of the total and what it could have grown by. */
static void judge_total(struct judge *j)
{
	const struct diff_measure *m = &j->d->total.measure;
	double limit = 1 + j->g->threshold;

	if (j->g->is_blind || isnan(m->ratio))
		return;
	j->g->could = (double)m->high - 1;
	if (m->low > limit)
		j->g->total = GATE_SLOWER;
	else if (m->high > limit + j->g->floor)
		j->g->total = GATE_UNDETERMINED;
}

/*
 * What the functions that look slower or new may have added together: by their own ticks, which
 * do not overlap, and only those whose own interval is above 1. Cost that moved is none.
 */
static double candidates_could(const struct judge *j)
{
	struct contrast c = { .scale = j->scale, .centre = 1, .alpha = ALPHA };
	double sum = 0, variance = 0;

	contrast_prepare(&c, &j->x, COUNTED_FUNCTION_SELF);
	for (size_t i = 0; i < j->d->function_count; i++) {
		struct counts n = diff_counts(j->d, COUNTED_FUNCTION_SELF, i);
		double low, high, up;

		if (!n.base && !n.current)
			continue;
		contrast_choose(&c, i, n);
		contrast_interval(&c, n, &low, &high);
		up = cost(j, n.base, n.current);
		if (low <= 1 || j->moved[i] >= up / 2)
			continue;
		sum += up;
		variance += c.phi * ((double)n.current + c.scale * c.scale * (double)n.base);
	}
	return (sum + c.t_of[3] * sqrt(variance)) / j->base_total;
}

static bool has_slower(const struct gate *g)
{
	for (size_t i = 0; i < g->row_count; i++)
		if (g->rows[i].verdict == GATE_SLOWER)
			return true;
	return g->total == GATE_SLOWER;
}

static void decide(struct judge *j)
{
	struct gate *g = j->g;
	double together = candidates_could(j);

	if (j->x.by == DIFF_BY_POISSON) {
		g->reason = "noise unknown: files without time, one a side; give several of each";
	} else if (has_slower(g)) {
		g->result = GATE_REGRESSION;
		return;
	} else if (g->total == GATE_UNDETERMINED) {
		g->reason = "the total could have grown beyond the threshold; give more runs, or "
			    "longer ones";
	} else if (together > g->threshold + g->floor) {
		g->reason = "what looks slower or new could exceed the threshold together; give "
			    "more runs, or longer ones";
	}
	if (isnan(g->could))
		g->could = together;
	g->result = g->reason ? GATE_INCONCLUSIVE : GATE_PASS;
}

/* Exposure, and what it makes of a base tick. */
static enum exposure choose_exposure(struct judge *j)
{
	const struct diff_side_sum *b = &j->d->side[DIFF_BASE], *c = &j->d->side[DIFF_CURRENT];

	j->scale = j->d->scale;
	if (j->d->normalize == DIFF_WORK)
		return EXPOSURE_WORK;
	if (j->d->normalize == DIFF_ABSOLUTE)
		return EXPOSURE_EQUAL;
	j->g->is_blind = true;
	j->scale = (double)c->ticks / (double)b->ticks;
	return EXPOSURE_TICKS;
}

static int judge_all(struct judge *j)
{
	int r = dispersion_measure(&j->x, j->d, choose_exposure(j), false);

	j->base_total = (double)j->d->side[DIFF_BASE].ticks * j->scale;
	if (!r)
		r = find_moved(j);
	if (!r)
		r = judge_functions(j);
	if (r < 0)
		return r;
	if (j->rows.len)
		qsort(j->rows.items, j->rows.len, sizeof(struct gate_row), compare_rows);
	j->g->row_count = j->rows.len;
	j->g->rows = take_ptr(j->rows.items);
	judge_total(j);
	decide(j);
	return 0;
}

int gate_new(const struct diff *d, double threshold, double floor, struct gate **out)
{
	_cleanup_(gate_freep) struct gate *g = calloc(1, sizeof(*g));
	_cleanup_(judge_release) struct judge j = { .d = d, .g = g };
	int r = 0;

	if (!g)
		return -ENOMEM;
	g->threshold = threshold;
	g->floor = floor;
	g->could = NAN;
	if (d->side[DIFF_BASE].ticks && d->side[DIFF_CURRENT].ticks) {
		r = judge_all(&j);
	} else {
		g->result = GATE_INCONCLUSIVE;
		g->reason =
			d->side[DIFF_BASE].ticks ? "current has no samples" : "base has no samples";
	}
	if (r < 0)
		return r;
	*out = take_ptr(g);
	return 0;
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	free(g->rows);
	free(g);
}
