/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parallel.h"
#include "diff/dispersion.h"
#include "diff/identity.h"
#include "diff/union.h"

#define NONE UINT32_MAX
#define ALPHA 0.05         /* of intervals */
#define MISSED_MAX 0.01    /* chance below which what is on one side only is new or removed */
#define POWER 0.9          /* of `detectable` */
#define UNRELATED_MAX 0.01 /* share of both sides' time in common paths */

const char *const diff_normalize_names[] = {
	[DIFF_AUTO] = NULL,     [DIFF_ABSOLUTE] = "absolute", [DIFF_SECOND] = "second",
	[DIFF_SHARE] = "share", [DIFF_WORK] = "work",
};

const char *const diff_class_names[DIFF_CLASS_COUNT] = {
	[DIFF_UNCHANGED] = "unchanged", [DIFF_UNDETERMINED] = "undetermined",
	[DIFF_RARE] = "rare",           [DIFF_SLOWER_1] = "slower1",
	[DIFF_SLOWER_2] = "slower2",    [DIFF_SLOWER_3] = "slower3",
	[DIFF_SLOWER_4] = "slower4",    [DIFF_FASTER_1] = "faster1",
	[DIFF_FASTER_2] = "faster2",    [DIFF_FASTER_3] = "faster3",
	[DIFF_FASTER_4] = "faster4",    [DIFF_NEW] = "new",
	[DIFF_REMOVED] = "removed",
};

const char *const diff_match_names[DIFF_MATCH_COUNT] = {
	[DIFF_MATCH_NONE] = NULL,         [DIFF_MATCH_EXACT] = "exact",
	[DIFF_MATCH_RENAMED] = "renamed", [DIFF_MATCH_INSERTED] = "inserted",
	[DIFF_MATCH_DELETED] = "deleted",
};

const char *const diff_dispersion_names[DIFF_DISPERSION_COUNT] = {
	[DIFF_BY_POISSON] = "poisson",
	[DIFF_BY_BLOCKS] = "blocks",
	[DIFF_BY_RUNS] = "runs",
};

double diff_percent(double self, double baseline)
{
	if (baseline > 0)
		return 100 * (self - baseline) / baseline;
	return self > 0 ? 100 : 0;
}

/* --- scale ------------------------------------------------------------------------------------ */

static enum diff_normalize choose_normalize(const struct diff *d)
{
	const struct diff_side_sum *b = &d->side[DIFF_BASE], *c = &d->side[DIFF_CURRENT];

	if (b->work > 0 && c->work > 0)
		return DIFF_WORK;
	if ((b->is_whole && c->is_whole) || !(b->seconds > 0 && c->seconds > 0))
		return DIFF_ABSOLUTE;
	return DIFF_SECOND;
}

#define SCALE_MAX 1e12 /* what is beyond is no profile's; ratios stay within a float */

/* Exposure of a side, in the unit of the normalisation; 0: unknown. */
static double side_exposure(const struct diff_side_sum *s, enum diff_normalize normalize)
{
	switch (normalize) {
	case DIFF_SECOND:
		return s->seconds;
	case DIFF_WORK:
		return s->work;
	case DIFF_SHARE:
		return (double)s->ticks * (s->interval_ns > 0 ? s->interval_ns : 1);
	case DIFF_AUTO:
	case DIFF_ABSOLUTE:
		break;
	}
	return s->runs;
}

/* Nothing can be scaled to an empty side, or from it. */
static int find_scale(struct diff *d)
{
	const struct diff_side_sum *b = &d->side[DIFF_BASE], *c = &d->side[DIFF_CURRENT];
	double base = side_exposure(b, d->normalize), current = side_exposure(c, d->normalize);
	double tick =
		b->interval_ns > 0 && c->interval_ns > 0 ? b->interval_ns / c->interval_ns : 1;

	d->scale = 1;
	if (!b->ticks || !c->ticks)
		return 0;
	if (!(base > 0 && current > 0))
		return err_set(-EINVAL,
			       d->normalize == DIFF_WORK
				       ? "the units of work of both sides must be known (--work)"
				       : "a recording does not say how long it was: values of each "
					 "second are not to be had");
	d->scale = tick * current / base;
	if (!(d->scale > 1 / SCALE_MAX && d->scale < SCALE_MAX))
		return err_set(-EINVAL,
			       "a tick of base would be %g of current: one side's length, interval "
			       "or units of work cannot be right",
			       d->scale);
	return 0;
}

