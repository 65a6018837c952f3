/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top_view.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"

#define INPUT_MAX 1024 /* bytes */

void top_view_init(struct top_view *v)
{
	*v = (struct top_view){ .table = TOP_FUNCTIONS,
				.scope.process = TOP_NONE,
				.function = TOP_NONE,
				.followed = TOP_NONE };
}

void top_view_release(struct top_view *v)
{
	strbuf_release(&v->input);
	strbuf_release(&v->search);
	strbuf_release(&v->filter);
	strbuf_release(&v->save_as);
	strbuf_release(&v->message);
}

bool top_view_has_column(const struct top_view *v, enum top_column column)
{
	if (column == TOP_TOTAL)
		return v->table == TOP_FUNCTIONS;
	return v->has_waits || column == TOP_SELF;
}

/* --- rows ------------------------------------------------------------------------------------- */

void top_view_arrange(struct top_view *v, struct top_sums *sums)
{
	v->has_waits = sums->has_waits;
	if (!top_view_has_column(v, v->sort))
		v->sort = TOP_SELF;
	top_sort(sums->rows.items, sums->rows.len, v->sort);
	for (size_t i = 0; i < sums->rows.len && v->followed != TOP_NONE; i++)
		if (sums->rows.items[i].id == v->followed)
			v->cursor = i;
	if (v->cursor >= sums->rows.len)
		v->cursor = sums->rows.len ? sums->rows.len - 1 : 0;
}

static bool contains(const struct profile *p, uint32_t string, const char *text)
{
	return strcasestr(strtab_get(p->strings, string), text) != NULL;
}

static bool frame_matches(const struct profile *p, uint32_t frame, const char *text)
{
	const struct frame *f;

	if (frame == TOP_NONE)
		return false;
	f = frametab_get(p->frames, frame);
	return contains(p, f->name, text) || contains(p, f->file, text);
}

static bool number_matches(uint32_t number, const char *text)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%u", number);
	return strstr(digits, text) != NULL;
}

static bool process_matches(const struct profile *p, uint32_t process, const char *text)
{
	const struct process *of = &p->processes.items[process];

	return number_matches(of->pid, text) || contains(p, of->name, text) ||
	       contains(p, of->command_line, text);
}

bool top_row_matches(const struct top_row *row, enum top_table table, const struct profile *p,
		     const char *text)
{
	const struct thread *t;

	switch (table) {
	case TOP_PROCESSES:
		return process_matches(p, row->id, text) || frame_matches(p, row->mostly, text);
	case TOP_TASKS:
		return contains(p, row->id, text) || frame_matches(p, row->mostly, text);
	case TOP_THREADS:
		t = &p->threads.items[row->id];
		return number_matches(t->tid, text) || contains(p, t->name, text) ||
		       process_matches(p, t->process, text) || frame_matches(p, row->mostly, text);
	default:
		return frame_matches(p, row->id, text);
	}
}

static void follow(struct top_view *v, const struct top_sums *sums)
{
	v->followed =
		v->cursor && v->cursor < sums->rows.len ? sums->rows.items[v->cursor].id : TOP_NONE;
}

static void forget_rows(struct top_view *v)
{
	v->cursor = v->first = 0;
	v->followed = TOP_NONE;
}

void top_view_forget_ids(struct top_view *v)
{
	forget_rows(v);
	v->scope = (struct top_scope){ .process = TOP_NONE };
	v->function = TOP_NONE;
}

/* --- moving about ----------------------------------------------------------------------------- */

static bool is_of_text(const struct top_view *v)
{
	return v->has_help || v->function != TOP_NONE;
}

/* Lines of text scroll, in a table the cursor moves; what is painted knows the end of the text. */
static enum top_action move_by(struct top_view *v, const struct top_sums *sums, ptrdiff_t by)
{
	size_t *at = is_of_text(v) ? &v->first : &v->cursor;
	size_t end = is_of_text(v) ? SIZE_MAX / 2 : sums->rows.len ? sums->rows.len - 1 : 0;

	if (by < 0)
		*at -= (size_t)-by < *at ? (size_t)-by : *at;
	else
		*at = (size_t)by < end - *at ? *at + (size_t)by : end;
	if (!is_of_text(v))
		follow(v, sums);
	return TOP_DO_PAINT;
}

static enum top_action open_row(struct top_view *v, const struct top_sums *sums,
				const struct profile *p)
{
	const struct top_row *row;

	if (is_of_text(v) || v->cursor >= sums->rows.len)
		return TOP_DO_NOTHING;
	row = &sums->rows.items[v->cursor];
	if (v->table == TOP_FUNCTIONS) {
		v->function = row->id;
		v->first = 0;
		return TOP_DO_SUM;
	}
	if (v->table == TOP_PROCESSES) {
		v->scope = (struct top_scope){ .process = row->id };
		v->table = TOP_THREADS;
	} else if (v->table == TOP_TASKS) {
		v->scope.task = row->id;
		v->table = TOP_FUNCTIONS;
	} else {
		v->scope = (struct top_scope){ .process = p->threads.items[row->id].process,
					       .tid = p->threads.items[row->id].tid };
		v->table = TOP_FUNCTIONS;
	}
	forget_rows(v);
	return TOP_DO_SUM;
}

