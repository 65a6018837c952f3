/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/top_filter.h"
#include "cmd/top_model.h"
#include "cmd/top_screen.h"
#include "cmd/top_view.h"

#define SECONDS(n) ((uint64_t)((n)*NS_PER_SECOND))
#define START SECONDS(1000) /* CLOCK_MONOTONIC */

/* --- a recorder's profile --------------------------------------------------------------------- */

/* What is recorded: two kinds of time, two processes, threads, and stacks as "a;b;c". */
struct source {
	struct profile *p;
	uint16_t cpu, wait;
};

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

static uint16_t add_kind(struct profile *p, const char *name)
{
	const struct sample_kind kind = { .name = text(p, name), .period = 1, .unit = UNIT_NS };
	uint16_t id;

	assert_int_equal(profile_add_kind(p, &kind, &id), 0);
	return id;
}

static void fill_tables(struct source *s)
{
	s->cpu = add_kind(s->p, "cpu");
	s->wait = add_kind(s->p, "off-cpu");
}

static struct source new_source(void)
{
	struct source s = { 0 };
	struct recording *r;

	assert_int_equal(profile_new(&s.p), 0);
	r = profile_recording(s.p);
	r->start_monotonic_ns = START;
	r->interval_ns = 10000000;
	assert_int_equal(recording_set_text(&r->mode, "wall"), 0);
	fill_tables(&s);
	return s;
}

static uint32_t thread(struct profile *p, uint32_t pid, uint32_t tid, const char *name)
{
	struct process process = { .pid = pid, .name = text(p, pid == 7 ? "web" : "batch") };
	struct thread t = { .tid = tid, .name = text(p, name) };
	uint32_t id;

	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &id), 0);
	return id;
}

/* "name:line;...": of app.py; in angle brackets a marker. */
static uint32_t stack(struct profile *p, const char *frames)
{
	char copy[256], *rest = NULL;
	uint32_t id = 0;

	snprintf(copy, sizeof(copy), "%s", frames);
	for (char *name = strtok_r(copy, ";", &rest); name; name = strtok_r(NULL, ";", &rest)) {
		char *line = strchr(name, ':');
		struct frame f;
		uint32_t frame;

		memset(&f, 0, sizeof(f));
		f.kind = *name == '<' ? FRAME_MARKER : FRAME_PYTHON;
		if (line)
			*line++ = 0;
		f.line = line ? (uint32_t)atol(line) : 1;
		f.first_line = f.kind == FRAME_PYTHON;
		f.name = text(p, name);
		f.file = f.kind == FRAME_PYTHON ? text(p, "/srv/app.py") : 0;
		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, id, frame, &id), 0);
	}
	return id;
}

/* A sample that ends at a time after the start, in seconds. */
static void add(struct source *s, uint32_t of, const char *frames, uint16_t kind, double end,
		double lasts, double value)
{
	const struct sample sample = { .time_ns = SECONDS(end - lasts),
				       .duration_ns = SECONDS(lasts),
				       .value = SECONDS(value),
				       .thread = of,
				       .stack = stack(s->p, frames),
				       .kind = kind };

	assert_int_equal(profile_add_sample(s->p, &sample), 0);
}

static void end_slice(struct top_model *m, struct source *s, double now)
{
	const struct top_counts counts = { .samples = s->p->samples.len, .own_ns = 1000000 };

	assert_int_equal(top_model_add(m, s->p, START + SECONDS(now), &counts), 0);
	profile_clear_samples(s->p);
}

static const struct top_scope all = { .process = TOP_NONE };

