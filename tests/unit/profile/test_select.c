/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/select.h"

static uint32_t intern(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

static uint32_t push(struct profile *p, uint32_t caller, const char *name, const char *file)
{
	struct frame f = { .name = intern(p, name), .file = intern(p, file) };
	uint32_t frame, stack;

	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, caller, frame, &stack), 0);
	return stack;
}

/* A thread of a process of the first recording. */
static uint32_t add_thread(struct profile *p, const char *process_name, uint32_t pid,
			   const char *name, uint32_t tid)
{
	struct process process = { .pid = pid, .ns_pid = 7, .name = intern(p, process_name) };
	struct thread thread = { .tid = tid, .name = intern(p, name) };
	uint32_t index;

	process.container = pid == 412 ? intern(p, "0123456789abcdef") : 0;
	process.pod_name = pid == 500 ? intern(p, "web-1") : 0;
	process.pod_namespace = pid == 500 ? intern(p, "shop") : 0;
	process.pod_uid = pid == 500 ? intern(p, "1f2e") : 0;
	assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
	assert_int_equal(profile_add_thread(p, &thread, &index), 0);
	return index;
}

static void put(struct profile *p, const struct sample *s)
{
	assert_int_equal(profile_add_sample(p, s), 0);
}

static uint64_t values_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.len; i++)
		sum += p->samples.items[i].value;
	return sum;
}

/* --- keys ------------------------------------------------------------------------------------- */

#define SHOP "/srv/shop/api/orders.py"
#define JSON "/usr/lib/python3.12/json/decoder.py"
#define DJANGO "/venv/lib/python3.12/site-packages/django/db/query.py"

/* Samples of 1, 2, 4, 8, 16: what is left says which. */
static struct profile *make_profile(void)
{
	struct profile *p;
	uint32_t threads[3], main_stack, handle, set;

	assert_int_equal(profile_new(&p), 0);
	threads[0] = add_thread(p, "web", 412, "MainThread", 412);
	threads[1] = add_thread(p, "web", 412, "pool-1", 413);
	threads[2] = add_thread(p, "worker", 500, "MainThread", 500);
	main_stack = push(p, 0, "<module>", "/srv/shop/main.py");
	handle = push(p, main_stack, "Orders.handle", SHOP);
	assert_int_equal(labeltab_add(p->labels, 0, intern(p, "route"), intern(p, "/pay"), &set),
			 0);
	assert_int_equal(labeltab_add(p->labels, set, intern(p, "user"), intern(p, "u1"), &set), 0);
	put(p, &(struct sample){ .value = 1, .stack = main_stack, .thread = threads[0] });
	put(p, &(struct sample){
		       .value = 2, .stack = handle, .thread = threads[1], .time_ns = 1000000000 });
	put(p, &(struct sample){ .value = 4,
				 .stack = push(p, handle, "JSONDecoder.decode", JSON),
				 .thread = threads[1],
				 .labels = set,
				 .time_ns = 1999999999 });
	put(p, &(struct sample){ .value = 8,
				 .stack = push(p, handle, "Query.run", DJANGO),
				 .thread = threads[2],
				 .time_ns = 2000000000 });
	put(p, &(struct sample){ .value = 16, .thread = threads[2], .time_ns = 3000000000 });
	return p;
}