/* --- functions -------------------------------------------------------------------------------- */

struct side_sums {
	uint64_t *self;   /* by stack id */
	uint64_t *totals; /* with all above */
};

static void side_sums_release(struct side_sums (*sums)[DIFF_SIDES])
{
	for (int s = 0; s < DIFF_SIDES; s++) {
		free((*sums)[s].self);
		free((*sums)[s].totals);
	}
}

static int sum_stacks(const struct diff_input *in, struct side_sums sums[DIFF_SIDES])
{
	const struct stack_entry *entries = stacktab_entries(in->profile->stacks);
	size_t count = stacktab_count(in->profile->stacks);

	for (int s = 0; s < DIFF_SIDES; s++) {
		sums[s].self = calloc(count, sizeof(uint64_t));
		sums[s].totals = calloc(count, sizeof(uint64_t));
		if (!sums[s].self || !sums[s].totals)
			return -ENOMEM;
	}
	for (size_t i = 0; i < in->runs.len; i++) {
		const struct diff_run *run = in->runs.items[i];

		for (uint32_t b = 0; b < run->block_count; b++)
			for (size_t c = 0; c < run->blocks[b].cells.len; c++) {
				const struct diff_cell *cell = &run->blocks[b].cells.items[c];

				sums[run->side].self[cell->stack] += cell->ticks;
			}
	}
	for (int s = 0; s < DIFF_SIDES; s++) {
		memcpy(sums[s].totals, sums[s].self, count * sizeof(uint64_t));
		for (size_t i = count - 1; i > 0; i--)
			sums[s].totals[entries[i].parent] += sums[s].totals[i];
	}
	return 0;
}

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

/* Keys of the union's nodes become functions. */
static int make_functions(struct diff *d, const struct identity *id)
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

/* --- the robust centre ------------------------------------------------------------------------ */

#define CENTRE_ERRORS 4 /* a centre nearer to 1 may be noise: the error itself is a rough one */

/* What one function says of the centre. */
struct vote {
	uint32_t function;
	double log_ratio;
	double error; /* standard */
};

struct votes {
	struct vote *items; /* a VEC */
	size_t len;
	size_t cap;
	double precision; /* sum of 1 / error^2 */
};

static void votes_release(struct votes *v)
{
	vec_release(v);
}

static int compare_votes(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;

	return x->log_ratio < y->log_ratio ? -1 : x->log_ratio > y->log_ratio;
}

static int collect_votes(const struct diff *d, const struct dispersion *x, struct votes *votes)
{
	struct contrast c = { .scale = d->scale, .centre = 1, .alpha = ALPHA };
	int r = 0;

	contrast_prepare(&c, x, COUNTED_FUNCTION_SELF);
	for (uint32_t i = 0; i < d->function_count && !r; i++) {
		struct counts n = diff_counts(d, COUNTED_FUNCTION_SELF, i);
		struct vote vote = { .function = i };

		if (!n.base || !n.current || n.base + n.current < DIFF_TICKS_MIN)
			continue;
		contrast_choose(&c, i, n);
		vote.log_ratio = log(contrast_ratio(&c, n));
		vote.error = contrast_error(&c, n);
		votes->precision += 1 / (vote.error * vote.error);
		r = vec_push(votes, vote);
	}
	if (votes->len)
		qsort(votes->items, votes->len, sizeof(*votes->items), compare_votes);
	return r;
}

/* Each vote with the weight 1 / error. */
static double median_vote(const struct votes *votes)
{
	double sum = 0, below = 0;
	size_t i;

	for (i = 0; i < votes->len; i++)
		sum += 1 / votes->items[i].error;
	for (i = 0; i + 1 < votes->len && below + 1 / votes->items[i].error < sum / 2; i++)
		below += 1 / votes->items[i].error;
	return votes->items[i].log_ratio;
}

/* Variance of the mean of the votes' log ratios, as one side's replicates have it. */
struct side_variance {
	const struct diff *d;
	const struct dispersion *x;
	const struct votes *votes;
	double variance;
	int error;
};