static const struct top_row *find_row(const struct top_sums *sums, const struct profile *p,
				      const char *name)
{
	for (size_t i = 0; i < sums->rows.len; i++) {
		const struct frame *f = frametab_get(p->frames, sums->rows.items[i].id);

		if (!strcmp(strtab_get(p->strings, f->name), name))
			return &sums->rows.items[i];
	}
	return NULL;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void assert_seconds(const char *what, uint64_t ns, double want)
{
	if (seconds(ns) < want - 1e-6 || seconds(ns) > want + 1e-6)
		fail_msg("%s: %f s, not %f", what, seconds(ns), want);
}

static void assert_row(const struct top_sums *sums, const struct profile *p, const char *name,
		       double self, double total, double wait, double gil)
{
	const struct top_row *row = find_row(sums, p, name);

	if (!row)
		fail_msg("no row %s", name);
	assert_seconds(name, row->ns[TOP_SELF], self);
	assert_seconds(name, row->ns[TOP_TOTAL], total);
	assert_seconds(name, row->ns[TOP_WAIT], wait);
	assert_seconds(name, row->ns[TOP_GIL], gil);
}

/* Two seconds of a thread that computes and one that waits. */
static void add_work(struct source *s, double at)
{
	uint32_t main_thread = thread(s->p, 7, 7, "MainThread");
	uint32_t worker = thread(s->p, 7, 8, "worker");

	add(s, main_thread, "main:3;parse:10", s->cpu, at - 1, 0, 0.6);
	add(s, main_thread, "main:3;parse:11", s->cpu, at - 0.5, 0, 0.2);
	add(s, main_thread, "main:4;check:20;<GC>", s->cpu, at - 0.5, 0, 0.2);
	add(s, main_thread, "main:3;parse:10;<GIL>", s->wait, at - 0.1, 1, 1);
	add(s, worker, "run:30;get:31;<lock>", s->wait, at, 2, 2);
}

/* --- the model -------------------------------------------------------------------------------- */

static void test_top_model_tells_self_total_wait_and_gil(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = NULL;
	struct source s = new_source();
	struct top_sums sums = { 0 };
	const struct profile *p;

	(void)state;
	assert_int_equal(top_model_new(SECONDS(10), &m), 0);
	add_work(&s, 2);
	end_slice(m, &s, 2);
	p = top_model_profile(m);
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_FUNCTIONS, TOP_SELF, &all, &sums), 0);
	assert_row(&sums, p, "main", 0, 1, 0, 0);
	assert_row(&sums, p, "parse", 0.8, 0.8, 1, 1);
	assert_row(&sums, p, "check", 0, 0.2, 0, 0);
	assert_row(&sums, p, "<GC>", 0.2, 0.2, 0, 0);
	assert_row(&sums, p, "get", 0, 0, 2, 0);
	assert_null(find_row(&sums, p, "<lock>"));
	assert_null(find_row(&sums, p, "run"));
	assert_seconds("span", sums.span_ns, 2);
	assert_seconds("CPU of all", sums.ns[TOP_SELF], 1);
	assert_seconds("waiting of all", sums.ns[TOP_WAIT], 3);
	assert_int_equal(sums.waits.len, 2);
	assert_string_equal(strtab_get(p->strings, sums.waits.items[0].marker), "<lock>");
	assert_int_equal(sums.threads, 2);
	assert_int_equal(sums.processes, 1);
	assert_true(sums.has_waits);
	top_sums_release(&sums);
	profile_free(s.p);
}

static void test_top_model_window_slides(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = NULL;
	struct source s = new_source();
	struct top_sums sums = { 0 };
	uint32_t t;

	(void)state;
	assert_int_equal(top_model_new(SECONDS(3), &m), 0);
	for (int now = 1; now <= 10; now++) {
		t = thread(s.p, 7, 7, "MainThread");
		add(&s, t, now <= 5 ? "early:1" : "late:1", s.cpu, now - 0.5, 0, 0.5);
		if (now == 9) /* its end is all that is known of it */
			add(&s, t, "nap:1;<sleep>", s.wait, 9, 8, 8);
		if (now == 6) { /* ids begin anew */
			end_slice(m, &s, now);
			assert_int_equal(profile_reset(s.p), 0);
			fill_tables(&s);
			top_model_forget_ids(m);
			continue;
		}
		end_slice(m, &s, now);
	}
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_FUNCTIONS, TOP_SELF, &all, &sums), 0);
	assert_null(find_row(&sums, top_model_profile(m), "early"));
	assert_row(&sums, top_model_profile(m), "late", 1.5, 1.5, 0, 0);
	assert_row(&sums, top_model_profile(m), "nap", 0, 0, 2, 0);
	assert_seconds("span", sums.span_ns, 3);
	assert_int_equal(sums.counts.samples, 4);
	assert_int_equal(top_model_sum(m, TOP_SINCE_START, TOP_FUNCTIONS, TOP_SELF, &all, &sums),
			 0);
	assert_row(&sums, top_model_profile(m), "early", 2.5, 2.5, 0, 0);
	assert_row(&sums, top_model_profile(m), "late", 2.5, 2.5, 0, 0);
	assert_row(&sums, top_model_profile(m), "nap", 0, 0, 8, 0);
	assert_seconds("span", sums.span_ns, 10);
	assert_int_equal(top_model_reset(m, START + SECONDS(10)), 0);
	assert_int_equal(top_model_sum(m, TOP_SINCE_START, TOP_FUNCTIONS, TOP_SELF, &all, &sums),
			 0);
	assert_int_equal(sums.rows.len, 0);
	assert_int_equal(sums.span_ns, 0);
	top_sums_release(&sums);
	profile_free(s.p);
}