static void test_what_is_left(void **state)
{
	static const struct {
		struct {
			enum select_key key;
			const char *pattern;
		} rows[4];
		const char *range;
		uint64_t left;
	} cases[] = {
		{ { { 0 } }, NULL, 31 },
		{ { { SELECT_FOCUS, "Orders.handle" } }, NULL, 14 },
		{ { { SELECT_FOCUS, "handle" } }, NULL, 14 },
		{ { { SELECT_FOCUS, "hand" } }, NULL, 0 },
		{ { { SELECT_FOCUS, "hand*" } }, NULL, 14 },
		{ { { SELECT_FOCUS, "*.*" } }, NULL, 14 },
		{ { { SELECT_FOCUS, "orders.py:handle" } }, NULL, 14 },
		{ { { SELECT_FOCUS, "api/*.py:Orders.*" } }, NULL, 14 },
		{ { { SELECT_FOCUS, "decoder.py:handle" } }, NULL, 0 },
		{ { { SELECT_FOCUS, "decode" }, { SELECT_FOCUS, "run" } }, NULL, 12 },
		{ { { SELECT_IGNORE, "decode" } }, NULL, 27 },
		{ { { SELECT_FOCUS, "handle" }, { SELECT_IGNORE, "run" } }, NULL, 6 },
		{ { { SELECT_MODULE, "json" } }, NULL, 4 },
		{ { { SELECT_MODULE, "json.decoder" } }, NULL, 4 },
		{ { { SELECT_MODULE, "decoder" } }, NULL, 0 }, /* no library's root is there */
		{ { { SELECT_MODULE, "django.*" } }, NULL, 8 },
		{ { { SELECT_MODULE, "orders" } }, NULL, 14 },
		{ { { SELECT_MODULE, "api.orders" } }, NULL, 14 },
		{ { { SELECT_MODULE, "api" } }, NULL, 14 },
		{ { { SELECT_MODULE, "main" } }, NULL, 15 },
		{ { { SELECT_FILE, "orders.py" } }, NULL, 14 },
		{ { { SELECT_FILE, "/usr/lib/*" } }, NULL, 4 },
		{ { { SELECT_FILE, "rders.py" } }, NULL, 0 },
		{ { { SELECT_MODULE, "json" }, { SELECT_FILE, "orders.py" } }, NULL, 4 },
		{ { { SELECT_THREAD, "pool-*" } }, NULL, 6 },
		{ { { SELECT_THREAD, "MainThread" } }, NULL, 25 },
		{ { { SELECT_THREAD, "413" }, { SELECT_THREAD, "500" } }, NULL, 30 },
		{ { { SELECT_PROCESS, "w*" } }, NULL, 31 },
		{ { { SELECT_PROCESS, "worker" } }, NULL, 24 },
		{ { { SELECT_PROCESS, "412" } }, NULL, 7 },
		{ { { SELECT_PROCESS, "7" } }, NULL, 31 }, /* in its namespace */
		{ { { SELECT_PROCESS, "412" }, { SELECT_THREAD, "MainThread" } }, NULL, 1 },
		{ { { SELECT_CONTAINER, "01234" } }, NULL, 7 },
		{ { { SELECT_CONTAINER, "shop/web-*" } }, NULL, 24 },
		{ { { SELECT_LABEL, "route=/p*" } }, NULL, 4 },
		{ { { SELECT_LABEL, "route=/q" } }, NULL, 0 },
		{ { { SELECT_LABEL, "user" } }, NULL, 4 },
		{ { { SELECT_LABEL, "!user" } }, NULL, 27 },
		{ { { SELECT_LABEL, "!user=u*" } }, NULL, 27 },
		{ { { SELECT_LABEL, "!user=u2" } }, NULL, 31 },
		{ { { SELECT_LABEL, "!user" }, { SELECT_LABEL, "route=/pay" } }, NULL, 31 },
		{ { { 0 } }, "1s..2s", 6 },
		{ { { 0 } }, "..1s", 1 },
		{ { { 0 } }, "2s..", 24 },
		{ { { SELECT_THREAD, "pool-1" } }, "1500ms..1m", 4 },
		{ { { SELECT_FOCUS, "[" } }, NULL, 0 }, /* no glob: itself */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *patterns[SELECT_KEYS][4];
		struct select s = { 0 };
		struct profile *p = make_profile();

		for (size_t k = 0; k < 4 && cases[i].rows[k].pattern; k++) {
			enum select_key key = cases[i].rows[k].key;
			struct select_patterns *to = &s.query.patterns[key];

			patterns[key][to->len++] = cases[i].rows[k].pattern;
			to->items = patterns[key];
		}
		if (cases[i].range)
			assert_int_equal(select_parse_range(&s.query, cases[i].range), 0);
		assert_int_equal(select_is_active(&s.query),
				 cases[i].range || cases[i].rows[0].pattern);
		assert_int_equal(select_samples(&s, p), 0);
		if (values_of(p) != cases[i].left)
			fail_msg("case %zu, %s: %d is left", i,
				 cases[i].rows[0].pattern ? cases[i].rows[0].pattern : "",
				 (int)values_of(p));
		assert_int_equal(s.sum.all, 31);
		assert_int_equal(s.sum.kept, cases[i].left);
		select_release(&s);
		profile_free(p);
	}
}