static int measure_variance(struct side_variance *v, int side)
{
	_cleanup_(freep) double *weights = calloc(v->d->function_count + 1, sizeof(*weights));
	const struct votes *votes = v->votes;

	if (!weights)
		return -ENOMEM;
	for (size_t i = 0; i < votes->len; i++) {
		const struct vote *vote = &votes->items[i];
		struct counts n = diff_counts(v->d, COUNTED_FUNCTION_SELF, vote->function);
		double ticks = side == DIFF_BASE ? (double)n.base : (double)n.current;

		weights[vote->function] =
			1 / (vote->error * vote->error * votes->precision * (ticks + 0.5));
	}
	return dispersion_of_sum(v->x, v->d, side, weights, &v->variance);
}

static void measure_variance_of(void *sides, size_t side)
{
	struct side_variance *v = (struct side_variance *)sides + side;

	v->error = measure_variance(v, (int)side);
}

/*
 * Variance of the mean log ratio, weighted by precision: 1 / precision if functions came and went
 * by themselves. What is called together does so together.
 */
static int mean_variance(const struct diff *d, const struct dispersion *x,
			 const struct votes *votes, double *out)
{
	struct side_variance sides[DIFF_SIDES] = { { .d = d, .x = x, .votes = votes },
						   { .d = d, .x = x, .votes = votes } };

	parallel_run(DIFF_SIDES, measure_variance_of, sides);
	*out = fmax(sides[DIFF_BASE].variance + sides[DIFF_CURRENT].variance, 1 / votes->precision);
	return sides[DIFF_BASE].error ? sides[DIFF_BASE].error : sides[DIFF_CURRENT].error;
}

/*
 * Shares are compositional: where one function gets faster, all others get a larger part. What
 * most functions did, by their own ticks, is no change: the median of their log ratios. The
 * variance of a median is pi / 2 times that of the mean, or less. A median that may be noise
 * itself is no centre, but what it may be off by counts in any case.
 */
static int find_centre(struct diff *d, const struct dispersion *x)
{
	_cleanup_(votes_release) struct votes votes = { 0 };
	double median, variance = 0;
	int r;

	d->centre = 1;
	if (d->normalize != DIFF_SHARE && d->normalize != DIFF_SECOND)
		return 0;
	r = collect_votes(d, x, &votes);
	if (r < 0 || !votes.len)
		return r;
	r = mean_variance(d, x, &votes, &variance);
	d->centre_error = sqrt(M_PI / 2 * variance);
	median = median_vote(&votes);
	if (fabs(median) > CENTRE_ERRORS * d->centre_error)
		d->centre = exp(median);
	return r;
}

/* --- measures and classes --------------------------------------------------------------------- */

static struct contrast relative_contrast(const struct diff *d)
{
	return (struct contrast){
		.scale = d->scale,
		.centre = d->centre,
		.centre_error = d->centre_error,
		.alpha = ALPHA,
	};
}

static void measure(const struct contrast *c, struct counts n, struct diff_measure *out)
{
	double low = NAN, high = NAN;

	if (n.base || n.current)
		contrast_interval(c, n, &low, &high);
	out->ratio = (float)contrast_ratio(c, n);
	out->low = (float)low;
	out->high = (float)high;
	out->q = NAN;
}

static uint8_t marked(const struct diff *d, double ratio)
{
	int mark = 0;

	while (mark < 4 && (ratio >= d->marks[mark] || ratio <= 1 / d->marks[mark]))
		mark++;
	if (!mark)
		return DIFF_UNDETERMINED;
	return (uint8_t)((ratio > 1 ? DIFF_SLOWER_1 : DIFF_FASTER_1) + mark - 1);
}

static uint8_t classify(const struct diff *d, const struct diff_measure *m)
{
	uint8_t class = m->q <= DIFF_Q_MAX ? marked(d, m->ratio) : DIFF_UNDETERMINED;

	if (isnan(m->ratio))
		return DIFF_UNCHANGED;
	if (diff_class_is_grey(class) && m->low > 1 / d->marks[0] && m->high < d->marks[0])
		return DIFF_UNCHANGED;
	return class;
}