static void test_top_model_holds_what_is_shown(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = NULL;
	struct source s = new_source();
	struct top_sums sums = { 0 };
	uint32_t t = thread(s.p, 7, 7, "MainThread");

	(void)state;
	assert_int_equal(top_model_new(SECONDS(10), &m), 0);
	add(&s, t, "before:1", s.cpu, 0.5, 0, 1);
	end_slice(m, &s, 1);
	top_model_hold(m, true);
	add(&s, t, "meanwhile:1", s.cpu, 15, 0, 1);
	end_slice(m, &s, 20);
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_FUNCTIONS, TOP_SELF, &all, &sums), 0);
	assert_row(&sums, top_model_profile(m), "before", 1, 1, 0, 0);
	assert_null(find_row(&sums, top_model_profile(m), "meanwhile"));
	assert_seconds("span", sums.span_ns, 1);
	top_model_hold(m, false);
	add(&s, t, "after:1", s.cpu, 20.5, 0, 1);
	end_slice(m, &s, 21);
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_FUNCTIONS, TOP_SELF, &all, &sums), 0);
	assert_int_equal(sums.rows.len, 1);
	assert_row(&sums, top_model_profile(m), "after", 1, 1, 0, 0);
	assert_seconds("span", sums.span_ns, 1);
	assert_int_equal(top_model_sum(m, TOP_SINCE_START, TOP_FUNCTIONS, TOP_SELF, &all, &sums),
			 0);
	assert_int_equal(sums.rows.len, 3);
	assert_seconds("span", sums.span_ns, 21);
	assert_int_equal(sums.counts.samples, 3);
	top_sums_release(&sums);
	profile_free(s.p);
}

static void test_top_model_selects(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = NULL;
	struct source s = new_source();
	struct top_sums sums = { 0 };
	struct top_filter f = { 0 };
	const struct {
		const char *name, *filter;
		double cpu, wait;
	} cases[] = {
		{ "all", "", 1, 3 },
		{ "a function", "--focus parse", 0.8, 1 },
		{ "a word", "pars", 0.8, 1 },
		{ "a thread", "--thread work*", 0, 2 },
		{ "quoted", "--thread 'Main Thread'", 0, 0 },
		{ "two", "--process web --ignore parse", 0.2, 2 },
		{ "nobody", "--process 9", 0, 0 },
	};

	(void)state;
	assert_int_equal(top_model_new(SECONDS(10), &m), 0);
	add_work(&s, 2);
	end_slice(m, &s, 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		top_filter_release(&f);
		assert_int_equal(top_filter_read(&f, cases[i].filter), 0);
		top_model_select(m, &f.query);
		assert_int_equal(top_model_sum(m, TOP_LAST, TOP_FUNCTIONS, TOP_SELF, &all, &sums),
				 0);
		assert_seconds(cases[i].name, sums.ns[TOP_SELF], cases[i].cpu);
		assert_seconds(cases[i].name, sums.ns[TOP_WAIT], cases[i].wait);
	}
	top_filter_release(&f);
	top_sums_release(&sums);
	profile_free(s.p);
}

static void test_top_model_gathers_threads_and_processes(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = NULL;
	struct source s = new_source();
	struct top_sums sums = { 0 };
	struct top_scope scope = all;
	const struct profile *p;
	const struct frame *f;

	(void)state;
	assert_int_equal(top_model_new(SECONDS(10), &m), 0);
	add_work(&s, 2);
	add(&s, thread(s.p, 7, 8, "renamed"), "run:30;work:33", s.cpu, 1.9, 0, 0.1);
	add(&s, thread(s.p, 9, 9, "MainThread"), "job:1", s.cpu, 1.9, 0, 0.3);
	end_slice(m, &s, 2);
	p = top_model_profile(m);
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_THREADS, TOP_SELF, &all, &sums), 0);
	assert_int_equal(sums.rows.len, 3);
	top_sort(sums.rows.items, sums.rows.len, TOP_WAIT);
	assert_string_equal(strtab_get(p->strings, p->threads.items[sums.rows.items[0].id].name),
			    "renamed");
	assert_seconds("wait", sums.rows.items[0].ns[TOP_WAIT], 2);
	assert_string_equal(strtab_get(p->strings, sums.rows.items[0].waits_for), "<lock>");
	f = frametab_get(p->frames, sums.rows.items[0].mostly);
	assert_string_equal(strtab_get(p->strings, f->name), "work"); /* by CPU time */
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_THREADS, TOP_WAIT, &all, &sums), 0);
	top_sort(sums.rows.items, sums.rows.len, TOP_WAIT);
	f = frametab_get(p->frames, sums.rows.items[0].mostly);
	assert_string_equal(strtab_get(p->strings, f->name), "get");

	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_PROCESSES, TOP_SELF, &all, &sums), 0);
	top_sort(sums.rows.items, sums.rows.len, TOP_SELF);
	assert_int_equal(sums.rows.len, 2);
	assert_int_equal(p->processes.items[sums.rows.items[0].id].pid, 7);
	assert_int_equal(sums.rows.items[0].threads, 2);
	assert_seconds("CPU", sums.rows.items[0].ns[TOP_SELF], 1.1);
	scope.process = sums.rows.items[1].id;
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_FUNCTIONS, TOP_SELF, &scope, &sums), 0);
	assert_int_equal(sums.rows.len, 1);
	assert_row(&sums, p, "job", 0.3, 0.3, 0, 0);
	top_sums_release(&sums);
	profile_free(s.p);
}

