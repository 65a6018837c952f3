/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/classes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "diff/contrast.h"

#define ALPHA 0.05      /* of intervals */
#define MISSED_MAX 0.01 /* chance below which what is on one side only is new or removed */

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

/* --- tests ------------------------------------------------------------------------------------ */

/*
 * Things of one kind. q is worked out among those of about the same size: what takes more than the
 * floor of either side, and the rest, of which there are so many that nothing would be sure of
 * what is seen. Where there are both, each q counts twice, so that the promise holds for all.
 */
enum family { FAMILY_LARGE, FAMILY_SMALL };
#define FAMILIES 2

struct tests {
	const struct diff *d;
	struct contrast contrast;
	enum counted kind;
	const double *weights; /* by thing; NULL: each is a finding of its own */
	size_t count;
	float *q;                  /* by thing; NAN: not tested */
	unsigned int families;     /* of which there is any */
	double findings[FAMILIES]; /* sums of weights: of what is sure, */
	double all[FAMILIES];      /* of what was tested */
};

/* What is sorted for it. */
struct tested {
	double *chance, *weight;
	size_t *thing, *order;
	size_t count;
};

static void tested_release(struct tested *t)
{
	free(t->chance);
	free(t->weight);
	free(t->thing);
	free(t->order);
}

static int tested_allocate(struct tested *t, size_t count)
{
	t->chance = calloc(count + 1, sizeof(*t->chance));
	t->weight = calloc(count + 1, sizeof(*t->weight));
	t->thing = calloc(count + 1, sizeof(*t->thing));
	t->order = calloc(count + 1, sizeof(*t->order));
	return t->chance && t->weight && t->thing && t->order ? 0 : -ENOMEM;
}

static enum family family_of(const struct diff *d, struct counts n)
{
	bool is_large = (double)n.base > DIFF_FLOOR * (double)d->side[DIFF_BASE].ticks ||
			(double)n.current > DIFF_FLOOR * (double)d->side[DIFF_CURRENT].ticks;

	return is_large ? FAMILY_LARGE : FAMILY_SMALL;
}

/* The root is one test of its own. */
static size_t first_thing(enum counted kind)
{
	return kind <= COUNTED_NODE_SELF ? 1 : 0;
}

static bool is_tested(const struct tests *t, size_t thing, enum family family)
{
	struct counts n = diff_counts(t->d, t->kind, thing);

	return diff_is_enough(t->d, t->kind, thing, n) && family_of(t->d, n) == family;
}

static int test_family(struct tests *t, enum family family, size_t count)
{
	_cleanup_(tested_release) struct tested found = { 0 };
	int r = tested_allocate(&found, count);

	for (size_t i = first_thing(t->kind); i < t->count && !r; i++) {
		struct counts n = diff_counts(t->d, t->kind, i);

		if (!is_tested(t, i, family))
			continue;
		contrast_choose(&t->contrast, i, n);
		found.chance[found.count] = contrast_chance(&t->contrast, n);
		found.weight[found.count] = t->weights ? t->weights[i] : 1;
		found.thing[found.count++] = i;
	}
	if (r < 0)
		return r;
	false_discovery_rates(found.chance, found.weight, found.order, found.count);
	for (size_t i = 0; i < found.count; i++) {
		double q = fmin(found.chance[i] * t->families, 1);

		t->q[found.thing[i]] = (float)q;
		t->all[family] += found.weight[i];
		if (q <= DIFF_Q_MAX)
			t->findings[family] += found.weight[i];
	}
	return 0;
}

static int test_all(struct tests *t)
{
	size_t count[FAMILIES] = { 0 };
	int r = 0;

	t->q = malloc((t->count + 1) * sizeof(*t->q));
	if (!t->q)
		return -ENOMEM;
	for (size_t i = 0; i < t->count; i++)
		t->q[i] = NAN;
	for (int f = 0; f < FAMILIES; f++) {
		for (size_t i = first_thing(t->kind); i < t->count; i++)
			count[f] += is_tested(t, i, f);
		t->families += count[f] > 0;
	}
	for (int f = 0; f < FAMILIES && !r; f++)
		r = test_family(t, f, count[f]);
	return r;
}

/* --- what is a finding of its own ------------------------------------------------------------- */

/*
 * A box with next to all of its time in one callee is that one's finding again: it counts as far
 * as its largest callee leaves something.
 */
struct weights {
	double *node, *function;
};

static void weights_release(struct weights *w)
{
	free(w->node);
	free(w->function);
}

static double ticks_of(const struct diff *d, const struct diff_node *n)
{
	return (double)n->base_total * d->scale + (double)n->total;
}