/* Of something that is on one side only. */
static uint8_t classify_absence(const struct contrast *c, struct counts n)
{
	if (contrast_missed(c, n) >= MISSED_MAX)
		return DIFF_RARE;
	return n.current ? DIFF_NEW : DIFF_REMOVED;
}

static bool is_one_sided(struct counts n)
{
	return !n.base != !n.current;
}

/* Where the measure and class of a thing are kept. */
struct place {
	struct diff_measure *measure; /* NULL: of a node's self, only the class is */
	uint8_t *class;
};

static struct place place_of(struct diff *d, enum counted kind, size_t at)
{
	switch (kind) {
	case COUNTED_NODE:
		return (struct place){ &d->nodes[at].measure, &d->nodes[at].class };
	case COUNTED_NODE_SELF:
		return (struct place){ NULL, &d->nodes[at].self_class };
	case COUNTED_FUNCTION:
		return (struct place){ &d->functions[at].measure, &d->functions[at].class };
	case COUNTED_FUNCTION_SELF:
		break;
	}
	return (struct place){ &d->functions[at].self_measure, &d->functions[at].self_class };
}

/* A self time where there was none is no new function: that has no counterpart at all. */
static bool is_absence(const struct diff *d, enum counted kind, size_t at, struct counts n)
{
	if (kind == COUNTED_NODE_SELF || kind == COUNTED_FUNCTION_SELF)
		return is_one_sided(n) && is_one_sided(diff_counts(d, kind - 1, at));
	return is_one_sided(n);
}

struct tested {
	double *chance;
	size_t *thing;
	size_t *order;
	size_t count;
};

static void tested_release(struct tested *t)
{
	free(t->chance);
	free(t->thing);
	free(t->order);
}

static int test_all(const struct diff *d, enum counted kind, size_t first, size_t count,
		    struct contrast *c, struct tested *t)
{
	size_t tests = 0;

	for (size_t i = first; i < count; i++) {
		struct counts n = diff_counts(d, kind, i);

		tests += n.base + n.current >= DIFF_TICKS_MIN;
	}
	t->chance = calloc(tests + 1, sizeof(*t->chance));
	t->thing = calloc(tests + 1, sizeof(*t->thing));
	t->order = calloc(tests + 1, sizeof(*t->order));
	if (!t->chance || !t->thing || !t->order)
		return -ENOMEM;
	for (size_t i = first; i < count; i++) {
		struct counts n = diff_counts(d, kind, i);

		if (n.base + n.current < DIFF_TICKS_MIN)
			continue;
		contrast_choose(c, i, n);
		t->chance[t->count] = contrast_chance(c, n);
		t->thing[t->count++] = i;
	}
	false_discovery_rates(t->chance, t->order, t->count);
	return 0;
}

/* Things first .. count - 1 of a kind. */
static int measure_all(struct diff *d, const struct dispersion *x, enum counted kind, size_t first,
		       size_t count)
{
	_cleanup_(tested_release) struct tested t = { 0 };
	struct contrast c = relative_contrast(d);
	size_t next = 0;
	int r;

	contrast_prepare(&c, x, kind);
	r = test_all(d, kind, first, count, &c, &t);
	for (size_t i = first; i < count && !r; i++) {
		struct counts n = diff_counts(d, kind, i);
		struct place place = place_of(d, kind, i);
		struct diff_measure m;

		contrast_choose(&c, i, n);
		measure(&c, n, &m);
		if (next < t.count && t.thing[next] == i)
			m.q = (float)t.chance[next++];
		*place.class =
			is_absence(d, kind, i, n) ? classify_absence(&c, n) : classify(d, &m);
		if (place.measure)
			*place.measure = m;
	}
	return r;
}

static void find_detectable(struct diff *d, const struct dispersion *x)
{
	struct contrast c = relative_contrast(d);
	double beyond[4];

	contrast_prepare(&c, x, COUNTED_FUNCTION);
	for (int sides = 0; sides < 4; sides++)
		beyond[sides] = c.t_of[sides] + student_quantile(POWER, c.df_of[sides]);
	for (size_t i = 0; i < d->function_count; i++) {
		struct counts n = diff_counts(d, COUNTED_FUNCTION, i);

		contrast_choose(&c, i, n);
		d->functions[i].detectable =
			(float)exp(beyond[contrast_sides(n)] * contrast_error(&c, n));
	}
}