static void test_top_model_looks_at_a_function(void **state)
{
	_cleanup_(top_model_freep) struct top_model *m = NULL;
	struct source s = new_source();
	struct top_detail d = { 0 };
	struct top_sums sums = { 0 };
	const struct profile *p;

	(void)state;
	assert_int_equal(top_model_new(SECONDS(10), &m), 0);
	add_work(&s, 2);
	add(&s, thread(s.p, 7, 7, "MainThread"), "parse:12;parse:10", s.cpu, 1.9, 0, 0.1);
	end_slice(m, &s, 2);
	p = top_model_profile(m);
	assert_int_equal(top_model_sum(m, TOP_LAST, TOP_FUNCTIONS, TOP_SELF, &all, &sums), 0);
	assert_int_equal(top_model_look(m, find_row(&sums, p, "parse")->id, &d), 0);
	assert_int_equal(d.callers.len, 2);
	assert_string_equal(
		strtab_get(p->strings, frametab_get(p->frames, d.callers.items[0].frame)->name),
		"main");
	assert_seconds("called from main", d.callers.items[0].cpu_ns, 0.8);
	assert_seconds("called from main, waiting", d.callers.items[0].wait_ns, 1);
	assert_int_equal(d.callers.items[1].frame, TOP_NONE);
	assert_int_equal(d.lines.len, 2);
	assert_int_equal(frametab_get(p->frames, d.lines.items[0].frame)->line, 10);
	assert_seconds("line 10", d.lines.items[0].cpu_ns, 0.7);
	assert_int_equal(d.stack.len, 3);
	assert_seconds("hottest", d.stack_ns, 1);
	assert_seconds("all", d.all_ns, 1.9);
	top_detail_release(&d);
	top_sums_release(&sums);
	profile_free(s.p);
}

/* --- the filter ------------------------------------------------------------------------------- */

static void test_top_filter_read_says_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "--focus 'a", "' is not closed" },
		{ "--fokus a", "unknown option --fokus; did you mean --focus?" },
		{ "--thread", "--thread needs a value: THREAD" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct top_filter f = { 0 };

		assert_int_equal(top_filter_read(&f, cases[i].text), -EINVAL);
		assert_string_equal(err_message(-EINVAL), cases[i].want);
		top_filter_release(&f);
	}
}

/* --- the screen ------------------------------------------------------------------------------- */

static const struct top_facts facts = {
	.target = "pid 7", .mode = "wall", .clock = "12:03:04", .freq_hz = 99
};

static void assert_screen(const char *name, const struct top_screen *s, const char *const *want,
			  size_t count)
{
	for (size_t i = 0; i < s->height; i++) {
		const char *got = strbuf_str(&s->lines[i].line.text);
		size_t len = strlen(got);

		while (len && got[len - 1] == ' ')
			len--;
		if (strlen(i < count ? want[i] : "") != len ||
		    memcmp(got, i < count ? want[i] : "", len) != 0)
			fail_msg("%s, line %zu: \"%s\", not \"%s\"", name, i, got,
				 i < count ? want[i] : "");
		assert_true(s->lines[i].line.column <= s->t.width);
	}
}

/* All that is to be seen of a model. */
struct seen {
	struct top_model *m;
	struct top_view v;
	struct top_sums sums;
	struct top_detail detail;
	struct top_screen screen;
};

static void look(struct seen *w)
{
	assert_int_equal(
		top_model_sum(w->m, w->v.span, w->v.table, w->v.sort, &w->v.scope, &w->sums), 0);
	top_view_arrange(&w->v, &w->sums);
	if (w->v.function != TOP_NONE)
		assert_int_equal(top_model_look(w->m, w->v.function, &w->detail), 0);
}

