/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/notes.h"

#define UNRELATED_MAX 0.01 /* share of both sides' time in common paths */

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

static int note_files(struct diff *d, const struct identity *id)
{
	if (!id->ambiguous_files)
		return 0;
	return texts_addf(&d->notes,
			  "%zu base file%s matched several current files and %s left unmatched, "
			  "e.g. %s (use --rename OLD=NEW)",
			  id->ambiguous_files, id->ambiguous_files == 1 ? "" : "s",
			  id->ambiguous_files == 1 ? "is" : "are",
			  strtab_get(d->input->profile->strings, id->ambiguous_file));
}

int notes_of_names(struct diff *d, const struct identity *id, const struct diff_renames *renames)
{
	int r = note_files(d, id);

	return r ? r : note_renames(d, id, renames);
}

int notes_of_sides(struct diff *d)
{
	static const char *const sides[] = { "base", "current" };
	int r = 0;

	for (int s = 0; s < DIFF_SIDES && !r; s++)
		if (!d->side[s].ticks)
			r = texts_addf(&d->notes, "%s has no samples", sides[s]);
	if (!r && d->side[0].ticks && d->side[1].ticks) {
		if (common_share(d) <= UNRELATED_MAX)
			r = texts_addf(&d->notes,
				       "almost no call paths match: these are different programs, "
				       "or code has moved (use --rename OLD=NEW)");
		if (!r && d->dispersion == DIFF_BY_POISSON)
			r = texts_addf(&d->notes, "noise unknown: files without time, one a "
						  "side; give several of each (--baseline)");
	}
	if (!r && !(d->side[DIFF_BASE].has_unit && d->side[DIFF_CURRENT].has_unit))
		r = texts_addf(&d->notes, "shares are compared: a text does not say how long its "
					  "samples are (interval_us=)");
	if (!r && d->centre != 1)
		r = texts_addf(
			&d->notes,
			"changes are relative to the typical function, which changed by x %.3f",
			d->centre);
	return r;
}
