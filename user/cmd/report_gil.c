/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/report_gil.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/breakdown.h"
#include "cmd/figures.h"
#include "cmd/ranking.h"

#define NAME_COLUMN 31
#define NAME_COLUMNS_MIN 16
#define NAME_COLUMNS_MAX 60

static uint64_t whole_of(double value)
{
	return value > 0 ? (uint64_t)llround(value) : 0;
}

static void rows_release(struct gil_rows *rows)
{
	vec_release(rows);
}

/* "work  shop.py:1" */
static void put_function(struct line *l, const struct load *loaded, uint32_t function,
			 const char *nobody)
{
	if (function == GIL_NOBODY) {
		line_put(l, STYLE_DIM, nobody);
		return;
	}
	line_put_name(l, STYLE_PLAIN, loaded->profile, loaded->gil.functions.items[function].frame);
	line_put(l, STYLE_PLAIN, "  ");
	line_put_place(l, STYLE_DIM, loaded->profile, loaded->gil.functions.items[function].frame,
		       false);
}

/* Where the holders begin: behind the longest waiter that is shown. */
static size_t holder_column(const struct load *loaded, size_t shown)
{
	static const struct terminal plain;
	_cleanup_(line_release) struct line l = LINE_INIT(&plain);
	size_t most = NAME_COLUMNS_MIN;

	for (size_t i = 0; i < shown; i++) {
		strbuf_truncate(&l.text, 0);
		l.column = 0;
		put_function(&l, loaded, loaded->gil.rows.items[i].waiter, "");
		most = l.column > most ? l.column : most;
	}
	return NAME_COLUMN + (most < NAME_COLUMNS_MAX ? most : NAME_COLUMNS_MAX) + 2;
}

static void put_figures(struct line *l, const struct gil_row *row, double whole_ns)
{
	put_percent(l, whole_of(row->ns), whole_of(whole_ns));
	line_putf(l, STYLE_PLAIN, "  %11s  %8s", units_ns(whole_of(row->ns)).s,
		  units_count(whole_of(row->episodes)).s);
	line_pad(l, NAME_COLUMN);
}

static int put_rest(struct line *l, const struct gil_row *rows, size_t count, double whole_ns)
{
	struct gil_row rest = { 0 };

	for (size_t i = 0; i < count; i++) {
		rest.ns += rows[i].ns;
		rest.episodes += rows[i].episodes;
	}
	if (!count)
		return 0;
	put_figures(l, &rest, whole_ns);
	line_putf(l, STYLE_DIM, "%s more", units_count(count).s);
	return line_end(l);
}

static void put_head(struct line *l, const struct load *loaded, double dealt_ns)
{
	const struct gil *g = &loaded->gil;
	uint64_t wall_ns = breakdown_wall_ns(loaded);

	if (g->waited_ns > 0) {
		line_putf(l, STYLE_PLAIN, "%s of waiting for the GIL",
			  units_ns(whole_of(g->waited_ns)).s);
		if (wall_ns)
			line_putf(l, STYLE_PLAIN, " (%s of wall time)",
				  share_text(whole_of(g->waited_ns), wall_ns).s);
		line_putf(l, STYLE_PLAIN, " in %s waits; the holder is known for %s",
			  units_count(whole_of(g->episodes)).s, units_ns(whole_of(dealt_ns)).s);
		line_end(l);
	}
	if (g->is_free_threaded) {
		line_putf(l, STYLE_PLAIN,
			  "%s waiting for locks (free-threaded Python: lock holders unknown)",
			  units_ns(whole_of(g->lock_ns)).s);
		line_end(l);
	}
	line_end(l);
}

static int put_pairs(struct line *l, const struct load *loaded, size_t shown, double whole_ns)
{
	const struct gil_row *rows = loaded->gil.rows.items;
	size_t column = holder_column(loaded, shown);
	int r;

	line_put(l, STYLE_BOLD, " share       waited  episodes");
	line_pad(l, NAME_COLUMN);
	line_put(l, STYLE_BOLD, "waiting in");
	line_pad(l, column);
	line_put(l, STYLE_BOLD, "held by");
	r = line_end(l);
	for (size_t i = 0; i < shown && !r; i++) {
		put_figures(l, &rows[i], whole_ns);
		put_function(l, loaded, rows[i].waiter, "not seen");
		line_put(l, STYLE_PLAIN, "  ");
		line_pad(l, column);
		put_function(l, loaded, rows[i].holder, "unknown");
		r = line_end(l);
	}
	return r ? r : put_rest(l, rows + shown, loaded->gil.rows.len - shown, whole_ns);
}

static int put_holders(struct line *l, const struct load *loaded, uint32_t limit, double whole_ns)
{
	_cleanup_(rows_release) struct gil_rows rows = VEC_INIT;
	int r = gil_by_holder(&loaded->gil, &rows);
	size_t shown;

	if (r < 0)
		return r;
	shown = limit && limit < rows.len ? limit : rows.len;
	line_put(l, STYLE_BOLD, " share  others wait  episodes");
	line_pad(l, NAME_COLUMN);
	line_put(l, STYLE_BOLD, "held by");
	r = line_end(l);
	for (size_t i = 0; i < shown && !r; i++) {
		put_figures(l, &rows.items[i], whole_ns);
		put_function(l, loaded, rows.items[i].holder, "unknown");
		r = line_end(l);
	}
	return r ? r : put_rest(l, rows.items + shown, rows.len - shown, whole_ns);
}

/* CPython 3.6: waits for the GIL are those for locks. */
static bool has_untold_gil(const struct profile *p)
{
	for (size_t i = 0; i < p->processes.len; i++)
		if (!strncmp(strtab_get(p->strings, p->processes.items[i].python_version), "3.6.",
			     4))
			return true;
	return false;
}

static const char *words_of_none(const struct load *loaded)
{
	if (!breakdown_is_known(loaded))
		return "waits were not recorded: record again with --mode wall";
	if (has_untold_gil(loaded->profile))
		return "no GIL waits recorded (CPython 3.6 GIL waits appear as lock waits)";
	return "no thread was seen to wait for the GIL";
}

int report_gil_put(const struct load *loaded, uint32_t limit, const struct terminal *t)
{
	_cleanup_(line_release) struct line l = LINE_INIT(t);
	const struct gil *g = &loaded->gil;
	size_t shown = limit && limit < g->rows.len ? limit : g->rows.len;
	double dealt_ns = 0, whole_ns = 0;
	int r;

	for (size_t i = 0; i < g->rows.len; i++) {
		whole_ns += g->rows.items[i].ns;
		dealt_ns += g->rows.items[i].holder != GIL_NOBODY ? g->rows.items[i].ns : 0;
	}
	if (whole_ns <= 0) {
		line_put(&l, STYLE_PLAIN, words_of_none(loaded));
		return line_end(&l);
	}
	put_head(&l, loaded, dealt_ns);
	r = put_pairs(&l, loaded, shown, whole_ns);
	if (!r)
		r = line_end(&l);
	return r ? r : put_holders(&l, loaded, limit, whole_ns);
}