static void paint(struct seen *w, size_t width, size_t height)
{
	assert_int_equal(top_screen_paint(&w->screen, width, height, &w->v, &facts, &w->sums,
					  &w->detail, top_model_profile(w->m)),
			 0);
}

static void begin_seen(struct seen *w)
{
	struct source s = new_source();

	*w = (struct seen){ 0 };
	top_view_init(&w->v);
	assert_int_equal(top_model_new(SECONDS(10), &w->m), 0);
	add_work(&s, 2);
	end_slice(w->m, &s, 2);
	look(w);
	profile_free(s.p);
}

static void end_seen(struct seen *w)
{
	top_view_release(&w->v);
	top_sums_release(&w->sums);
	top_detail_release(&w->detail);
	top_screen_release(&w->screen);
	top_model_free(w->m);
}

/* Keys, as they would be pressed. */
static void press(struct seen *w, const char *keys)
{
	for (; *keys; keys++) {
		enum top_action a = top_view_key(&w->v, (unsigned char)*keys, &w->sums,
						 top_model_profile(w->m));

		if (a == TOP_DO_SUM)
			look(w);
	}
}

#define SCREEN(name, width, height, keys, ...)                                              \
	{                                                                                   \
		name, width, height, keys, (const char *const[]){ __VA_ARGS__ },            \
			sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *) \
	}

/* clang-format off */
static const struct {
	const char *name;
	size_t width, height;
	const char *keys;
	const char *const *lines;
	size_t count;
} screens[] = {
	SCREEN("functions", 80, 12, "",
	"pyebpf top  wall, 99 Hz  pid 7                                last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 process, 2 threads",
	"CPU 50.0%; waiting 150.0%: lock 100.0%, GIL 50.0%",
	" *SELF% TOTAL%  WAIT%   GIL% FUNCTION",
	"   40.0   40.0   50.0   50.0 parse  srv/app.py:1",
	"   10.0   10.0    0.0    0.0 <GC>",
	"    0.0    0.0  100.0    0.0 get  srv/app.py:1",
	"    0.0   50.0    0.0    0.0 main  srv/app.py:1",
	"    0.0   10.0    0.0    0.0 check  srv/app.py:1",
	"", "",
	"q quit  ? help  1 2 3 views  Enter in  w window  < > sort  p pause  f filter"),
	SCREEN("by what waits, in seconds", 80, 12, ">>%",
	"pyebpf top  wall, 99 Hz  pid 7                                last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 process, 2 threads",
	"CPU 50.0%; waiting 150.0%: lock 100.0%, GIL 50.0%",
	" SELF/sTOTAL/s*WAIT/s  GIL/s FUNCTION",
	"   0.00   0.00   2.00   0.00 get  srv/app.py:1",
	"   0.80   0.80   1.00   1.00 parse  srv/app.py:1",
	"   0.20   0.20   0.00   0.00 <GC>",
	"   0.00   1.00   0.00   0.00 main  srv/app.py:1",
	"   0.00   0.20   0.00   0.00 check  srv/app.py:1",
	"", "",
	"q quit  ? help  1 2 3 views  Enter in  w window  < > sort  p pause  f filter"),
	SCREEN("a small one", 40, 10, "",
	"top pid 7             last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 proce",
	" *SELF%  WAIT% FUNCTION",
	"   40.0   50.0 parse",
	"   10.0    0.0 <GC>",
	"    0.0  100.0 get",
	"    0.0    0.0 main",
	"    0.0    0.0 check",
	"",
	"q quit  ? help  1 2 3 views  Enter in"),
	SCREEN("threads", 80, 8, "2",
	"pyebpf top  wall, 99 Hz  pid 7                                last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 process, 2 threads",
	"  *CPU%  WAIT%   GIL%     TID THREAD       WAITS FOR  MOSTLY IN",
	"   50.0   50.0   50.0       7 MainThread   GIL        parse",
	"    0.0  100.0    0.0       8 worker       lock       get",
	"", "",
	"q quit  ? help  1 2 3 views  Enter in  w window  < > sort  p pause  f filter"),
	SCREEN("processes", 80, 6, "1",
	"pyebpf top  wall, 99 Hz  pid 7                                last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 process, 2 threads",
	"  *CPU%  WAIT%   GIL%     PID  THR PROCESS      MOSTLY IN",
	"   50.0  150.0   50.0       7    2 web          parse  srv/app.py:1",
	"",
	"q quit  ? help  1 2 3 views  Enter in  w window  < > sort  p pause  f filter"),
	SCREEN("a process that was entered, its second thread", 80, 13, "1\njj\n",
	"pyebpf top  wall, 99 Hz  pid 7                                last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 process, 1 thread",
	"CPU 0.0%; waiting 100.0%: lock 100.0%",
	"only: thread 8 of process 7 web",
	" *SELF% TOTAL%  WAIT%   GIL% FUNCTION",
	"    0.0    0.0  100.0    0.0 get  srv/app.py:1",
	"", "", "", "", "", "",
	"q quit  ? help  1 2 3 views  Enter in  w window  < > sort  p pause  f filter"),
	SCREEN("a function", 60, 16, "\n",
	"top pid 7                                 last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 process, 2 threads",
	"CPU 50.0%; waiting 150.0%: lock 100.0%, GIL 50.0%",
	"parse  srv/app.py:1",
	" TOTAL%  WAIT% CALLED FROM",
	"   40.0   50.0 main  srv/app.py:1",
	" TOTAL%  WAIT% LINE",
	"   30.0   50.0 parse  srv/app.py:10",
	"   10.0    0.0 parse  srv/app.py:11",
	"HOTTEST STACK, 55.6% of its time",
	"  main  srv/app.py:3",
	"  parse  srv/app.py:10",
	"  <GIL>",
	"", "",
	"q quit  ? help  1 2 3 views  Enter in  w window  < > sort"),
	SCREEN("its end", 40, 6, "\nG",
	"top pid 7             last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 proce",
	"parse  srv/app.py:1",
	"  parse  srv/app.py:10",
	"  <GIL>",
	"q quit  ? help  1 2 3 views  Enter in"),
	SCREEN("search and its prompt", 40, 7, "/GE\n/ma",
	"top pid 7             last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 proce",
	" *SELF%  WAIT% FUNCTION",
	"   40.0   50.0 parse",
	"   10.0    0.0 <GC>",
	"    0.0  100.0 get",
	"search: ma"),
	SCREEN("not found", 40, 5, "/nowhere\n",
	"top pid 7             last 2 s  12:03:04",
	"5 samples, 0 lost; own CPU 0.1%; 1 proce",
	" *SELF%  WAIT% FUNCTION",
	"   40.0   50.0 parse",
	"not found: nowhere"),
	SCREEN("the least", 3, 1, "",
	"top pid 7   last 2 s",
	"5 samples, 0 lost; o",
	" *SELF%  WAIT% FUNCT",
	"q quit  ? help"),
};
/* clang-format on */

