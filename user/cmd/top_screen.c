/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top_screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/figures.h"
#include "cmd/ranking.h"

#define TALL 12       /* lines from which on there is room for the sums */
#define NARROW 50     /* columns from which on there is room for where a task mostly is, */
#define WIDE 64       /* from which on a table has all of its own */
#define WIDER 100     /* and has them in full */
#define PLACE_ROOM 28 /* a function with its place takes so much at least */

static const char *const table_names[] = {
	[TOP_PROCESSES] = "processes",
	[TOP_THREADS] = "threads",
	[TOP_FUNCTIONS] = "functions",
	[TOP_TASKS] = "tasks",
};

/* --- lines ------------------------------------------------------------------------------------ */

/* One that is painted, from its top to its bottom. */
struct painter {
	struct top_screen *s;
	struct top_view *v;
	const struct top_facts *f;
	const struct top_sums *sums;
	const struct top_detail *detail;
	const struct profile *p;
	size_t next, end; /* lines: the next one, the one behind the last */
};

static struct line *next_line(struct painter *p)
{
	return &p->s->lines[p->next++].line;
}

static size_t lines_left(const struct painter *p)
{
	return p->next < p->end ? p->end - p->next : 0;
}

static void release_lines(struct top_screen *s)
{
	for (size_t i = 0; i < s->height; i++)
		line_release(&s->lines[i].line);
	free(s->lines);
	s->lines = NULL;
	s->height = 0;
}

void top_screen_release(struct top_screen *s)
{
	release_lines(s);
}

static int make_lines(struct top_screen *s, size_t width, size_t height)
{
	if (width < TOP_WIDTH_MIN)
		width = TOP_WIDTH_MIN;
	if (height < TOP_HEIGHT_MIN)
		height = TOP_HEIGHT_MIN;
	s->t = (struct terminal){ .width = width, .keeps_styles = true };
	s->has_cursor = false;
	if (s->height != height) {
		release_lines(s);
		s->lines = calloc(height, sizeof(s->lines[0]));
		if (!s->lines)
			return -ENOMEM;
		s->height = height;
	}
	for (size_t i = 0; i < height; i++) {
		s->lines[i].is_reversed = false;
		s->lines[i].line.t = &s->t;
		line_clear(&s->lines[i].line);
	}
	return 0;
}

/* Puts text at the right edge, if what is there leaves room for it. */
static void put_right(struct line *l, enum style style, const char *text)
{
	size_t columns = text_columns(text, strlen(text));

	if (line_room(l) < columns + 1)
		return;
	line_pad(l, l->t->width - columns);
	line_put(l, style, text);
}

/* A target's text in a column: cut, and padded, with a space behind. */
static void put_cell(struct line *l, const char *text, size_t len, size_t width)
{
	size_t from = l->column;

	if (line_room(l) <= width)
		width = line_room(l);
	line_put_tail(l, STYLE_PLAIN, text, len, "", width);
	line_pad(l, from + width + 1);
}