static int weigh(struct weights *w, const struct diff *d)
{
	_cleanup_(freep) uint32_t *inside = calloc(d->function_count + 1, sizeof(*inside));
	_cleanup_(freep) double *sums = calloc(d->function_count + 1, sizeof(*sums));

	w->node = calloc(d->node_count + 1, sizeof(*w->node));
	w->function = calloc(d->function_count + 1, sizeof(*w->function));
	if (!inside || !sums || !w->node || !w->function)
		return -ENOMEM;
	for (size_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];

		w->node[n->parent] = fmax(w->node[n->parent], ticks_of(d, n));
	}
	for (uint32_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		double ticks = ticks_of(d, n), left = fmax(ticks - w->node[i], 0);

		w->node[i] = ticks > 0 ? left / ticks : 0;
		if (i < inside[n->function])
			continue;
		inside[n->function] = n->end;
		w->function[n->function] += left;
		sums[n->function] += ticks;
	}
	for (size_t i = 0; i < d->function_count; i++)
		w->function[i] = sums[i] > 0 ? w->function[i] / sums[i] : 0;
	return 0;
}

/* --- all of a kind ---------------------------------------------------------------------------- */

static void classify_all(struct diff *d, struct tests *t)
{
	for (size_t i = first_thing(t->kind); i < t->count; i++) {
		struct counts n = diff_counts(d, t->kind, i);
		struct place place = place_of(d, t->kind, i);
		struct diff_measure m;

		contrast_choose(&t->contrast, i, n);
		measure(&t->contrast, n, &m);
		m.q = t->q[i];
		if (diff_is_unsampled(d, t->kind, i))
			*place.class = DIFF_UNDETERMINED;
		else
			*place.class = is_absence(d, t->kind, i, n)
					       ? classify_absence(&t->contrast, n)
					       : classify(d, &m);
		if (place.measure)
			*place.measure = m;
	}
}

/* One finding more, among as many as there are. */
static void find_detectable(struct diff *d, struct tests *t)
{
	struct demand demand[FAMILIES];

	for (int f = 0; f < FAMILIES; f++) {
		double tested = fmax(t->all[f], 1) * fmax(t->families, 1);

		demand_init(&demand[f], DIFF_Q_MAX * fmax(t->findings[f], 1) / tested);
		demand[f].above = (double)d->marks[0];
	}
	for (size_t i = 0; i < t->count; i++) {
		struct counts n = diff_counts(d, t->kind, i);

		contrast_choose(&t->contrast, i, n);
		d->functions[i].detectable =
			d->functions[i].is_unsampled
				? INFINITY
				: (float)contrast_detectable(&t->contrast, n.base,
							     &demand[family_of(d, n)]);
	}
}

/* Kinds are kept in places of their own, and measured at the same time. */
struct measuring {
	struct diff *d;
	const struct dispersion *x;
	const struct weights *weights;
	int error[COUNTED_KINDS];
};

static int measure_kind(const struct measuring *m, enum counted kind)
{
	struct tests t = {
		.d = m->d,
		.contrast = relative_contrast(m->d),
		.kind = kind,
		.weights = kind == COUNTED_NODE       ? m->weights->node
			   : kind == COUNTED_FUNCTION ? m->weights->function
						      : NULL,
		.count = kind <= COUNTED_NODE_SELF ? m->d->node_count : m->d->function_count,
	};
	int r;

	contrast_prepare(&t.contrast, m->x, kind);
	r = test_all(&t);
	if (!r)
		classify_all(m->d, &t);
	if (!r && kind == COUNTED_FUNCTION)
		find_detectable(m->d, &t);
	free(t.q);
	return r;
}

static void measure_one(void *measuring, size_t kind)
{
	struct measuring *m = measuring;

	m->error[kind] = measure_kind(m, kind);
}

/* --- all of them ------------------------------------------------------------------------------ */

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

static void measure_total(struct diff *d, const struct dispersion *x)
{
	struct contrast c = { .scale = d->scale, .centre = 1, .alpha = ALPHA, .is_alone = true };
	struct counts n = diff_counts(d, COUNTED_NODE, 0);
	struct diff_total *total = &d->total;

	contrast_prepare(&c, x, COUNTED_NODE);
	contrast_choose(&c, 0, n);
	measure(&c, n, &total->measure);
	total->baseline = diff_baseline(d, n.base);
	total->value = (double)n.current;
	if (d->normalize == DIFF_SHARE && n.base && n.current)
		total->measure = (struct diff_measure){ 1, 1, 1, NAN }; /* by definition */
	else if (diff_is_enough(d, COUNTED_NODE, 0, n))
		total->measure.q = (float)contrast_chance(&c, n);
	total->class = is_one_sided(n) ? classify_absence(&c, n) : classify(d, &total->measure);
	d->nodes[0].measure = total->measure;
	d->nodes[0].class = total->class;
}

int classes_find(struct diff *d, const struct dispersion *x)
{
	_cleanup_(weights_release) struct weights weights = { 0 };
	struct measuring m = { .d = d, .x = x, .weights = &weights };
	int r = weigh(&weights, d);

	if (!r)
		parallel_run(COUNTED_KINDS, measure_one, &m);
	for (int k = 0; k < COUNTED_KINDS && !r; k++)
		r = m.error[k];
	if (r < 0)
		return r;
	inherit_absence(d);
	measure_total(d, x);
	unite_verdicts(d);
	return 0;
}