static void test_top_screen_paint_is_to_the_letter(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(screens) / sizeof(screens[0]); i++) {
		struct seen w;

		begin_seen(&w);
		press(&w, screens[i].keys);
		paint(&w, screens[i].width, screens[i].height);
		assert_screen(screens[i].name, &w.screen, screens[i].lines, screens[i].count);
		end_seen(&w);
	}
}

/* Names drive no terminal, and take the columns that they are drawn in. */
static void test_top_screen_paint_neutralises_names(void **state)
{
	static const struct {
		const char *name, *frames, *want;
	} cases[] = {
		{ "a control sequence", "a\x1b[31mb", "a\\x1b[31mb" },
		{ "no UTF-8", "a\xff", "a\\xff" },
		{ "the other direction",
		  "a\xe2\x80\xae"
		  "b",
		  "a\\xe2\\x80\\xaeb" },
		{ "wide",
		  "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe5\x90\x8d\xe5\x89\x8d\xe3\x81"
		  "\xaf\xe9\x95\xb7\xe3\x81\x84\xe3\x81\xae\xe3\x81\xa7\xe3\x81\x99\xe3\x81\xad\xe3"
		  "\x81\x88",
		  ".."
		  "\xe3\x81\xae\xe5\x90\x8d\xe5\x89\x8d\xe3\x81\xaf\xe9\x95\xb7\xe3\x81\x84\xe3\x81"
		  "\xae\xe3\x81\xa7\xe3\x81\x99\xe3\x81\xad\xe3\x81\x88" },
		{ "marks upon marks", "a\xcc\x81\xcc\x81", "a\xcc\x81\xcc\x81" },
	};

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(top_model_freep) struct top_model *m = NULL;
		struct source s = new_source();
		struct seen w = { 0 };
		const char *got;

		assert_int_equal(top_model_new(SECONDS(10), &m), 0);
		w.m = m;
		top_view_init(&w.v);
		add(&s, thread(s.p, 7, 7, "MainThread"), cases[i].frames, s.cpu, 1, 0, 1);
		end_slice(m, &s, 2);
		look(&w);
		paint(&w, 40, 10);
		got = strbuf_str(&w.screen.lines[3].line.text) + strlen("   50.0   50.0 ");
		if (strcmp(got, cases[i].want))
			fail_msg("%s: \"%s\", not \"%s\"", cases[i].name, got, cases[i].want);
		assert_true(w.screen.lines[3].line.column <= 40);
		w.m = NULL;
		end_seen(&w);
		profile_free(s.p);
	}
	setlocale(LC_CTYPE, "C");
}