/* Samples with one of some labels, and the others, whatever else is selected. */
static void test_parts_by_labels(void **state)
{
	static const struct {
		const char *part, *other; /* alternatives */
		bool is_rest;
		const char *label;
		uint64_t left;
	} cases[] = {
		{ "route=/pay", NULL, false, NULL, 4 },
		{ "route=/pay", NULL, true, NULL, 27 },
		{ "route=/q", "user", false, NULL, 4 },
		{ "route=/q", "user", true, NULL, 27 },
		{ "route=/q", NULL, true, NULL, 31 },
		{ "route=/pay", NULL, false, "user=u1", 4 },
		{ "route=/pay", NULL, false, "user=u2", 0 },
		{ "route=/pay", NULL, true, "user=u1", 0 },
		{ "!route", NULL, false, NULL, 27 },
		{ "!route", NULL, true, NULL, 4 },
		{ "route=/pay", NULL, true, "!user", 27 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *part[] = { cases[i].part, cases[i].other };
		struct select s = { .query.part = { .labels = { part, 1 + !!cases[i].other },
						    .is_rest = cases[i].is_rest } };
		struct profile *p = make_profile();

		if (cases[i].label)
			s.query.patterns[SELECT_LABEL] =
				(struct select_patterns){ &cases[i].label, 1 };
		assert_true(select_is_active(&s.query));
		assert_int_equal(select_samples(&s, p), 0);
		if (values_of(p) != cases[i].left)
			fail_msg("case %zu: %d is left", i, (int)values_of(p));
		select_release(&s);
		profile_free(p);
	}
}

/* What comes later is judged as what came first. */
static void test_chunk_by_chunk(void **state)
{
	static const char *const focus[] = { "wanted" };
	struct select s = { .query.patterns[SELECT_FOCUS] = { focus, 1 } };
	uint64_t left = 0;
	struct profile *p;
	uint32_t thread;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	thread = add_thread(p, "a", 1, "t", 1);
	for (uint32_t i = 0; i < 50; i++) {
		char file[16];
		uint32_t stack;

		snprintf(file, sizeof(file), "/%u.py", i);
		stack = push(p, 0, i % 2 ? "wanted" : "other", file);
		put(p, &(struct sample){ .value = 1, .stack = stack, .thread = thread });
		put(p, &(struct sample){ .value = 1,
					 .stack = push(p, stack, "leaf", "/l.py"),
					 .thread = thread });
		assert_int_equal(select_samples(&s, p), 0);
		left += values_of(p);
		profile_clear_samples(p);
	}
	assert_int_equal(left, 50);
	assert_int_equal(s.sum.all, 100);
	select_release(&s);
	profile_free(p);
}

/* Frames that are hidden give what they did to who called them; nothing is lost of the rest. */
static void test_hidden_frames(void **state)
{
	static const char *const hidden[] = { "b" };
	struct select s = { .query.patterns[SELECT_HIDE] = { hidden, 1 } };
	struct profile *p;
	uint32_t thread, a, b, c, d;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	thread = add_thread(p, "a", 1, "t", 1);
	a = push(p, 0, "a", "/x.py");
	b = push(p, a, "b", "/x.py");
	c = push(p, b, "c", "/x.py");
	d = push(p, 0, "b", "/x.py");
	for (uint32_t i = 0; i < 4; i++)
		put(p, &(struct sample){ .value = 1,
					 .stack = (uint32_t[]){ a, b, c, d }[i],
					 .thread = thread });
	assert_int_equal(select_samples(&s, p), 0);
	assert_int_equal(p->samples.len, 4);
	assert_int_equal(p->samples.items[0].stack, a);
	assert_int_equal(p->samples.items[1].stack, a);
	assert_int_equal(p->samples.items[2].stack, push(p, a, "c", "/x.py"));
	assert_int_equal(p->samples.items[3].stack, 0);
	select_release(&s);
	profile_free(p);
}

/* "a>b>c" of what a stack of these frames becomes; "-": it is left out. */
static void becomes(const struct select_query *q, const char *stack, const char *want)
{
	static const char *const files[] = { ['a'] = "/srv/a.py",
					     ['b'] = "/srv/b.py",
					     ['j'] = "/usr/lib/python3.12/json/__init__.py",
					     ['k'] = "/usr/lib/python3.12/json/decoder.py",
					     ['n'] = "" };
	struct select s = { .query = *q };
	struct sample sample = { .value = 1 };
	char found[256] = "";
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	sample.thread = add_thread(p, "a", 1, "t", 1);
	for (; *stack; stack += 2) { /* a file and a digit: "a1" is a function of a.py */
		struct frame f = { .line = 7, .first_line = 1 };
		char name[3] = { stack[0], stack[1], '\0' };
		uint32_t frame;

		f.name = intern(p, name);
		f.file = intern(p, files[(unsigned char)*stack]);
		f.kind = *stack == 'n' ? FRAME_NATIVE : FRAME_PYTHON;
		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, sample.stack, frame, &sample.stack), 0);
	}
	put(p, &sample);
	assert_int_equal(select_samples(&s, p), 0);
	for (uint32_t at = p->samples.len ? p->samples.items[0].stack : 0; at;) {
		const struct stack_entry *e = &stacktab_entries(p->stacks)[at];
		const struct frame *f = frametab_get(p->frames, e->frame);
		char text[256];

		snprintf(text, sizeof(text), "%s%s%s%s", strtab_get(p->strings, f->name),
			 f->line ? ":7" : "", *found ? ">" : "", found);
		snprintf(found, sizeof(found), "%s", text);
		at = e->parent;
	}
	if (strcmp(p->samples.len ? found : "-", want))
		fail_msg("%s instead of %s", p->samples.len ? found : "-", want);
	select_release(&s);
	profile_free(p);
}