/* Below a path that is surely new everything is new, however rare. */
static void inherit_absence(struct diff *d)
{
	for (size_t i = 1; i < d->node_count; i++) {
		struct diff_node *n = &d->nodes[i];
		const struct diff_node *parent = &d->nodes[n->parent];
		bool is_absent = !n->base_total || !n->total;
		bool is_below = n->parent && (!parent->base_total || !parent->total);

		n->is_top = is_absent && !is_below;
		if (n->class == DIFF_RARE && is_below)
			n->class = parent->class;
		if (n->self_class == DIFF_RARE && !diff_class_is_grey(n->class) && is_absent)
			n->self_class = n->class;
	}
}

/* Where all of the time is a thing's own there is one time, and one verdict on it: the total's. */
static void unite_verdicts(struct diff *d)
{
	for (size_t i = 0; i < d->node_count; i++) {
		struct diff_node *n = &d->nodes[i];

		if (n->base_self == n->base_total && n->self == n->total)
			n->self_class = n->class;
	}
	for (size_t i = 0; i < d->function_count; i++) {
		struct diff_function *f = &d->functions[i];

		if (f->base_self == f->base_total && f->self == f->total)
			f->self_class = f->class;
	}
}

/* --- sums over the graph ---------------------------------------------------------------------- */

static void measure_total(struct diff *d, const struct dispersion *x)
{
	struct contrast c = { .scale = d->scale, .centre = 1, .alpha = ALPHA };
	struct counts n = diff_counts(d, COUNTED_NODE, 0);
	struct diff_total *total = &d->total;

	contrast_prepare(&c, x, COUNTED_NODE);
	contrast_choose(&c, 0, n);
	measure(&c, n, &total->measure);
	total->baseline = diff_baseline(d, n.base);
	total->value = (double)n.current;
	if (d->normalize == DIFF_SHARE && n.base && n.current)
		total->measure = (struct diff_measure){ 1, 1, 1, NAN }; /* by definition */
	else if (n.base + n.current >= DIFF_TICKS_MIN)
		total->measure.q = (float)contrast_chance(&c, n);
	total->class = is_one_sided(n) ? classify_absence(&c, n) : classify(d, &total->measure);
	d->nodes[0].measure = total->measure;
	d->nodes[0].class = total->class;
}

static void sum_classes(struct diff *d)
{
	double coloured = 0, area = 0;

	for (size_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		double width = fmax(diff_baseline(d, n->base_total), (double)n->total);

		d->counts[n->class]++;
		d->elided_count += diff_is_elided(n);
		area += width;
		if (!diff_class_is_grey(n->class))
			coloured += width;
	}
	d->coloured = area > 0 ? coloured / area : 0;
}

/* --- notes ------------------------------------------------------------------------------------ */

/* Ticks of paths of both sides, the inserted and deleted left out: in base x scale and current. */
static double common_share(const struct diff *d)
{
	double common = 0, all = 0;

	for (size_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		double ticks = diff_baseline(d, n->base_self) + (double)n->self;

		all += ticks;
		if (n->base_total && n->total)
			common += ticks;
	}
	return all > 0 ? common / all : 1;
}

static int note_renames(struct diff *d, const struct identity *id, const struct diff_renames *all)
{
	int r = 0;

	for (size_t i = 0; i < id->used_renames.len && !r; i++) {
		const struct diff_name *old = &all->items[i].old;

		if (!id->used_renames.items[i])
			r = texts_addf(&d->notes, "base has no %s%s%s to rename",
				       old->file ? old->file : "",
				       old->file && old->qualname ? ":" : "",
				       old->qualname ? old->qualname : "");
	}
	return r;
}

static int note(struct diff *d)
{
	static const char *const sides[] = { "base", "current" };
	int r = 0;

	for (int s = 0; s < DIFF_SIDES && !r; s++)
		if (!d->side[s].ticks)
			r = texts_addf(&d->notes, "%s has no samples", sides[s]);
	if (!r && d->side[0].ticks && d->side[1].ticks) {
		if (common_share(d) <= UNRELATED_MAX)
			r = texts_addf(&d->notes, "the sides have next to no call path in "
						  "common: these are different programs, or "
						  "their code has moved (--rename OLD=NEW)");
		if (!r && d->dispersion == DIFF_BY_POISSON)
			r = texts_addf(&d->notes, "noise unknown: files without time, one a "
						  "side; give several of each (--baseline)");
	}
	if (!r && d->centre != 1)
		r = texts_addf(&d->notes,
			       "changes are relative to what most functions did: "
			       "x %.3f",
			       d->centre);
	return r;
}

