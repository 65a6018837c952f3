/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/diff_words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "diff/environment.h"
#include "profile/frametab.h"
#include "profile/strtab.h"

/* Ratios from which a factor reads better than per cent. */
#define FACTOR_MIN 10
#define FACTOR_MAX 1000 /* more is a bound of next to nothing */

/* Three digits: changes of a few per cent are to be seen. */
static struct units_text amount_ns(double ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	struct units_text t;
	size_t i = 0;

	while (i < 3 && ns < 0.9995 * units[i].ns)
		i++;
	ns /= units[i].ns;
	snprintf(t.s, sizeof(t.s), ns < 999.5 ? "%.3g %s" : "%.0f %s", ns, units[i].name);
	return t;
}

/* Of current, unless it has none. */
static const struct diff_side_sum *side_of(const struct diff *d)
{
	return &d->side[d->side[DIFF_CURRENT].runs ? DIFF_CURRENT : DIFF_BASE];
}

/* Events, or bytes: no time, and no samples of unknown length. */
static bool is_counted(const struct diff *d)
{
	const struct diff_side_sum *side = side_of(d);

	return side->has_unit && side->of.unit != UNIT_NS && !(side->interval_ns > 0);
}

/* How many of what it is by there are, of base or current. */
static double exposure_of(const struct diff *d)
{
	const struct diff_side_sum *side = side_of(d);

	if (d->normalize == DIFF_SECOND && side->seconds > 0)
		return side->seconds;
	if (d->normalize == DIFF_WORK && side->work > 0)
		return side->work;
	return side->runs ? side->runs : 1;
}

static struct units_text amount_counted(const struct value_unit of, double value)
{
	struct units_text t;

	if (of.unit == UNIT_BYTES)
		return units_bytes((uint64_t)llround(value));
	value *= (double)of.period;
	if (value >= 100)
		return units_count((uint64_t)llround(value));
	snprintf(t.s, sizeof(t.s), "%.3g", value);
	return t;
}

struct units_text diff_amount(const struct diff *d, double ticks)
{
	const struct diff_side_sum *side = side_of(d);
	double total = d->total.value > 0 ? d->total.value : d->total.baseline;
	double each = ticks / exposure_of(d);
	struct units_text t = { "" };

	if (d->normalize == DIFF_SHARE) {
		snprintf(t.s, sizeof(t.s), "%.3g%%", total > 0 ? 100 * ticks / total : 0);
		return t;
	}
	if (is_counted(d))
		t = amount_counted(side->of, each);
	else if (side->interval_ns > 0)
		t = amount_ns(each * side->interval_ns);
	else
		snprintf(t.s, sizeof(t.s), "%.4g samples", each);
	if (d->normalize == DIFF_SECOND && side->seconds > 0)
		snprintf(t.s + strlen(t.s), sizeof(t.s) - strlen(t.s), "/s");
	return t;
}

const char *diff_class_word(const struct diff *d, uint8_t class)
{
	static const char *const words[DIFF_CLASS_COUNT] = {
		[DIFF_UNCHANGED] = "unchanged", [DIFF_UNDETERMINED] = "inconclusive",
		[DIFF_RARE] = "possibly rare",  [DIFF_NEW] = "new",
		[DIFF_REMOVED] = "removed",
	};

	if (diff_class_is_slower(class))
		return diff_section_name(d, DIFF_SECTION_SLOWER);
	if (diff_class_is_faster(class))
		return diff_section_name(d, DIFF_SECTION_FASTER);
	return words[class];
}

struct diff_amount_text diff_amount_words(const struct diff *d)
{
	static const char *const of[] = {
		[DIFF_SECOND] = "each second of recording", [DIFF_WORK] = "a unit of work"
	};
	const struct diff_side_sum *side = side_of(d);
	struct diff_amount_text t;

	if (d->normalize == DIFF_SHARE)
		snprintf(t.s, sizeof(t.s), "share of all samples");
	else
		snprintf(t.s, sizeof(t.s), "%s of %s", side->noun ? side->noun : "CPU time",
			 d->normalize == DIFF_SECOND || d->normalize == DIFF_WORK ? of[d->normalize]
										  : "a run");
	return t;
}

struct units_text diff_change(double ratio)
{
	struct units_text t = { "" };
	double percent = 100 * (ratio - 1);

	if (isnan(ratio))
		return t;
	if (isinf(ratio))
		snprintf(t.s, sizeof(t.s), "any");
	else if (ratio >= FACTOR_MAX)
		snprintf(t.s, sizeof(t.s), "over x %d", FACTOR_MAX);
	else if (ratio >= FACTOR_MIN)
		snprintf(t.s, sizeof(t.s), "x %.3g", ratio);
	else if (fabs(percent) < 0.05)
		snprintf(t.s, sizeof(t.s), "0%%");
	else
		snprintf(t.s, sizeof(t.s), fabs(percent) < 9.95 ? "%+.1f%%" : "%+.0f%%", percent);
	return t;
}

struct diff_interval_text diff_interval(double low, double high)
{
	struct diff_interval_text t = { "" };

	if (!isnan(low) && !isnan(high))
		snprintf(t.s, sizeof(t.s), "%s to %s", diff_change(low).s, diff_change(high).s);
	return t;
}

const char *diff_certainty(double q)
{
	if (isnan(q))
		return "";
	return q <= 0.001 ? "certain" : q <= (double)DIFF_Q_MAX ? "likely" : "unsure";
}

