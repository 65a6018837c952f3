/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/gate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "diff/budget.h"
#include "diff/centre.h"
#include "diff/contrast.h"
#include "diff/distribution.h"

#define ALPHA 0.05 /* chance that any of the lower ends is too high; as much above */

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
	double scale; /* of a base tick, by exposure */
	struct centre centre;
	double base_total; /* in ticks of current, after scale and centre: what it would cost now */
	VEC(struct gate_row) rows;
	double *paid; /* by function: cost that moved to it, in ticks of current */
};

static void judge_release(struct judge *j)
{
	dispersion_release(&j->x);
	vec_release(&j->rows);
	free(j->paid);
}

static struct contrast contrast_of(const struct judge *j, double alpha)
{
	return (struct contrast){
		.scale = j->scale,
		.centre = j->centre.ratio,
		.centre_error = j->centre.error,
		.alpha = alpha,
	};
}

static double floor_ticks(const struct judge *j)
{
	return j->g->floor * j->base_total;
}

/* --- functions -------------------------------------------------------------------------------- */

static bool is_above_floor(const struct judge *j, uint32_t function, struct counts n)
{
	double unit = j->scale * j->centre.ratio;

	if (j->d->functions[function].is_unsampled)
		return false;
	return (double)n.current > floor_ticks(j) || (double)n.base * unit > floor_ticks(j);
}

/* Intervals of so many functions miss together as rarely as one should (Sidak). */
static double each_alpha(size_t count)
{
	return count ? -expm1(log1p(-ALPHA) / (double)count) : ALPHA;
}

/* The lower end of an interval where runs differ by what is presumed beside what was measured;
 * alpha: chance that it is too high. */
static double lower_end(const struct judge *j, double ratio, double low, double alpha)
{
	double presumed = normal_quantile(1 - alpha) * M_SQRT2 * j->g->run_noise;

	if (!(presumed > 0) || !(low > 0) || !isfinite(ratio))
		return low;
	return ratio * exp(-hypot(log(ratio / low), presumed));
}

/* Its cost came from elsewhere, and what is left is not surely above the floor. */
static bool is_moved(const struct judge *j, const struct contrast *c, struct counts n, double paid)
{
	double run_noise = M_SQRT2 * j->g->run_noise *
			   ((double)n.current + (double)n.base * c->scale * c->centre) / 2;
	double of_paid = contrast_ticks_error(c, paid);
	double error = hypot(hypot(contrast_difference_error(c, n), of_paid), run_noise);

	return paid > floor_ticks(j) &&
	       contrast_difference(c, n) - paid - c->t * error <= floor_ticks(j);
}

static uint8_t judge_function(const struct judge *j, const struct gate_row *row,
			      const struct contrast *c, struct counts n)
{
	double limit = 1 + j->g->threshold;
	double could = ((double)row->high - 1) * fmax((double)n.base, 0.5) * c->scale * c->centre;

	if (row->low > limit && row->cost > j->g->floor)
		return is_moved(j, c, n, j->paid[row->function]) ? GATE_MOVED : GATE_SLOWER;
	if (row->high > limit && could > floor_ticks(j))
		return GATE_UNDETERMINED;
	return GATE_FINE;
}

/* What moved to it is nothing that it added. */
static double own_cost(const struct judge *j, const struct contrast *c, uint32_t function)
{
	bool is_new = !j->d->functions[function].base_total;
	struct counts n =
		diff_counts(j->d, is_new ? COUNTED_FUNCTION : COUNTED_FUNCTION_SELF, function);
	double paid = is_new ? j->paid[function] : 0;

	return (contrast_difference(c, n) - paid) / j->base_total;
}

static struct gate_row make_row(const struct judge *j, struct contrast *c, uint32_t function,
				struct counts n, struct demand *demand)
{
	struct gate_row row = { .function = function };
	double low, high, ratio;

	contrast_choose(c, function, n);
	contrast_interval(c, n, &low, &high);
	ratio = contrast_ratio(c, n);
	row.ratio = (float)ratio;
	row.low = (float)(n.base && n.current ? lower_end(j, ratio, low, c->alpha / 2) : low);
	row.high = (float)high;
	row.cost = (float)(contrast_difference(c, n) / j->base_total);
	row.own = (float)own_cost(j, c, function);
	row.paid = j->paid[function] > floor_ticks(j) ? j->paid[function] : 0;
	row.detectable = (float)contrast_detectable(c, n.base, demand);
	row.verdict = judge_function(j, &row, c, n);
	return row;
}

