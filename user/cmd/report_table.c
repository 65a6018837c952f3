/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/report_view.h"

#include "base/units.h"
#include "cmd/figures.h"

#define TABLE_NAME_COLUMN 29
#define WAITS_COLUMNS 13 /* in front of it */
#define NAME_COLUMNS_MIN 8
#define NAME_COLUMNS_MAX 50 /* longer names push what follows to the right */

static size_t name_columns(const struct terminal *t, const struct profile *p,
			   const struct ranking *ranking, size_t count, size_t name_column)
{
	size_t room = name_column + PLACE_COLUMNS_MIN, most = NAME_COLUMNS_MIN;

	for (size_t i = 0; i < count; i++) {
		const struct frame *f = frametab_get(p->frames, ranking->items[i].frame);
		size_t columns = foreign_columns(strtab_get(p->strings, f->name),
						 strtab_len(p->strings, f->name));

		if (columns > most)
			most = columns;
	}
	room = !t->width ? NAME_COLUMNS_MAX : t->width > room ? t->width - room : NAME_COLUMNS_MIN;
	if (room > NAME_COLUMNS_MAX)
		room = NAME_COLUMNS_MAX;
	return most < room ? most : room;
}

/* What a row of the table is. */
static const char *row_name(const struct report_view *v)
{
	if (v->by == BY_MODULE || v->by == BY_FILE)
		return v->by == BY_MODULE ? "module" : "file";
	return v->by_line ? "line" : "function";
}

static int put_rest(struct line *l, const struct report_view *v, const struct ranking *ranking,
		    size_t shown, uint64_t ticks, size_t name_column)
{
	uint64_t self = 0;

	if (shown == ranking->len)
		return 0;
	for (size_t i = shown; i < ranking->len; i++)
		self += ranking->items[i].self;
	put_percent(l, self, ticks);
	line_pad(l, name_column);
	line_putf(l, STYLE_DIM, "%s more %s%s", units_count(ranking->len - shown).s, row_name(v),
		  ranking->len - shown == 1 ? "" : "s");
	return line_end(l);
}

static bool has_waits(const struct ranking *ranking)
{
	for (size_t i = 0; i < ranking->len; i++)
		if (ranking->items[i].waits)
			return true;
	return false;
}

int report_table_put(const struct load *loaded, const struct report_view *v,
		     const struct terminal *t)
{
	_cleanup_(line_release) struct line l = LINE_INIT(t);
	const struct profile *p = loaded->profile;
	struct ranking ranking = VEC_INIT;
	struct value_unit of = recording_value_unit(profile_recording(p));
	size_t shown, place_column, name_column;
	int r = ranking_make(loaded, v->by_line, v->sort, &ranking);

	if (r < 0)
		return r;
	shown = v->limit && v->limit < ranking.len ? v->limit : ranking.len;
	name_column = TABLE_NAME_COLUMN + (has_waits(&ranking) ? WAITS_COLUMNS : 0);
	place_column = name_column + name_columns(t, p, &ranking, shown, name_column) + 2;
	line_putf(&l, STYLE_BOLD, "  self   total  %11s",
		  of.unit == UNIT_NS      ? "self time"
		  : of.unit == UNIT_BYTES ? "self bytes"
					  : "samples");
	if (has_waits(&ranking))
		line_putf(&l, STYLE_BOLD, "  %11s", "waiting");
	line_pad(&l, name_column);
	line_put(&l, STYLE_BOLD, v->by_line ? "function" : row_name(v));
	line_pad(&l, place_column);
	line_put(&l, STYLE_BOLD, v->by_line ? "line" : "defined in");
	r = line_end(&l);
	for (size_t i = 0; i < shown && !r; i++) {
		const struct ranked *row = &ranking.items[i];

		put_percent(&l, row->self, loaded->ticks);
		line_put(&l, STYLE_PLAIN, "  ");
		put_percent(&l, row->total, loaded->ticks);
		line_put(&l, STYLE_PLAIN, "  ");
		put_value(&l, row->self, of);
		if (row->waits) {
			line_put(&l, STYLE_PLAIN, "  ");
			put_value(&l, row->waits, of);
		}
		line_pad(&l, name_column);
		line_put_name(&l, STYLE_PLAIN, p, row->frame);
		line_put(&l, STYLE_PLAIN, "  ");
		line_pad(&l, place_column);
		line_put_place(&l, STYLE_DIM, p, row->frame, v->by_line);
		r = line_end(&l);
	}
	if (!r)
		r = put_rest(&l, v, &ranking, shown, loaded->ticks, name_column);
	vec_release(&ranking);
	return r;
}