struct diff_noise_text diff_noise(const struct diff *d)
{
	static const char *const words[DIFF_DISPERSION_COUNT] = {
		[DIFF_BY_POISSON] = "noise unknown: certainty is overstated",
		[DIFF_BY_BLOCKS] = "noise estimated from parts of each run",
		[DIFF_BY_RUNS] = "noise measured between runs",
	};
	struct diff_noise_text t;

	if (d->dispersion == DIFF_BY_PRESUMPTION)
		snprintf(t.s, sizeof(t.s), "run-to-run noise assumed: %g%%", 100 * DIFF_PRESUMED);
	else
		snprintf(t.s, sizeof(t.s), "%s", words[d->dispersion]);
	return t;
}

int diff_put_difference(struct strbuf *out, const struct difference *d)
{
	return strbuf_appendf(out, "different environments: %s: %s -> %s", d->what,
			      d->value[DIFF_BASE], d->value[DIFF_CURRENT]);
}

struct diff_presumed_text diff_presumed(const struct gate *g)
{
	struct diff_presumed_text t = { "" };

	if (g->run_noise > 0)
		snprintf(t.s, sizeof(t.s),
			 "one run per side: the gate assumes %.3g%% run-to-run noise "
			 "(--run-noise); \"detectable\" uses only the measured noise",
			 100 * g->run_noise);
	return t;
}

/* --- findings --------------------------------------------------------------------------------- */

const char *diff_section_name(const struct diff *d, enum diff_section section)
{
	static const struct {
		const char *of_time, *counted;
	} words[DIFF_SECTION_COUNT] = {
		[DIFF_SECTION_SLOWER] = { "slower", "grown" },
		[DIFF_SECTION_FASTER] = { "faster", "shrunk" },
		[DIFF_SECTION_NEW] = { "new", "new" },
		[DIFF_SECTION_REMOVED] = { "removed", "removed" },
		[DIFF_SECTION_UNTOLD] = { "untold", "untold" },
	};

	return is_counted(d) ? words[section].counted : words[section].of_time;
}

struct diff_row diff_row(const struct diff *d, const struct diff_function *f, enum diff_key key)
{
	bool is_self = key == DIFF_KEY_SELF;

	return (struct diff_row){
		.before = diff_baseline(d, is_self ? f->base_self : f->base_total),
		.after = (double)(is_self ? f->self : f->total),
		.measure = is_self ? &f->self_measure : &f->measure,
		.class = is_self ? f->self_class : f->class,
	};
}

static int section_of(const struct diff *d, const struct diff_function *f, enum diff_key key)
{
	struct diff_row row = diff_row(d, f, key);

	if (f->is_unsampled)
		return -1;
	if (f->class == DIFF_NEW)
		return DIFF_SECTION_NEW;
	if (f->class == DIFF_REMOVED)
		return DIFF_SECTION_REMOVED;
	/* a path it had before, but no time of its own: what it does itself is new, it is not */
	if (diff_class_is_slower(row.class) || row.class == DIFF_NEW)
		return DIFF_SECTION_SLOWER;
	if (diff_class_is_faster(row.class) || row.class == DIFF_REMOVED)
		return DIFF_SECTION_FASTER;
	return row.class == DIFF_UNCHANGED ? -1 : DIFF_SECTION_UNTOLD;
}

enum diff_key diff_section_key(enum diff_section section, enum diff_key key)
{
	bool is_one_sided = section == DIFF_SECTION_NEW || section == DIFF_SECTION_REMOVED;

	return is_one_sided ? DIFF_KEY_TOTAL : key;
}

struct order {
	const struct diff *d;
	enum diff_key key;
};

static double size_of_change(const struct order *o, uint32_t function)
{
	struct diff_row row = diff_row(o->d, &o->d->functions[function], o->key);

	return fabs(row.after - row.before);
}

static int compare_changes(const void *a, const void *b, void *context)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double p = size_of_change(context, x), q = size_of_change(context, y);

	if (p != q)
		return p > q ? -1 : 1;
	return x < y ? -1 : x > y;
}

int diff_findings_make(const struct diff *d, enum diff_key key, struct diff_findings *out)
{
	struct diff_findings f = { 0 };

	for (uint32_t i = 0; i < d->function_count; i++) {
		int section = section_of(d, &d->functions[i], key);

		if (section >= 0 && vec_push(&f.section[section], i) < 0) {
			diff_findings_release(&f);
			return -ENOMEM;
		}
	}
	for (enum diff_section s = 0; s < DIFF_SECTION_COUNT; s++) {
		struct order order = { d, diff_section_key(s, key) };

		if (f.section[s].len)
			qsort_r(f.section[s].items, f.section[s].len, sizeof(uint32_t),
				compare_changes, &order);
	}
	*out = f;
	return 0;
}

void diff_findings_release(struct diff_findings *f)
{
	for (size_t s = 0; s < DIFF_SECTION_COUNT; s++)
		vec_release(&f->section[s]);
}

/* --- names ------------------------------------------------------------------------------------ */

const char *diff_name(const struct diff *d, const struct diff_function *f, size_t *len)
{
	*len = strtab_len(d->input->profile->strings, f->name);
	return strtab_get(d->input->profile->strings, f->name);
}

const char *diff_module(const struct diff *d, const struct diff_function *f, size_t *len)
{
	uint32_t id = frame_has_place(f->kind) ? f->file : 0, root_len = id ? f->root_len : 0;

	*len = strtab_len(d->input->profile->strings, id) - root_len;
	return strtab_get(d->input->profile->strings, id) + root_len;
}

uint32_t diff_line(const struct diff *d, const struct diff_function *f)
{
	return frametab_get(d->input->profile->frames, f->frame)->first_line;
}