static int judge_functions(struct judge *j)
{
	struct contrast c;
	struct demand demand;
	size_t count = 0;
	int r = 0;

	for (uint32_t i = 0; i < j->d->function_count; i++)
		count += is_above_floor(j, i, diff_counts(j->d, COUNTED_FUNCTION, i));
	c = contrast_of(j, 2 * each_alpha(count)); /* contrast has it for both ends */
	contrast_prepare(&c, &j->x, COUNTED_FUNCTION);
	demand_init(&demand, 1);
	demand.above = 1 + j->g->threshold;
	demand.is_of_low = true;
	demand.ticks = floor_ticks(j);
	for (uint32_t i = 0; i < j->d->function_count && !r; i++) {
		struct counts n = diff_counts(j->d, COUNTED_FUNCTION, i);

		if (is_above_floor(j, i, n))
			r = vec_push(&j->rows, make_row(j, &c, i, n, &demand));
	}
	return r;
}

static int compare_rows(const void *a, const void *b)
{
	const struct gate_row *x = a, *y = b;

	if (x->own != y->own)
		return x->own > y->own ? -1 : 1;
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
	if (lower_end(j, m->ratio, m->low, ALPHA / 2) > limit)
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
	struct contrast c = contrast_of(j, ALPHA);
	double sum = 0, variance = 0, t = normal_quantile(1 - ALPHA / 2);

	contrast_prepare(&c, &j->x, COUNTED_FUNCTION_SELF);
	for (size_t i = 0; i < j->d->function_count; i++) {
		struct counts n = diff_counts(j->d, COUNTED_FUNCTION_SELF, i);
		double low, high, up;

		if ((!n.base && !n.current) || j->d->functions[i].is_unsampled)
			continue;
		contrast_choose(&c, i, n);
		contrast_interval(&c, n, &low, &high);
		up = contrast_difference(&c, n) - j->paid[i];
		if (low <= 1 || up <= 0)
			continue;
		sum += up;
		variance += pow(contrast_difference_error(&c, n), 2);
		t = fmax(t, c.t);
	}
	return (sum + t * sqrt(variance)) / j->base_total;
}

/* Share of the own time above the floor in which not even a large change would have been found.
 * What is on one side only was found, or is none of the gate's. */
static double blind_share(const struct judge *j)
{
	double limit = 1 + GATE_BLIND_TIMES * j->g->threshold, blind = 0, all = 0;

	for (size_t i = 0; i < j->rows.len; i++) {
		const struct diff_function *f = &j->d->functions[j->rows.items[i].function];
		double own = (double)f->base_self * j->scale * j->centre.ratio + (double)f->self;

		if (!f->base_total || !f->total)
			continue;
		all += own;
		if (!(f->detectable <= limit))
			blind += own;
	}
	return all > 0 ? blind / all : 0;
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
		g->reason =
			"the total may have grown beyond the threshold: add runs, or record longer";
	} else if (together > g->threshold + g->floor) {
		g->reason = "what looks slower or new could exceed the threshold together; give "
			    "more runs, or longer ones";
	} else if (g->blind_share > GATE_BLIND_SHARE) {
		g->reason = "too noisy: most of the program could be slower by three times the "
			    "threshold unnoticed: add runs, or record longer";
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
	int r = dispersion_measure(&j->x, j->d, choose_exposure(j), 0, false);

	if (!r && j->g->is_blind)
		r = centre_find(&j->centre, j->d, &j->x, j->scale);
	j->g->centre = j->centre.ratio;
	j->base_total = (double)j->d->side[DIFF_BASE].ticks * j->scale * j->centre.ratio;
	if (!r)
		r = budget_spend(j->d, j->scale * j->centre.ratio, floor_ticks(j) / 2, &j->paid);
	if (!r)
		r = judge_functions(j);
	if (r < 0)
		return r;
	j->g->blind_share = blind_share(j);
	if (j->rows.len)
		qsort(j->rows.items, j->rows.len, sizeof(struct gate_row), compare_rows);
	j->g->row_count = j->rows.len;
	j->g->rows = take_ptr(j->rows.items);
	judge_total(j);
	decide(j);
	return 0;
}

static bool has_several_runs(const struct diff *d)
{
	return d->side[DIFF_BASE].runs > 1 || d->side[DIFF_CURRENT].runs > 1;
}

int gate_new(const struct diff *d, const struct gate_options *o, struct gate **out)
{
	_cleanup_(gate_freep) struct gate *g = calloc(1, sizeof(*g));
	_cleanup_(judge_release) struct judge j = { .d = d, .g = g, .centre = CENTRE_NONE };
	int r = 0;

	if (!g)
		return -ENOMEM;
	g->threshold = o->threshold;
	g->floor = o->floor;
	g->run_noise = has_several_runs(d) ? 0 : o->run_noise;
	g->centre = 1;
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

void gate_set_elsewhere(struct gate *g, bool is_strict)
{
	g->is_elsewhere = true;
	if (!is_strict)
		return;
	g->result = GATE_INCONCLUSIVE;
	g->reason = "the sides ran in different environments";
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	free(g->rows);
	free(g);
}