/* The same of a text whose start tells more: not more than `width` bytes of it. */
static void put_start(struct line *l, const char *text, size_t len, size_t width)
{
	if (len > width)
		for (len = width; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	put_cell(l, text, len, width);
}

static void put_string(struct line *l, const struct profile *p, uint32_t string, size_t width)
{
	put_cell(l, strtab_get(p->strings, string), strtab_len(p->strings, string), width);
}

/* Of names of threads and processes, and of what they wait for. */
static int name_width(const struct line *l)
{
	return l->t->width >= WIDER ? 20 : 12;
}

/* Where it is narrow a task's name takes all that there is. */
static int task_width(const struct line *l)
{
	return l->t->width >= WIDER ? 32 : l->t->width >= NARROW ? 20 : (int)l->t->width;
}

static int waits_width(const struct line *l)
{
	return l->t->width >= WIDER ? 14 : 10;
}

static void put_function(struct line *l, const struct profile *p, uint32_t frame, bool by_line)
{
	if (frame == TOP_NONE)
		return;
	if (line_room(l) < PLACE_ROOM) {
		const struct frame *f = frametab_get(p->frames, frame);
		char line[LINE_TEXT_BYTES] = "";

		if (by_line)
			frame_line_text(f, true, line);
		line_put_tail(l, STYLE_PLAIN, strtab_get(p->strings, f->name),
			      strtab_len(p->strings, f->name), line, line_room(l));
		return;
	}
	line_put_name(l, STYLE_PLAIN, p, frame);
	line_put(l, STYLE_PLAIN, "  ");
	line_put_place(l, STYLE_DIM, p, frame, by_line);
}

/* --- the head --------------------------------------------------------------------------------- */

static void put_title(struct painter *p)
{
	struct line *l = next_line(p);
	const char *span = p->v->span == TOP_LAST ? "last" : "since the start,";
	char right[96];

	snprintf(right, sizeof(right), "%s %s  %s", span, units_ns(p->sums->span_ns).s,
		 p->v->is_paused ? "PAUSED" : p->f->clock);
	if (text_columns(right, strlen(right)) + 12 > l->t->width)
		snprintf(right, sizeof(right), "%s %s", p->v->is_paused ? "PAUSED" : span,
			 units_ns(p->sums->span_ns).s);
	line_put(l, STYLE_BOLD, l->t->width < WIDE ? "top " : "pyebpf top  ");
	if (l->t->width >= WIDE)
		line_putf(l, STYLE_PLAIN, "%s, %u Hz  ", p->f->mode, p->f->freq_hz);
	if (line_room(l) > strlen(right) + 2)
		put_cell(l, p->f->target, strlen(p->f->target), line_room(l) - strlen(right) - 2);
	put_right(l, p->v->is_paused ? STYLE_HOT : STYLE_PLAIN, right);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

static void put_counts(struct painter *p)
{
	struct line *l = next_line(p);
	const struct top_sums *s = p->sums;
	const struct top_counts *c = &s->counts;
	uint64_t own_ns = c->own_ns + c->sampler_ns, busy = c->ticks - c->idle_ticks;

	line_putf(l, STYLE_PLAIN, "%s samples, ", units_count(c->samples).s);
	if (c->lost)
		line_putf(l, STYLE_WARM, "%s lost", units_count(c->lost).s);
	else
		line_put(l, STYLE_PLAIN, "0 lost");
	if (c->lost_wait_ns)
		line_putf(l, STYLE_WARM, " and %s of waiting", units_ns(c->lost_wait_ns).s);
	line_putf(l, STYLE_PLAIN, "; own CPU %.1f%%", percent(own_ns, s->span_ns));
	if (p->f->is_system_wide && c->ticks > c->idle_ticks)
		line_putf(l, STYLE_PLAIN, "; Python %.1f%% of CPU", percent(c->python_ticks, busy));
	line_putf(l, STYLE_PLAIN, "; %s %s", units_count(s->processes).s,
		  plural(s->processes, "process", "processes"));
	line_putf(l, STYLE_PLAIN, ", %s %s", units_count(s->threads).s,
		  plural(s->threads, "thread", "threads"));
}

/* Markers stand in angle brackets, which tell them from code: not needed where it is said. */
static void put_wait_word(struct line *l, const struct profile *p, uint32_t marker, size_t width)
{
	const char *text = marker ? strtab_get(p->strings, marker) : "unknown";
	size_t len = marker ? strtab_len(p->strings, marker) : strlen(text);

	if (len > 2 && text[0] == '<' && text[len - 1] == '>') {
		text++;
		len -= 2;
	}
	if (!width) {
		line_put_foreign(l, STYLE_PLAIN, text, len);
		return;
	}
	put_start(l, text, len, width);
}

/* "lock 100.0%", if there is room for it. */
static bool put_wait(struct line *l, const char *lead, const struct painter *p,
		     const struct top_wait *wait)
{
	struct line text = { .t = l->t };
	bool fits;

	line_put(&text, STYLE_PLAIN, lead);
	put_wait_word(&text, p->p, wait->marker, 0);
	line_putf(&text, STYLE_PLAIN, " %.1f%%", percent(wait->ns, p->sums->span_ns));
	fits = text.column < line_room(l);
	if (fits)
		line_put(l, STYLE_PLAIN, strbuf_str(&text.text));
	line_release(&text);
	return fits;
}

static void put_sums(struct painter *p)
{
	struct line *l = next_line(p);
	const struct top_sums *s = p->sums;

	line_putf(l, STYLE_PLAIN, "CPU %.1f%%", percent(s->ns[TOP_SELF], s->span_ns));
	if (!s->has_waits)
		return;
	line_putf(l, STYLE_PLAIN, "; waiting %.1f%%", percent(s->ns[TOP_WAIT], s->span_ns));
	for (size_t i = 0; i < s->waits.len; i++)
		if (!put_wait(l, i ? ", " : ": ", p, &s->waits.items[i]))
			return;
}

static void put_scope(struct line *l, const struct top_view *v, const struct profile *p)
{
	const struct process *process;

	if (v->scope.task) {
		line_put(l, STYLE_COOL, "task ");
		line_put_foreign(l, STYLE_COOL, strtab_get(p->strings, v->scope.task),
				 strtab_len(p->strings, v->scope.task));
		line_put(l, STYLE_COOL, v->scope.process != TOP_NONE || v->filter.len ? ", " : "");
	}
	if (v->scope.process == TOP_NONE)
		return;
	process = &p->processes.items[v->scope.process];
	if (v->scope.tid)
		line_putf(l, STYLE_COOL, "thread %u of ", v->scope.tid);
	line_putf(l, STYLE_COOL, "process %u ", process->pid);
	line_put_foreign(l, STYLE_COOL, strtab_get(p->strings, process->name),
			 strtab_len(p->strings, process->name));
	line_put(l, STYLE_COOL, v->filter.len ? ", " : "");
}

/* Where not all is shown. */
static void put_selection(struct painter *p)
{
	struct line *l;

	if (p->v->scope.process == TOP_NONE && !p->v->scope.task && !p->v->filter.len)
		return;
	l = next_line(p);
	line_put(l, STYLE_COOL, "only: ");
	put_scope(l, p->v, p->p);
	line_put_foreign(l, STYLE_COOL, strbuf_str(&p->v->filter), p->v->filter.len);
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Which columns of numbers there is room for: the one that is sorted by first of all. */
static void choose_columns(const struct painter *p, bool is_shown[TOP_COLUMNS])
{
	static const enum top_column order[] = { TOP_SELF, TOP_WAIT, TOP_TOTAL, TOP_GIL };
	size_t width = p->s->t.width, left = width >= WIDE ? TOP_COLUMNS : width >= NARROW ? 3 : 2;

	memset(is_shown, 0, TOP_COLUMNS * sizeof(is_shown[0]));
	is_shown[p->v->sort] = true;
	left--;
	for (size_t i = 0; i < TOP_COLUMNS && left; i++) {
		if (is_shown[order[i]] || !top_view_has_column(p->v, order[i]))
			continue;
		is_shown[order[i]] = true;
		left--;
	}
}

#define NUMBER_WIDTH 7 /* with a space before it */

/* With fewer decimals where it is large: columns never touch. */
static void format_number(char *text, size_t size, double number, int decimals)
{
	do
		snprintf(text, size, "%.*f", decimals, number);
	while (strlen(text) >= NUMBER_WIDTH && decimals--);
}

static void put_number(struct line *l, const struct painter *p, uint64_t ns, bool is_hot)
{
	double share = percent(ns, p->sums->span_ns);
	enum style style = STYLE_PLAIN;
	char text[32];

	if (is_hot && share >= 1)
		style = share >= 10 ? STYLE_HOT : STYLE_WARM;
	if (p->v->has_seconds)
		format_number(text, sizeof(text), (double)ns / 1e9, 2);
	else
		format_number(text, sizeof(text), share, 1);
	line_putf(l, style, "%*s", NUMBER_WIDTH, text);
}

static void put_column_names(struct line *l, const struct painter *p,
			     const bool is_shown[TOP_COLUMNS])
{
	static const char *const names[] = {
		[TOP_SELF] = "SELF", [TOP_TOTAL] = "TOTAL", [TOP_WAIT] = "WAIT", [TOP_GIL] = "GIL"
	};

	for (int i = 0; i < TOP_COLUMNS; i++) {
		const char *name = i == TOP_SELF && p->v->table != TOP_FUNCTIONS ? "CPU" : names[i];
		char text[16];

		if (!is_shown[i])
			continue;
		snprintf(text, sizeof(text), "%s%s%s", (int)p->v->sort == i ? "*" : "", name,
			 p->v->has_seconds ? "/s" : "%");
		line_putf(l, STYLE_PLAIN, "%*s", NUMBER_WIDTH, text);
	}
}

/* Is there a column for what threads wait for? */
static bool tells_waits(const struct painter *p, const struct line *l)
{
	return p->v->has_waits && l->t->width >= WIDE;
}

static void put_table_head(struct painter *p, const bool is_shown[TOP_COLUMNS])
{
	struct line *l;

	p->s->lines[p->next].is_reversed = true;
	l = next_line(p);
	put_column_names(l, p, is_shown);
	switch (p->v->table) {
	case TOP_PROCESSES:
		line_putf(l, STYLE_PLAIN, " %7s %4s %-*s MOSTLY IN", "PID", "THR", name_width(l),
			  "PROCESS");
		break;
	case TOP_THREADS:
		line_putf(l, STYLE_PLAIN, " %7s %-*s ", "TID", name_width(l), "THREAD");
		if (tells_waits(p, l))
			line_putf(l, STYLE_PLAIN, "%-*s ", waits_width(l), "WAITS FOR");
		line_put(l, STYLE_PLAIN, "MOSTLY IN");
		break;
	case TOP_TASKS:
		line_putf(l, STYLE_PLAIN, " %-*s MOSTLY IN", task_width(l), "TASK");
		break;
	default:
		line_put(l, STYLE_PLAIN, " FUNCTION");
	}
}

static void put_process(struct line *l, const struct painter *p, const struct top_row *row)
{
	const struct process *process = &p->p->processes.items[row->id];

	line_putf(l, STYLE_PLAIN, " %7u %4u ", process->pid, row->threads);
	put_string(l, p->p, process->name, (size_t)name_width(l));
	put_function(l, p->p, row->mostly, false);
}

static void put_thread(struct line *l, const struct painter *p, const struct top_row *row)
{
	const struct thread *t = &p->p->threads.items[row->id];

	line_putf(l, STYLE_PLAIN, " %7u ", t->tid);
	put_string(l, p->p, t->name, (size_t)name_width(l));
	if (tells_waits(p, l) && row->waits_for)
		put_wait_word(l, p->p, row->waits_for, (size_t)waits_width(l));
	else if (tells_waits(p, l))
		put_cell(l, "", 0, (size_t)waits_width(l));
	put_function(l, p->p, row->mostly, false);
}

static void put_task(struct line *l, const struct painter *p, const struct top_row *row)
{
	line_put(l, STYLE_PLAIN, " ");
	put_string(l, p->p, row->id, (size_t)task_width(l));
	put_function(l, p->p, row->mostly, false);
}

static void put_row(struct painter *p, const struct top_row *row, const bool is_shown[TOP_COLUMNS])
{
	struct line *l = next_line(p);

	for (int i = 0; i < TOP_COLUMNS; i++)
		if (is_shown[i])
			put_number(l, p, row->ns[i], (int)p->v->sort == i);
	if (p->v->table == TOP_PROCESSES)
		put_process(l, p, row);
	else if (p->v->table == TOP_THREADS)
		put_thread(l, p, row);
	else if (p->v->table == TOP_TASKS)
		put_task(l, p, row);
	else {
		line_put(l, STYLE_PLAIN, " ");
		put_function(l, p->p, row->id, false);
	}
}

static void put_nothing(struct painter *p)
{
	struct line *l;

	if (!lines_left(p))
		return;
	l = next_line(p);
	line_put(l, STYLE_DIM, p->sums->counts.samples ? "no samples match" : "no samples yet");
}

/* The cursor is always to be seen. */
static void put_table(struct painter *p)
{
	bool is_shown[TOP_COLUMNS];
	struct top_view *v = p->v;
	size_t count = p->sums->rows.len, rows;

	choose_columns(p, is_shown);
	put_table_head(p, is_shown);
	rows = v->page = lines_left(p);
	if (!count || !rows) {
		put_nothing(p);
		return;
	}
	if (v->first + rows > count)
		v->first = count > rows ? count - rows : 0;
	if (v->cursor < v->first)
		v->first = v->cursor;
	if (v->cursor >= v->first + rows)
		v->first = v->cursor - rows + 1;
	for (size_t i = v->first; i < count && lines_left(p); i++) {
		p->s->lines[p->next].is_reversed = i == v->cursor;
		put_row(p, &p->sums->rows.items[i], is_shown);
	}
}

/* --- text that scrolls ------------------------------------------------------------------------ */

/* Lines that there may be more of than there is room for: those from view.first on are seen. */
struct scroll {
	struct painter *p;
	size_t count; /* so far */
};

/* NULL: it is not to be seen. */
static struct line *scroll_line(struct scroll *s)
{
	size_t at = s->count++;

	return at < s->p->v->first || !lines_left(s->p) ? NULL : next_line(s->p);
}

static void end_scroll(struct scroll *s, size_t lines)
{
	struct top_view *v = s->p->v;
	size_t last = s->count > lines ? s->count - lines : 0;

	v->page = lines;
	if (v->first > last)
		v->first = last;
}

static void put_parts(struct scroll *s, const char *title, const struct top_parts *parts,
		      bool by_line)
{
	const struct painter *p = s->p;
	bool has_waits = p->sums->has_waits;
	struct line *l = scroll_line(s);

	if (l) {
		line_putf(l, STYLE_BOLD, "%7s", p->v->has_seconds ? "TOTAL/s" : "TOTAL%");
		if (has_waits)
			line_putf(l, STYLE_BOLD, "%7s", p->v->has_seconds ? "WAIT/s" : "WAIT%");
		line_putf(l, STYLE_BOLD, " %s", title);
	}
	for (size_t i = 0; i < parts->len; i++) {
		const struct top_part *part = &parts->items[i];

		l = scroll_line(s);
		if (!l)
			continue;
		put_number(l, p, part->cpu_ns, true);
		if (has_waits)
			put_number(l, p, part->wait_ns, true);
		line_put(l, STYLE_PLAIN, " ");
		if (part->frame == TOP_NONE)
			line_put(l, STYLE_DIM, "(bottom of stack)");
		else
			put_function(l, p->p, part->frame, by_line);
	}
}

static void put_stack(struct scroll *s)
{
	const struct top_detail *d = s->p->detail;
	struct line *l = scroll_line(s);

	if (l)
		line_putf(l, STYLE_BOLD, "HOTTEST STACK, %.1f%% of its time",
			  percent(d->stack_ns, d->all_ns));
	for (size_t i = 0; i < d->stack.len; i++) {
		l = scroll_line(s);
		if (!l)
			continue;
		line_put(l, STYLE_PLAIN, "  ");
		put_function(l, s->p->p, d->stack.items[i], true);
	}
}

static const char *const help_lines[] = {
	"1 2 3, Tab      processes, threads, functions",
	"4               tasks, with --async: CPU time, and waiting of each task",
	"Up Down j k     move; PgUp PgDn Home End g G",
	"Enter           process: its threads; thread, task: its functions;",
	"                function: who calls it, its lines, its hottest stack",
	"Backspace, Esc  back",
	"< >             sort by another column (marked *)",
	"w               the last seconds, or since the start",
	"%               shares of the time, or seconds",
	"p, Space        pause: what is shown stays as it is",
	"f               filter, as on the command line: --focus 'parse*'",
	"                --thread main; a word alone: --focus '*word*'",
	"/ n N           search; next, previous",
	"r               reset all counters",
	"s               save all since the start as a recording",
	"^L              draw the screen anew",
	"q               quit",
	"",
	"SELF   CPU time in the function itself: 100% is one CPU",
	"TOTAL  also in what it calls",
	"WAIT   time waiting in the function itself: 100% is one thread",
	"GIL    part of WAIT spent waiting for the GIL",
};

static void put_help(struct painter *p)
{
	size_t lines = lines_left(p);
	struct scroll s = { .p = p };

	for (size_t i = 0; i < sizeof(help_lines) / sizeof(help_lines[0]); i++) {
		struct line *l = scroll_line(&s);

		if (l)
			line_put(l, STYLE_PLAIN, help_lines[i]);
	}
	end_scroll(&s, lines);
}

static void put_detail(struct painter *p)
{
	struct line *l;
	struct scroll s;
	size_t lines;

	p->s->lines[p->next].is_reversed = true;
	l = next_line(p);
	put_function(l, p->p, p->v->function, false);
	lines = lines_left(p);
	s = (struct scroll){ .p = p };
	put_parts(&s, "CALLED FROM", &p->detail->callers, false);
	put_parts(&s, "LINE", &p->detail->lines, true);
	put_stack(&s);
	end_scroll(&s, lines);
}

/* --- the bottom ------------------------------------------------------------------------------- */

static void put_prompt(struct painter *p, struct line *l)
{
	static const char *const words[] = { [TOP_PROMPT_FILTER] = "filter: ",
					     [TOP_PROMPT_SEARCH] = "search: ",
					     [TOP_PROMPT_SAVE] = "save as: " };
	const char *word = words[p->v->prompt];
	size_t room = l->t->width - 1;

	line_put(l, STYLE_BOLD, word);
	line_put_tail(l, STYLE_PLAIN, strbuf_str(&p->v->input), p->v->input.len, "",
		      room > strlen(word) ? room - strlen(word) : 0);
	p->s->has_cursor = true;
}

/* As many as there is room for. */
static void put_keys(struct line *l, const struct top_view *v)
{
	static const struct {
		const char *key, *what;
	} keys[] = {
		{ "q", "quit" },   { "?", "help" },   { "1 2 3", "views" }, { "Enter", "in" },
		{ "w", "window" }, { "< >", "sort" }, { "p", "pause" },     { "f", "filter" },
		{ "/", "search" }, { "s", "save" },   { "r", "reset" },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (line_room(l) < strlen(keys[i].key) + strlen(keys[i].what) + 3)
			return;
		line_put(l, STYLE_PLAIN, i ? "  " : "");
		line_put(l, STYLE_BOLD, keys[i].key);
		line_putf(l, STYLE_DIM, " %s", keys[i].what);
	}
	put_right(l, STYLE_DIM, table_names[v->table]);
}

static void put_bottom(struct painter *p)
{
	struct line *l;

	p->next = p->end++;
	l = next_line(p);
	if (p->v->prompt)
		put_prompt(p, l);
	else if (p->v->message.len)
		line_put_foreign(l, STYLE_WARM, strbuf_str(&p->v->message), p->v->message.len);
	else if (p->f->warning)
		line_put_foreign(l, STYLE_WARM, p->f->warning, strlen(p->f->warning));
	else
		put_keys(l, p->v);
}

static void paint(struct painter *p)
{
	p->next = 0;
	p->end = p->s->height - 1; /* the last one is for keys */
	put_title(p);
	put_counts(p);
	if (p->s->height >= TALL) {
		put_sums(p);
		put_selection(p);
	}
	if (p->v->has_help)
		put_help(p);
	else if (p->v->function != TOP_NONE)
		put_detail(p);
	else
		put_table(p);
	put_bottom(p);
}

int top_screen_paint(struct top_screen *s, size_t width, size_t height, struct top_view *v,
		     const struct top_facts *f, const struct top_sums *sums,
		     const struct top_detail *detail, const struct profile *profile)
{
	struct painter p = { .s = s, .v = v, .f = f, .sums = sums, .detail = detail, .p = profile };
	size_t first = v->first;
	int r = make_lines(s, width, height);

	if (r < 0)
		return r;
	paint(&p);
	if (v->first < first) { /* it was beyond the end of the text */
		if ((r = make_lines(s, width, height)) < 0)
			return r;
		paint(&p);
	}
	for (size_t i = 0; i < s->height; i++)
		if (strbuf_error(&s->lines[i].line.text))
			return -ENOMEM;
	return 0;
}