/* One step out of what was entered. */
static enum top_action leave(struct top_view *v)
{
	if (v->has_help) {
		v->has_help = false;
		v->first = 0;
		return TOP_DO_PAINT;
	}
	if (v->function != TOP_NONE) {
		v->function = TOP_NONE;
		v->first = 0;
	} else if (v->scope.task) {
		v->scope.task = 0;
		v->table = TOP_TASKS;
		forget_rows(v);
	} else if (v->scope.tid) {
		v->scope.tid = 0;
		v->table = TOP_THREADS;
		forget_rows(v);
	} else if (v->scope.process != TOP_NONE) {
		v->scope.process = TOP_NONE;
		v->table = TOP_PROCESSES;
		forget_rows(v);
	} else {
		return TOP_DO_NOTHING;
	}
	return TOP_DO_SUM;
}

static enum top_action show_table(struct top_view *v, enum top_table table)
{
	v->has_help = false;
	v->function = TOP_NONE;
	v->table = table;
	if (v->table != TOP_FUNCTIONS)
		v->scope.tid = v->scope.task = 0;
	if (v->table == TOP_PROCESSES)
		v->scope.process = TOP_NONE;
	forget_rows(v);
	return TOP_DO_SUM;
}

static enum top_action show_tasks(struct top_view *v)
{
	if (v->has_tasks)
		return show_table(v, TOP_TASKS);
	strbuf_truncate(&v->message, 0);
	strbuf_puts(&v->message, "tasks: only with top --async");
	return TOP_DO_PAINT;
}

static enum top_action sort_by(struct top_view *v, int step)
{
	int column = (int)v->sort;

	do
		column = (column + step + TOP_COLUMNS) % TOP_COLUMNS;
	while (!top_view_has_column(v, (enum top_column)column));
	v->sort = (enum top_column)column;
	return TOP_DO_SUM;
}

/* The next row with the text that was searched for, or the one before. */
static enum top_action search(struct top_view *v, const struct top_sums *sums,
			      const struct profile *p, size_t from, size_t step)
{
	size_t count = sums->rows.len;

	strbuf_truncate(&v->message, 0);
	if (!v->search.len || is_of_text(v))
		return TOP_DO_PAINT;
	for (size_t i = 0; i < count; i++) {
		size_t at = (v->cursor + from + i * step) % count;

		if (!top_row_matches(&sums->rows.items[at], v->table, p, strbuf_str(&v->search)))
			continue;
		v->cursor = at;
		follow(v, sums);
		return TOP_DO_PAINT;
	}
	strbuf_puts(&v->message, "not found: ");
	strbuf_puts(&v->message, strbuf_str(&v->search));
	return TOP_DO_PAINT;
}

/* --- the prompt ------------------------------------------------------------------------------- */

static void copy_text(struct strbuf *to, const struct strbuf *from)
{
	strbuf_truncate(to, 0);
	strbuf_append(to, strbuf_str(from), from->len);
}

static enum top_action ask(struct top_view *v, enum top_prompt prompt, const struct strbuf *text)
{
	v->prompt = prompt;
	copy_text(&v->input, text);
	return TOP_DO_PAINT;
}

static void drop_character(struct strbuf *b)
{
	size_t len = b->len;

	while (len && ((unsigned char)b->bytes[--len] & 0xc0) == 0x80)
		;
	strbuf_truncate(b, len);
}

static void put_character(struct strbuf *b, int key)
{
	uint32_t c = (uint32_t)key;

	if (utf8_is_control(c) || b->len >= INPUT_MAX)
		return;
	if (c < 0x80)
		strbuf_putc(b, (char)c);
	else if (c < 0x800)
		strbuf_appendf(b, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 0x3f)));
	else if (c < 0x10000)
		strbuf_appendf(b, "%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 0x3f)),
			       (int)(0x80 | (c & 0x3f)));
	else
		strbuf_appendf(b, "%c%c%c%c", (int)(0xf0 | c >> 18), (int)(0x80 | (c >> 12 & 0x3f)),
			       (int)(0x80 | (c >> 6 & 0x3f)), (int)(0x80 | (c & 0x3f)));
}