static void test_what_becomes_of_stacks(void **state)
{
	static const char *const a2[] = { "a2" }, *const b[] = { "b?" };
	const struct select_query by_function = { .merge = SELECT_BY_FUNCTION };
	const struct select_query by_file = { .merge = SELECT_BY_FILE };
	const struct select_query by_module = { .merge = SELECT_BY_MODULE };
	const struct select_query collapsed = { .collapses_stdlib = true };
	const struct select_query grouped = { .patterns[SELECT_GROUP] = { a2, 1 } };
	const struct select_query all = { .patterns[SELECT_GROUP] = { a2, 1 },
					  .patterns[SELECT_HIDE] = { b, 1 },
					  .merge = SELECT_BY_MODULE,
					  .collapses_stdlib = true };

	(void)state;
	becomes(&by_function, "a1a1b1", "a1>a1>b1");
	becomes(&by_file, "a1a2b1a1n1", "a.py>b.py>a.py>n1");
	becomes(&by_file, "j1j2k1", "json/__init__.py>json/decoder.py");
	becomes(&by_module, "a1a2j1j2k1k2b1", "a>json>json.decoder>b");
	becomes(&collapsed, "a1j1k1k2b1j2", "a1:7>j1:7>b1:7>j2:7");
	becomes(&collapsed, "j1j2", "j1:7");
	becomes(&grouped, "a1a2b1a2", "a2:7>b1:7>a2:7");
	becomes(&grouped, "a1b1", "-");
	becomes(&grouped, "", "-");
	becomes(&all, "a1a2b1a1j1k1b2k2", "a>json");
}

/* --- kinds ------------------------------------------------------------------------------------ */