static void test_top_screen_columns_never_touch(void **state)
{
	struct source s = new_source();
	uint32_t t = thread(s.p, 7, 7, "MainThread");
	struct seen w = { 0 };

	(void)state;
	top_view_init(&w.v);
	assert_int_equal(top_model_new(SECONDS(10), &w.m), 0);
	add(&s, t, "crowd:1", s.cpu, 1, 0, 1);
	add(&s, t, "crowd:1;<lock>", s.wait, 2, 2, 12345.678);
	end_slice(w.m, &s, 2);
	look(&w);
	paint(&w, 80, 10);
	assert_string_equal(strbuf_str(&w.screen.lines[3].line.text),
			    "   50.0   50.0 617284    0.0 crowd  srv/app.py:1");
	press(&w, "%");
	paint(&w, 80, 10);
	assert_string_equal(strbuf_str(&w.screen.lines[3].line.text),
			    "   1.00   1.00  12346   0.00 crowd  srv/app.py:1");
	end_seen(&w);
	profile_free(s.p);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void test_top_view_key_edits_and_asks(void **state)
{
	static const struct {
		const char *name, *keys;
		enum top_action want;
		const char *input;
	} cases[] = {
		{ "quit", "q", TOP_DO_QUIT, "" },
		{ "reset", "r", TOP_DO_RESET, "" },
		{ "filter", "f--focus a\n", TOP_DO_FILTER, "--focus a" },
		{ "q in a prompt is a letter", "fq", TOP_DO_PAINT, "q" },
		{ "a letter less",
		  "fab\x7f\x7f"
		  "c\n",
		  TOP_DO_FILTER, "c" },
		{ "anew",
		  "fab\x15"
		  "c\n",
		  TOP_DO_FILTER, "c" },
		{ "save", "sx\n", TOP_DO_SAVE, "x" },
		{ "no name to save as", "s\n", TOP_DO_PAINT, "" },
		{ "given up", "sx\x1b", TOP_DO_PAINT, "x" },
		{ "pause", "p", TOP_DO_SUM, "" },
		{ "nothing to leave", "\x1b", TOP_DO_NOTHING, "" },
		{ "unknown", "Z", TOP_DO_NOTHING, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum top_action got = TOP_DO_NOTHING;
		struct seen w;

		begin_seen(&w);
		for (const char *key = cases[i].keys; *key; key++)
			got = top_view_key(&w.v, (unsigned char)*key, &w.sums,
					   top_model_profile(w.m));
		if (got != cases[i].want)
			fail_msg("%s: action %d, not %d", cases[i].name, got, cases[i].want);
		assert_string_equal(strbuf_str(&w.v.input), cases[i].input);
		end_seen(&w);
	}
}

static void test_top_view_cursor_stays_on_its_row(void **state)
{
	struct source s = new_source();
	uint32_t t = thread(s.p, 7, 7, "MainThread");
	struct seen w = { 0 };

	(void)state;
	top_view_init(&w.v);
	assert_int_equal(top_model_new(SECONDS(10), &w.m), 0);
	add(&s, t, "a:1", s.cpu, 1, 0, 3);
	add(&s, t, "b:1", s.cpu, 1, 0, 2);
	add(&s, t, "c:1", s.cpu, 1, 0, 1);
	end_slice(w.m, &s, 2);
	look(&w);
	press(&w, "j");
	add(&s, t, "c:1", s.cpu, 1, 0, 5);
	end_slice(w.m, &s, 3);
	look(&w);
	assert_int_equal(w.v.cursor, 2);
	press(&w, "g");
	add(&s, t, "b:1", s.cpu, 1, 0, 9);
	end_slice(w.m, &s, 4);
	look(&w);
	assert_int_equal(w.v.cursor, 0); /* the top is a place */
	end_seen(&w);
	profile_free(s.p);
}

/* On a CPU, waiting in its thread, or suspended, in a task of that name. */
static void add_in_task(struct source *s, uint32_t of, const char *frames, uint16_t kind,
			const char *name, double value)
{
	uint32_t labels;

	assert_int_equal(
		labeltab_add(s->p->labels, 0, text(s->p, PROFILE_TASK), text(s->p, name), &labels),
		0);
	add(s, of, frames, kind, 1, 0, value);
	s->p->samples.items[s->p->samples.len - 1].labels = labels;
}

static void assert_lines(const struct top_screen *s, size_t from, const char *const *want,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char got[128];
		size_t len;

		snprintf(got, sizeof(got), "%s", strbuf_str(&s->lines[from + i].line.text));
		for (len = strlen(got); len && got[len - 1] == ' ';)
			got[--len] = 0;
		assert_string_equal(got, want[i]);
		assert_true(s->lines[from + i].line.column <= s->t.width);
	}
}

static void test_top_view_enters_a_task(void **state)
{
	static const struct {
		const char *name, *keys;
		const char *const
			lines[4]; /* what is said to be shown, the table's head and its rows */
	} steps[] = {
		{ "the tasks",
		  "4",
		  { "  *CPU%  WAIT%", "   50.0  100.0    0.0 load",
		    "   25.0    0.0    0.0 save" } },
		{ "functions of one, task time is waiting there",
		  "\n",
		  { "only: task load", " *SELF% TOTAL%", "   50.0   50.0    0.0    0.0 read",
		    "    0.0    0.0  100.0    0.0 sleep" } },
		{ "the chain of awaits",
		  "j\n",
		  { "only: task load", "sleep  srv/app.py:1", " TOTAL%  WAIT% CALLED FROM",
		    "    0.0  100.0 load  srv/app.py:1" } },
		{ "back", "\x1b", { "only: task load", " *SELF% TOTAL%", "   50.0   50.0" } },
		{ "and back", "\x1b", { "  *CPU%  WAIT%", "   50.0  100.0    0.0 load" } },
		{ "another table is of all", "\n1", { "  *CPU%  WAIT%", "   75.0   50.0" } },
	};
	/* At 40 x 10, where there is no room for places. */
	static const char *const small[] = { "  *CPU%  WAIT% TASK", "   50.0  100.0 load" };
	static const char *const chain[] = { " TOTAL%  WAIT% CALLED FROM",
					     "    0.0  100.0 load",
					     " TOTAL%  WAIT% LINE",
					     "    0.0  100.0 sleep:9",
					     "HOTTEST STACK, 100.0% of its time",
					     "  main  srv/app.py:1" };
	struct source s = new_source();
	uint16_t task = add_kind(s.p, PROFILE_TASK);
	uint32_t t = thread(s.p, 7, 7, "MainThread");
	struct seen w = { 0 };

	(void)state;
	top_view_init(&w.v);
	w.v.has_tasks = true;
	assert_int_equal(top_model_new(SECONDS(10), &w.m), 0);
	add_in_task(&s, t, "main:1;load:2;read:3", s.cpu, "load", 1);
	add_in_task(&s, t, "main:1;load:4;sleep:9", task, "load", 2);
	add_in_task(&s, t, "main:1;save:5", s.cpu, "save", 0.5);
	add(&s, t, "main:1;idle:9", s.wait, 1, 1, 1);
	end_slice(w.m, &s, 2);
	look(&w);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		press(&w, steps[i].keys);
		paint(&w, 80, 16);
		for (size_t k = 0; k < 4 && steps[i].lines[k]; k++) {
			const char *got = strbuf_str(&w.screen.lines[3 + k].line.text);

			if (!strstr(got, steps[i].lines[k]))
				fail_msg("%s: \"%s\", not \"%s\"", steps[i].name, got,
					 steps[i].lines[k]);
		}
	}
	press(&w, "4");
	paint(&w, 40, 10);
	assert_lines(&w.screen, 2, small, 2);
	press(&w, "\nj\n");
	paint(&w, 40, 10);
	assert_lines(&w.screen, 3, chain, 6);
	end_seen(&w);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top_model_tells_self_total_wait_and_gil),
		cmocka_unit_test(test_top_model_window_slides),
		cmocka_unit_test(test_top_model_holds_what_is_shown),
		cmocka_unit_test(test_top_model_selects),
		cmocka_unit_test(test_top_model_gathers_threads_and_processes),
		cmocka_unit_test(test_top_model_looks_at_a_function),
		cmocka_unit_test(test_top_filter_read_says_what_is_wrong),
		cmocka_unit_test(test_top_screen_paint_is_to_the_letter),
		cmocka_unit_test(test_top_screen_paint_neutralises_names),
		cmocka_unit_test(test_top_screen_columns_never_touch),
		cmocka_unit_test(test_top_view_key_edits_and_asks),
		cmocka_unit_test(test_top_view_cursor_stays_on_its_row),
		cmocka_unit_test(test_top_view_enters_a_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
