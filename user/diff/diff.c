/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "diff/centre.h"
#include "diff/classes.h"
#include "diff/dispersion.h"
#include "diff/functions.h"
#include "diff/identity.h"
#include "diff/notes.h"
#include "diff/union.h"

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
	[DIFF_BY_PRESUMPTION] = "presumed",
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

	if (!b->has_unit || !c->has_unit)
		return DIFF_SHARE;
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
				       ? "--normalize work needs the units of work of both sides: "
					 "use --work N,M"
				       : "cannot compare per second: a recording has no duration");
	d->scale = tick * current / base;
	if (!(d->scale > 1 / SCALE_MAX && d->scale < SCALE_MAX))
		return err_set(-EINVAL,
			       "one base sample would equal %g current samples: check the "
			       "duration, interval or --work of each side",
			       d->scale);
	return 0;
}

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
	for (int s = 0; s < DIFF_SIDES; s++) {
		cube_sum_stacks(&in->cube, (uint8_t)s, KIND_TICKS, sums[s].self);
		memcpy(sums[s].totals, sums[s].self, count * sizeof(uint64_t));
		for (size_t i = count - 1; i > 0; i--)
			sums[s].totals[entries[i].parent] += sums[s].totals[i];
	}
	return 0;
}

/* --- sums over the graph ---------------------------------------------------------------------- */

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

static int find_centre(struct diff *d, const struct dispersion *x)
{
	struct centre centre = CENTRE_NONE;
	int r = 0;

	if (d->normalize == DIFF_SHARE || d->normalize == DIFF_SECOND)
		r = centre_find(&centre, d, x, d->scale);
	d->centre = centre.ratio;
	d->centre_error = centre.error;
	return r;
}

static int compare_sides(struct diff *d)
{
	_cleanup_(dispersion_release) struct dispersion x = { 0 };
	int r = dispersion_measure(&x, d, exposure_for(d->normalize), DIFF_PRESUMED, true);

	d->dispersion = x.by;
	d->node_noise = x.noise[COUNTED_NODE];
	d->function_noise = x.noise[COUNTED_FUNCTION];
	if (!r)
		r = find_centre(d, &x);
	if (!r)
		r = classes_find(d, &x);
	if (!r)
		sum_classes(d);
	return r;
}

static int join_sides(struct diff *d, const struct diff_renames *renames)
{
	_cleanup_(side_sums_release) struct side_sums sums[DIFF_SIDES] = { { NULL, NULL } };
	_cleanup_(identity_release) struct identity id = { 0 };
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
		r = functions_make(d, &id);
	if (!r)
		r = diff_find_units(d);
	return r ? r : notes_of_names(d, &id, renames);
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
		r = notes_of_sides(d);
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
	for (int k = 0; k < COUNTED_KINDS; k++)
		free(d->unit[k]);
	texts_release(&d->notes);
	free(d);
}