static void test_one_kind_at_a_time(void **state)
{
	static const struct {
		const char *kind;
		uint64_t left, others;
		const char *mode;
		uint64_t interval_ns;
	} cases[] = {
		{ NULL, 1, 2, "cpu", 1000 },       { "cpu", 1, 2, "cpu", 1000 },
		{ "off-cpu", 2, 2, "off-cpu", 1 }, { "memory", 4, 2, "memory", 0 },
		{ "nosuch", 0, 3, "all", 1000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct select s = { .query.kind = cases[i].kind };
		struct sample_kind off_cpu = { .unit = UNIT_NS, .period = 1 };
		struct sample_kind memory = { .unit = UNIT_BYTES, .period = 1 };
		struct recording *r;
		struct profile *p;
		uint32_t thread;
		uint16_t kinds[2];

		assert_int_equal(profile_new(&p), 0);
		thread = add_thread(p, "a", 1, "t", 1);
		off_cpu.name = intern(p, "off-cpu");
		memory.name = intern(p, "memory");
		assert_int_equal(profile_add_kind(p, &off_cpu, &kinds[0]), 0);
		assert_int_equal(profile_add_kind(p, &memory, &kinds[1]), 0);
		r = profile_recording(p);
		r->interval_ns = 1000;
		assert_int_equal(recording_set_text(&r->mode, "all"), 0);
		put(p, &(struct sample){ .value = 1, .thread = thread });
		put(p, &(struct sample){ .value = 2, .thread = thread, .kind = kinds[0] });
		put(p, &(struct sample){ .value = 4, .thread = thread, .kind = kinds[1] });
		assert_int_equal(select_samples(&s, p), 0);
		assert_int_equal(values_of(p), cases[i].left);
		assert_int_equal(s.others, cases[i].others);
		assert_true(!p->samples.len || p->samples.items[0].kind == KIND_TICKS);
		assert_int_equal(select_describe(&s, p, r), 0);
		assert_string_equal(r->mode, cases[i].mode);
		assert_int_equal(r->interval_ns, cases[i].interval_ns);
		select_release(&s);
		profile_free(p);
	}
}

/* Kinds by their letters: t ticks, c cpu, o off-cpu, m memory; samples of 1, 2, 4, 8. */
static void test_what_is_looked_at(void **state)
{
	static const struct {
		const char *kinds, *samples, *mode, *asked, *name;
		uint64_t sum;
	} cases[] = {
		{ "", "t", "cpu", NULL, "cpu", 1 },
		{ "o", "t", "cpu,off-cpu", NULL, "cpu", 1 },
		{ "co", "co", "wall", NULL, "wall", 6 },
		{ "co", "o", "wall", NULL, "wall", 4 },
		{ "c", "c", "wall", NULL, "wall", 2 },
		{ "com", "m", "wall,memory", NULL, "wall", 0 },
		{ "m", "m", "cpu,memory", NULL, "cpu", 0 },
		{ "m", "m", "memory", NULL, "memory", 8 },
		{ "m", "m", "gil", NULL, "cpu", 0 },
		{ "o", "o", "off-cpu", NULL, "off-cpu", 4 },
		{ "c", "c", "off-cpu", NULL, "off-cpu", 0 },
		{ "co", "co", "off-cpu", NULL, "off-cpu", 4 },
		{ "m", "m", NULL, NULL, "memory", 8 },
		{ "com", "com", "wall,memory", "cpu", "cpu", 2 },
		{ "com", "com", "wall,memory", "memory", "memory", 8 },
		{ "o", "to", "cpu,off-cpu", "wall", "wall", 1004 },
		{ "co", "tco", "wall", "cpu", "cpu", 1002 },
	};
	static const struct {
		char letter;
		const char *name;
		uint64_t value;
	} letters[] = {
		{ 't', "", 1 }, { 'c', "cpu", 2 }, { 'o', "off-cpu", 4 }, { 'm', "memory", 8 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct select s = { .query.kind = cases[i].asked };
		uint16_t kinds[4] = { KIND_TICKS };
		struct profile *p;
		uint32_t thread;

		assert_int_equal(profile_new(&p), 0);
		thread = add_thread(p, "a", 1, "t", 1);
		profile_recording(p)->interval_ns = 1000;
		assert_int_equal(recording_set_text(&profile_recording(p)->mode, cases[i].mode), 0);
		for (size_t k = 0; k < 4; k++) {
			struct sample_kind kind = { .period = 1,
						    .unit = k == 3 ? UNIT_BYTES : UNIT_NS };

			kind.name = intern(p, letters[k].name);
			if (strchr(cases[i].kinds, letters[k].letter))
				assert_int_equal(profile_add_kind(p, &kind, &kinds[k]), 0);
			if (strchr(cases[i].samples, letters[k].letter))
				put(p, &(struct sample){ .value = letters[k].value,
							 .thread = thread,
							 .kind = kinds[k] });
		}
		assert_int_equal(select_samples(&s, p), 0);
		if (p->kinds.len && strcmp(s.kinds.name, cases[i].name) != 0)
			fail_msg("row %zu: %s", i, s.kinds.name);
		if (values_of(p) != cases[i].sum || s.sum.kept != cases[i].sum)
			fail_msg("row %zu: %ju", i, (uintmax_t)values_of(p));
		select_release(&s);
		profile_free(p);
	}
}

/* A recording of ticks, and then one that scaled them. */
static void test_ticks_are_not_added_to_ns(void **state)
{
	static const struct {
		const char *asked;
		bool keeps_kinds;
		int want;
	} cases[] = { { NULL, false, -EINVAL },
		      { "cpu", false, -EINVAL },
		      { "wall", false, 0 },
		      { NULL, true, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct select s = { .query.kind = cases[i].asked,
				    .keeps_kinds = cases[i].keeps_kinds };
		struct sample_kind cpu = { .unit = UNIT_NS, .period = 1 };
		struct profile *p;
		uint32_t thread;
		uint16_t kind;

		assert_int_equal(profile_new(&p), 0);
		profile_recording(p)->interval_ns = 1000;
		thread = add_thread(p, "a", 1, "t", 1);
		put(p, &(struct sample){ .value = 1, .thread = thread });
		assert_int_equal(select_samples(&s, p), 0);
		profile_clear_samples(p);
		cpu.name = intern(p, "cpu");
		assert_int_equal(profile_add_kind(p, &cpu, &kind), 0);
		put(p, &(struct sample){ .value = 500, .thread = thread, .kind = kind });
		assert_int_equal(select_samples(&s, p), cases[i].want);
		if (!cases[i].want && !cases[i].keeps_kinds)
			assert_int_equal(s.sum.all, 1500);
		select_release(&s);
		profile_free(p);
	}
	err_clear();
}

/* Each of its own, what is selected of all; sums are of ticks. */
static void test_all_kinds_at_once(void **state)
{
	struct select s = { .keeps_kinds = true,
			    .query = { .has_range = true, .from_ns = 5, .to_ns = 10 } };
	struct sample_kind kind = { .unit = UNIT_NS, .period = 1 };
	struct profile *p;
	uint32_t thread;
	uint16_t off_cpu;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	thread = add_thread(p, "a", 1, "t", 1);
	kind.name = intern(p, "off-cpu");
	assert_int_equal(profile_add_kind(p, &kind, &off_cpu), 0);
	put(p, &(struct sample){ .value = 1, .thread = thread });
	put(p, &(struct sample){ .value = 2, .thread = thread, .time_ns = 5 });
	put(p, &(struct sample){ .value = 4, .thread = thread, .time_ns = 9, .kind = off_cpu });
	put(p, &(struct sample){ .value = 8, .thread = thread, .time_ns = 10, .kind = off_cpu });
	assert_int_equal(select_samples(&s, p), 0);
	assert_int_equal(p->samples.len, 2);
	assert_int_equal(p->samples.items[0].kind, KIND_TICKS);
	assert_int_equal(p->samples.items[1].kind, off_cpu);
	assert_int_equal(p->samples.items[1].time_ns, 4);
	assert_int_equal(s.sum.all, 3);
	assert_int_equal(s.sum.kept, 2);
	assert_int_equal(s.others, 0);
	select_release(&s);
	profile_free(p);
}

/* --- ranges ----------------------------------------------------------------------------------- */

static void test_ranges_that_are_none(void **state)
{
	static const char *const wrong[] = {
		"", "5s", "5s-6s", "2s..1s", "1s..1s", "a..b", "1s..2x"
	};
	struct select_query q = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (select_parse_range(&q, wrong[i]) != -EINVAL)
			fail_msg("%s is taken", wrong[i]);
	assert_false(select_is_active(&q));
	err_clear();
}

/* Of 10 .. 19. */
static void test_of_a_span_what_lies_in_the_range(void **state)
{
	static const struct {
		const char *name;
		struct sample span, left; /* left.value 0: nothing */
	} cases[] = {
		{ "within",
		  { .time_ns = 12, .duration_ns = 5, .value = 5 },
		  { .time_ns = 2, .duration_ns = 5, .value = 5 } },
		{ "all of it and more",
		  { .time_ns = 0, .duration_ns = 40, .value = 400 },
		  { .time_ns = 0, .duration_ns = 10, .value = 100 } },
		{ "its end",
		  { .time_ns = 5, .duration_ns = 8, .value = 8 },
		  { .time_ns = 0, .duration_ns = 3, .value = 3 } },
		{ "its begin",
		  { .time_ns = 18, .duration_ns = 8, .value = 9 },
		  { .time_ns = 8, .duration_ns = 2, .value = 2 } },
		{ "up to the range", { .time_ns = 5, .duration_ns = 5, .value = 5 }, { 0 } },
		{ "behind the range", { .time_ns = 20, .duration_ns = 5, .value = 5 }, { 0 } },
		{ "less than a unit of it",
		  { .time_ns = 0, .duration_ns = 40, .value = 1 },
		  { 0 } },
		{ "a moment before", { .time_ns = 9, .value = 5 }, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct select s = { .query = { .has_range = true, .from_ns = 10, .to_ns = 20 } };
		struct profile *p = make_profile();
		const struct sample *left;

		profile_clear_samples(p);
		put(p, &cases[i].span);
		left = p->samples.items;
		assert_int_equal(select_samples(&s, p), 0);
		if (p->samples.len != (cases[i].left.value > 0) ||
		    (p->samples.len && (left->time_ns != cases[i].left.time_ns ||
					left->duration_ns != cases[i].left.duration_ns ||
					left->value != cases[i].left.value)))
			fail_msg("%s: %zu left", cases[i].name, p->samples.len);
		assert_int_equal(s.sum.all, cases[i].span.value);
		assert_int_equal(s.sum.kept, cases[i].left.value);
		select_release(&s);
		profile_free(p);
	}
}

static void test_a_range_is_a_recording_of_its_own(void **state)
{
	struct recording r = { .duration_ns = 10000000000,
			       .start_realtime_ns = 5000000000,
			       .is_whole = 1 };
	struct select s = { 0 };
	struct profile *p = make_profile();

	(void)state;
	assert_int_equal(select_parse_range(&s.query, "1s..3s"), 0);
	assert_int_equal(select_samples(&s, p), 0);
	assert_int_equal(p->samples.len, 3);
	assert_int_equal(p->samples.items[0].time_ns, 0);
	assert_int_equal(p->samples.items[2].time_ns, 1000000000);
	assert_int_equal(select_describe(&s, p, &r), 0);
	assert_true(r.duration_ns == 2000000000 && r.start_realtime_ns == 6000000000);
	assert_false(r.is_whole);
	r.duration_ns = 500000000; /* it ended before */
	assert_int_equal(select_describe(&s, p, &r), 0);
	assert_int_equal(r.duration_ns, 0);
	select_release(&s);
	profile_free(p);
}

static void test_a_range_of_sums_is_refused(void **state)
{
	struct select s = { 0 };
	struct profile *p = make_profile();

	(void)state;
	profile_recording(p)->is_summed = 1;
	assert_int_equal(select_parse_range(&s.query, "1s..3s"), 0);
	assert_int_equal(select_samples(&s, p), -EINVAL);
	err_clear();
	select_release(&s);
	profile_free(p);
}

static void test_losses_are_shared_out(void **state)
{
	(void)state;
	assert_int_equal(select_scale(&(struct select_sum){ .all = 100, .kept = 25 }, 40), 10);
	assert_int_equal(select_scale(&(struct select_sum){ .all = 0 }, 40), 40);
	assert_true(select_scale(&(struct select_sum){ .all = UINT64_MAX, .kept = UINT64_MAX },
				 UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_parts_by_labels),
		cmocka_unit_test(test_chunk_by_chunk),
		cmocka_unit_test(test_hidden_frames),
		cmocka_unit_test(test_what_becomes_of_stacks),
		cmocka_unit_test(test_one_kind_at_a_time),
		cmocka_unit_test(test_what_is_looked_at),
		cmocka_unit_test(test_ticks_are_not_added_to_ns),
		cmocka_unit_test(test_all_kinds_at_once),
		cmocka_unit_test(test_ranges_that_are_none),
		cmocka_unit_test(test_of_a_span_what_lies_in_the_range),
		cmocka_unit_test(test_a_range_is_a_recording_of_its_own),
		cmocka_unit_test(test_a_range_of_sums_is_refused),
		cmocka_unit_test(test_losses_are_shared_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