static enum top_action answer(struct top_view *v, const struct top_sums *sums,
			      const struct profile *p)
{
	enum top_prompt prompt = v->prompt;

	v->prompt = TOP_PROMPT_NONE;
	if (prompt == TOP_PROMPT_FILTER)
		return TOP_DO_FILTER;
	if (prompt == TOP_PROMPT_SAVE)
		return v->input.len ? TOP_DO_SAVE : TOP_DO_PAINT;
	copy_text(&v->search, &v->input);
	return search(v, sums, p, 0, 1);
}

static enum top_action prompt_key(struct top_view *v, int key, const struct top_sums *sums,
				  const struct profile *p)
{
	switch (key) {
	case TOP_KEY_ENTER:
	case '\r':
		return answer(v, sums, p);
	case TOP_KEY_ESCAPE:
		v->prompt = TOP_PROMPT_NONE;
		break;
	case TOP_KEY_CLEAR:
		strbuf_truncate(&v->input, 0);
		break;
	case TOP_KEY_BACKSPACE:
	case 0x7f:
	case '\b':
		drop_character(&v->input);
		break;
	case TOP_KEY_REDRAW:
		return TOP_DO_REDRAW;
	default:
		if (key < TOP_KEY_UP)
			put_character(&v->input, key);
	}
	return TOP_DO_PAINT;
}

/* --- keys ------------------------------------------------------------------------------------- */

static enum top_action command_key(struct top_view *v, int key, const struct top_sums *sums,
				   const struct profile *p)
{
	static const struct strbuf nothing = STRBUF_INIT;
	const enum top_table last = v->has_tasks ? TOP_TASKS : TOP_FUNCTIONS;

	switch (key) {
	case 'q':
		return TOP_DO_QUIT;
	case '?':
	case 'h':
		v->has_help = !v->has_help;
		v->first = 0;
		return TOP_DO_PAINT;
	case '1':
		return show_table(v, TOP_PROCESSES);
	case '2':
		return show_table(v, TOP_THREADS);
	case '3':
		return show_table(v, TOP_FUNCTIONS);
	case '4':
		return show_tasks(v);
	case TOP_KEY_TAB:
		return show_table(v, v->table == last ? TOP_PROCESSES
						      : (enum top_table)(v->table + 1));
	case '<':
	case TOP_KEY_LEFT:
		return sort_by(v, -1);
	case '>':
	case TOP_KEY_RIGHT:
		return sort_by(v, 1);
	case 'w':
		v->span = v->span == TOP_LAST ? TOP_SINCE_START : TOP_LAST;
		return TOP_DO_SUM;
	case '%':
		v->has_seconds = !v->has_seconds;
		return TOP_DO_PAINT;
	case 'p':
	case ' ':
		v->is_paused = !v->is_paused;
		return TOP_DO_SUM;
	case 'r':
		return TOP_DO_RESET;
	case 'f':
		return ask(v, TOP_PROMPT_FILTER, &v->filter);
	case '/':
		return ask(v, TOP_PROMPT_SEARCH, &nothing);
	case 'n':
		return search(v, sums, p, 1, 1);
	case 'N':
		return search(v, sums, p, sums->rows.len ? sums->rows.len - 1 : 0,
			      sums->rows.len ? sums->rows.len - 1 : 0);
	case 's':
		return ask(v, TOP_PROMPT_SAVE, &v->save_as);
	case TOP_KEY_REDRAW:
		return TOP_DO_REDRAW;
	default:
		return TOP_DO_NOTHING;
	}
}

static enum top_action moving_key(struct top_view *v, int key, const struct top_sums *sums,
				  const struct profile *p)
{
	ptrdiff_t page = v->page ? (ptrdiff_t)v->page : 1;

	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		return move_by(v, sums, -1);
	case TOP_KEY_DOWN:
	case 'j':
		return move_by(v, sums, 1);
	case TOP_KEY_PAGE_UP:
		return move_by(v, sums, -page);
	case TOP_KEY_PAGE_DOWN:
		return move_by(v, sums, page);
	case TOP_KEY_HOME:
	case 'g':
		return move_by(v, sums, -PTRDIFF_MAX);
	case TOP_KEY_END:
	case 'G':
		return move_by(v, sums, PTRDIFF_MAX);
	case TOP_KEY_ENTER:
	case '\r':
		return open_row(v, sums, p);
	case TOP_KEY_ESCAPE:
	case TOP_KEY_BACKSPACE:
	case 0x7f:
	case '\b':
		return leave(v);
	default:
		return command_key(v, key, sums, p);
	}
}

enum top_action top_view_key(struct top_view *v, int key, const struct top_sums *sums,
			     const struct profile *p)
{
	enum top_action action;

	if (v->prompt)
		return prompt_key(v, key, sums, p);
	if (v->message.len) {
		strbuf_truncate(&v->message, 0);
		action = moving_key(v, key, sums, p);
		return action ? action : TOP_DO_PAINT;
	}
	return moving_key(v, key, sums, p);
}