static int copy_notes(struct diff *d, const struct texts *notes)
{
	int r = 0;

	for (size_t i = 0; notes && i < notes->len && !r; i++)
		r = texts_addf(&d->notes, "%s", notes->items[i]);
	return r;
}

/* --- all of it -------------------------------------------------------------------------------- */

static enum exposure exposure_for(enum diff_normalize normalize)
{
	switch (normalize) {
	case DIFF_SECOND:
		return EXPOSURE_TIME;
	case DIFF_SHARE:
		return EXPOSURE_TICKS;
	case DIFF_WORK:
		return EXPOSURE_WORK;
	case DIFF_AUTO:
	case DIFF_ABSOLUTE:
		break;
	}
	return EXPOSURE_EQUAL;
}

/* Kinds are kept in places of their own, and measured at the same time. */
struct measuring {
	struct diff *d;
	const struct dispersion *x;
	int error[COUNTED_KINDS];
};

static void measure_kind(void *measuring, size_t kind)
{
	struct measuring *m = measuring;
	bool of_nodes = kind <= COUNTED_NODE_SELF;

	m->error[kind] = measure_all(m->d, m->x, kind, of_nodes,
				     of_nodes ? m->d->node_count : m->d->function_count);
}

static int compare_sides(struct diff *d)
{
	_cleanup_(dispersion_release) struct dispersion x = { 0 };
	struct measuring m = { .d = d, .x = &x };
	int r = dispersion_measure(&x, d, exposure_for(d->normalize), true);

	d->dispersion = x.by;
	if (!r)
		r = find_centre(d, &x);
	if (!r)
		parallel_run(COUNTED_KINDS, measure_kind, &m);
	for (int k = 0; k < COUNTED_KINDS && !r; k++)
		r = m.error[k];
	if (r < 0)
		return r;
	inherit_absence(d);
	find_detectable(d, &x);
	measure_total(d, &x);
	unite_verdicts(d);
	sum_classes(d);
	return 0;
}

static int join_sides(struct diff *d, const struct diff_renames *renames)
{
	_cleanup_(side_sums_release) struct side_sums sums[DIFF_SIDES] = { { NULL, NULL } };
	_cleanup_(identity_release) struct identity id = { { NULL, NULL }, VEC_INIT, VEC_INIT };
	const uint64_t *self[DIFF_SIDES], *totals[DIFF_SIDES];
	int r = sum_stacks(d->input, sums);

	for (int s = 0; s < DIFF_SIDES; s++) {
		self[s] = sums[s].self;
		totals[s] = sums[s].totals;
	}
	if (!r)
		r = identity_make(&id, d->input, totals, renames);
	if (!r)
		r = union_make(d, &id, self, totals);
	if (!r)
		r = make_functions(d, &id);
	return r ? r : note_renames(d, &id, renames);
}

int diff_new(const struct diff_input *input, const struct diff_options *o, struct diff **out)
{
	static const float marks[] = DIFF_MARKS;
	_cleanup_(diff_freep) struct diff *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->input = input;
	memcpy(d->marks, o->marks[0] > 0 ? o->marks : marks, sizeof(d->marks));
	for (int s = 0; s < DIFF_SIDES; s++)
		diff_input_sum(input, s, &d->side[s]);
	d->normalize = o->normalize == DIFF_AUTO ? choose_normalize(d) : o->normalize;
	r = find_scale(d);
	if (!r)
		r = copy_notes(d, o->notes);
	if (!r)
		r = join_sides(d, o->renames);
	if (!r)
		r = compare_sides(d);
	if (!r)
		r = note(d);
	if (r < 0)
		return r;
	*out = take_ptr(d);
	return 0;
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	free(d->nodes);
	free(d->functions);
	for (int s = 0; s < DIFF_SIDES; s++)
		free(d->node_of[s]);
	texts_release(&d->notes);
	free(d);
}
