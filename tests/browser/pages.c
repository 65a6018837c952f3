/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * pages KIND FILE [NODES]: writes a page whose contents are known, by the code that writes those of
 * users. The same arguments make the same page.
 *
 * empty    no samples
 * one      one sample
 * deep     a stack of 3,000 frames
 * hostile  names, paths, processes and threads that try to be markup, scripts, links, line ends
 * tree     NODES call paths (10,000) of three processes with four threads each, over a minute
 * waits    the same in wall time, a third of the paths waiting for as long as a second
 * diff     the same twice, with changes: functions slower, faster, new, removed, renamed. Also
 *          FILE.measures: a line a node, "ratio low high q class self_class"
 * shares   the same, compared by share
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "diff/diff.h"
#include "export/export.h"
#include "export/page/flamegraph.h"
#include "profile/kinds.h"

#define FUNCTIONS 400
#define SECONDS 60
#define THREADS 12
#define TICK_NS UINT64_C(1000000)

struct maker {
	struct profile *p;
	struct cube cube;
	uint64_t random;
	VEC(uint32_t) stacks;
	VEC(uint32_t) depth; /* of each stack */
};

/* xorshift64*: any fixed sequence will do. */
static uint32_t below(struct maker *m, uint32_t limit)
{
	m->random ^= m->random >> 12;
	m->random ^= m->random << 25;
	m->random ^= m->random >> 27;
	return (uint32_t)((m->random * UINT64_C(2685821657736338717) >> 32) * limit >> 32);
}

static uint32_t intern(struct maker *m, const char *text, size_t len)
{
	uint32_t id = 0;

	if (strtab_intern(m->p->strings, text, len, &id) < 0)
		abort();
	return id;
}

static uint32_t intern_text(struct maker *m, const char *text)
{
	return intern(m, text, strlen(text));
}

static uint32_t extend(struct maker *m, uint32_t stack, uint32_t name, uint32_t file, uint32_t line)
{
	struct frame f = { .name = name, .file = file, .line = line, .first_line = line / 10 * 10 };
	uint32_t frame, id;

	if (frametab_intern(m->p->frames, &f, &frame) < 0 ||
	    stacktab_intern(m->p->stacks, stack, frame, &id) < 0)
		abort();
	return id;
}

/* In a pod, in a container, and in none. */
static const struct process_place {
	const char *container, *pod_uid, *pod_name, *pod_namespace;
} in_pod = { "0123456789abcdef", "1f2e3d4c-5b6a-7988", "web-7d9f", "prod" },
  in_container = { "fedcba9876543210", "", "", "" }, in_none = { "", "", "", "" };

static void add_thread(struct maker *m, uint32_t pid, const char *process_name, uint32_t tid,
		       const char *name, const struct process_place *place)
{
	struct process process = { .pid = pid,
				   .name = intern_text(m, process_name),
				   .python_version = intern_text(m, "3.14.1"),
				   .command_line = intern_text(m, process_name),
				   .container = intern_text(m, place->container),
				   .pod_uid = intern_text(m, place->pod_uid),
				   .pod_name = intern_text(m, place->pod_name),
				   .pod_namespace = intern_text(m, place->pod_namespace) };
	struct thread thread = { .tid = tid, .name = intern_text(m, name) };
	uint32_t index;

	if (profile_add_process(m->p, &process, &thread.process) < 0 ||
	    profile_add_thread(m->p, &thread, &index) < 0)
		abort();
}

static void add_sample(struct maker *m, uint32_t stack, uint32_t thread, uint64_t time_ns,
		       uint32_t ticks)
{
	struct sample s = { .stack = stack, .thread = thread, .time_ns = time_ns, .value = ticks };

	if (profile_add_sample(m->p, &s) < 0)
		abort();
}

/* --- one page each ---------------------------------------------------------------------------- */

static void make_one(struct maker *m)
{
	add_thread(m, 412, "app", 412, "MainThread", &in_none);
	add_sample(m, extend(m, 0, intern_text(m, "main"), intern_text(m, "/srv/app.py"), 12), 0, 5,
		   1);
}

static void make_deep(struct maker *m)
{
	uint32_t name = intern_text(m, "recurse"), file = intern_text(m, "/srv/deep.py"), at = 0;

	add_thread(m, 412, "deep", 412, "MainThread", &in_none);
	for (uint32_t i = 0; i < 3000; i++) {
		at = extend(m, at, name, file, 10 + i % 3);
		if (i % 500 == 0)
			add_sample(m, at, 0, i * TICK_NS, 1);
	}
	add_sample(m, at, 0, 3000 * TICK_NS, 100);
}

static void make_hostile(struct maker *m)
{
#define TEXT(s)                  \
	{                        \
		s, sizeof(s) - 1 \
	}
	static const struct {
		const char *text;
		size_t len;
	} names[] = {
		TEXT("</script><script>globalThis.pwned=1</script>"),
		TEXT("<img src=x onerror=globalThis.pwned=2>"),
		TEXT("<!--<script>"),
		TEXT("\"'`;globalThis.pwned=3//"),
		TEXT("javascript:globalThis.pwned=4"),
		TEXT("line\xe2\x80\xa8separator\xe2\x80\xa9here"),
		TEXT("bidi\xe2\x80\xae"
		     "desrever\xe2\x81\xa6isolate"),
		TEXT("lone\xed\xa0\x80surrogate"),
		TEXT("not utf-8 \xff\xfe"),
		TEXT("nul\0inside"),
		TEXT("control\x1b[31m\r\n\t\x07"),
		TEXT("__proto__"),
		TEXT("constructor"),
		TEXT("{{7*7}}${7*7}"),
		TEXT("emoji \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb zalgo e\xcc\x81\xcc\x81"),
		TEXT(""),
	};
	static char long_name[10001];
	uint32_t at = 0;

	memset(long_name, 'x', sizeof(long_name) - 1);
	add_thread(m, 1, "</title><script>globalThis.pwned=5</script>", 1, "<b>thread</b>",
		   &(struct process_place){ "", "", "<img src=x onerror=pwned=6>", "</script>" });
	add_thread(m, 2, "constructor", 2, "__proto__", &in_none);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint32_t name = intern(m, names[i].text, names[i].len);

		add_sample(m, extend(m, 0, name, name, 3), i % 2, i * TICK_NS, 5);
		at = extend(m, at, name, intern_text(m, "/srv/<script>.py"), 20);
		add_sample(m, at, i % 2, i * TICK_NS, 2);
	}
	at = extend(m, at, intern_text(m, long_name), intern_text(m, long_name), 1);
	add_sample(m, at, 0, TICK_NS, 3);
}

static void make_threads(struct maker *m)
{
	static const char *const processes[] = { "web", "worker", "cron" };
	const struct process_place *const places[] = { &in_pod, &in_container, &in_none };
	char name[16];

	for (uint32_t i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "%s-%u", i % 4 ? "pool" : "MainThread", i % 4);
		add_thread(m, 100 + i / 4, processes[i / 4], 1000 + i, name, places[i / 4]);
	}
}

/* Each new path is below one drawn at random: bushy, some 20 deep. */
static void make_paths(struct maker *m, uint32_t nodes)
{
	char name[64], file[64];

	if (vec_push(&m->stacks, 0) < 0 || vec_push(&m->depth, 0) < 0)
		abort();
	while (stacktab_count(m->p->stacks) <= nodes) {
		uint32_t at = below(m, (uint32_t)m->stacks.len), f = below(m, FUNCTIONS), stack;
		uint32_t made = stacktab_count(m->p->stacks);

		if (m->depth.items[at] > 60)
			continue;
		snprintf(name, sizeof(name), "Class%u.method_%u", f / 10, f);
		snprintf(file, sizeof(file), "/srv/app/package%u/module%u.py", f / 40, f / 10);
		stack = extend(m, m->stacks.items[at], intern_text(m, name), intern_text(m, file),
			       f % 10 * 40 + 3);
		if (stack == made && (vec_push(&m->stacks, stack) < 0 ||
				      vec_push(&m->depth, m->depth.items[at] + 1) < 0))
			abort();
	}
}

/* Every path has a sample; a few have many. Bursts: a path's samples are near each other. */
static void make_tree(struct maker *m, uint32_t nodes)
{
	make_threads(m);
	make_paths(m, nodes);
	for (size_t i = 1; i < m->stacks.len; i++) {
		uint64_t start = below(m, SECONDS * 1000);
		uint32_t bursts = i % 97 == 0 ? 12 : 1;

		for (uint32_t k = 0; k < bursts; k++)
			add_sample(m, m->stacks.items[i], below(m, THREADS),
				   (start + k * 5000) % (SECONDS * 1000) * TICK_NS,
				   1 + below(m, 4));
	}
}

/* --- two sides -------------------------------------------------------------------------------- */

/* Samples of one side; changes are by function name, so that whoever looks can tell. */
static void make_side(struct maker *m, bool is_current)
{
	static const struct {
		const char *name;
		uint32_t base, current; /* ticks a second */
	} leaves[] = {
		{ "steady", 200, 200 },
		{ "slower_by_30_percent", 100, 130 },
		{ "twice_as_slow", 40, 80 },
		{ "twice_as_fast", 80, 40 },
		{ "new_function", 0, 60 },
		{ "removed_function", 50, 0 },
		{ "rare", 0, 0 },
		{ "renamed_function", 30, 30 },
	};
	uint32_t app = intern_text(m, "/srv/app.py");
	uint32_t root = extend(m, 0, intern_text(m, "<module>"), app, 1);
	uint32_t main = extend(m, root, intern_text(m, "main"), app, 12);

	for (uint32_t s = 0; s < SECONDS; s++)
		for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
			uint32_t ticks = is_current ? leaves[i].current : leaves[i].base;
			const char *name = leaves[i].name;
			uint32_t line = 100 + (uint32_t)i * 10, stack;

			if (!strcmp(name, "renamed_function") && !is_current)
				name = "old_name";
			if (!strcmp(name, "rare"))
				ticks = is_current && s == 7;
			if (!ticks)
				continue;
			/* jitter of a tenth, so that blocks differ */
			ticks = ticks * (90 + below(m, 21)) / 100 + !ticks;
			ticks += !ticks;
			stack = extend(m, main, intern_text(m, name), app, line + s % 3);
			add_sample(m, stack, (uint32_t)i % THREADS, s * 1000 * TICK_NS,
				   ticks - ticks / 4);
			stack = extend(m, stack, intern_text(m, "helper"), app, 300);
			if (ticks / 4)
				add_sample(m, stack, (uint32_t)i % THREADS, s * 1000 * TICK_NS + 5,
					   ticks / 4);
		}
}

static int take_side(struct diff_input *in, enum diff_side side)
{
	const struct recording facts = {
		.mode = (char[]){ "cpu" },
		.event = (char[]){ "task-clock" },
		.host = (char[]){ "web1" },
		.command = (char[]){ "python3 /srv/app.py" },
		.interval_ns = TICK_NS,
		.duration_ns = SECONDS * 1000 * TICK_NS,
		.is_whole = 1,
	};
	const char *file = side == DIFF_BASE ? "before.pyebpf" : "after.pyebpf";
	uint32_t run, recording;
	int r = profile_begin_recording(in->profile, &recording);

	if (!r)
		r = recording_copy(&in->profile->recordings.items[recording], &facts);
	if (!r)
		r = diff_input_add_run(in, side, file, recording, facts.duration_ns - 1, &run);

	if (r < 0)
		return r;
	return diff_input_take_samples(in, true);
}

static int write_measures(const struct diff *d, const char *path)
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s.measures", path);
	f = fopen(name, "w");
	if (!f)
		return -1;
	for (size_t i = 0; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];

		fprintf(f, "%.9g %.9g %.9g %.9g %u %u\n", (double)n->measure.ratio,
			(double)n->measure.low, (double)n->measure.high, (double)n->measure.q,
			n->class, n->self_class);
	}
	return fclose(f);
}

static int write_diff(const struct diff *d, const char *path, FILE *out)
{
	_cleanup_(sources_release) struct sources sources = { 0 };
	_cleanup_(page_release) struct page page = { 0 };
	int r = page_of_diff(&page, d);

	if (!r)
		r = flamegraph_write(&page, &sources, out);
	return r ? r : write_measures(d, path);
}

static int make_diff(struct maker *m, enum diff_normalize normalize, uint32_t nodes,
		     const char *path, FILE *out)
{
	_cleanup_(diff_input_freep) struct diff_input *in = NULL;
	_cleanup_(diff_freep) struct diff *d = NULL;
	struct diff_renames renames = { 0 };
	const struct diff_options o = { .normalize = normalize, .renames = &renames };
	int r = diff_input_new(true, &in);

	if (r < 0)
		return r;
	profile_free(m->p);
	m->p = in->profile;
	make_threads(m);
	for (int side = 0; side < DIFF_SIDES && !r; side++) {
		make_side(m, side == DIFF_CURRENT);
		if (nodes)
			make_tree(m, nodes);
		r = take_side(in, side);
	}
	m->p = NULL;
	if (!r)
		r = diff_renames_add(&renames, "old_name=renamed_function");
	if (!r)
		r = diff_input_finish(in);
	if (!r)
		r = diff_new(in, &o, &d);
	if (!r)
		r = write_diff(d, path, out);
	diff_renames_release(&renames);
	return r;
}

static uint16_t add_kind(struct maker *m, const char *name)
{
	struct sample_kind kind = { .name = intern_text(m, name), .period = 1 };
	uint16_t id;

	if (profile_add_kind(m->p, &kind, &id) < 0)
		abort();
	return id;
}

/* What a tree has as ticks becomes ns, and each third path one of waiting. */
static void make_waits(struct maker *m, uint32_t nodes)
{
	uint16_t cpu = add_kind(m, KINDS_CPU), off_cpu = add_kind(m, KINDS_OFF_CPU);
	uint32_t lock = intern_text(m, "<lock>");

	make_tree(m, nodes);
	for (size_t i = 0; i < m->p->samples.len; i++) {
		struct sample *s = &m->p->samples.items[i];
		struct frame f = { .name = lock, .kind = FRAME_MARKER };
		uint32_t frame;

		s->kind = s->stack % 3 ? cpu : off_cpu;
		s->value *= TICK_NS;
		if (s->kind == cpu)
			continue;
		s->value *= 1 + s->stack % 1000;
		s->duration_ns = s->value;
		if (frametab_intern(m->p->frames, &f, &frame) < 0 ||
		    stacktab_intern(m->p->stacks, s->stack, frame, &s->stack) < 0)
			abort();
	}
}

static void kinds_releasep(struct kinds *k)
{
	kinds_release(k);
}

static int make_plain(struct maker *m, FILE *out)
{
	const struct export_opts o = { 0 };
	const struct recording facts = { .interval_ns = TICK_NS,
					 .rate_hz = 1000,
					 .duration_ns = SECONDS * 1000 * TICK_NS,
					 .start_realtime_ns = UINT64_C(1767348671000000000),
					 .host = (char *)"<b>web1</b>",
					 .mode = (char *)"cpu",
					 .target = (char *)"</script><b>target" };
	_cleanup_(kinds_releasep) struct kinds kinds = { 0 };
	struct exporting x = { .p = m->p, .cube = &m->cube, .o = &o, .out = out, .kinds = &kinds };
	int r = recording_copy(profile_recording(m->p), &facts);

	if (!r)
		r = cube_begin_run(&m->cube, CUBE_CURRENT, "<i>page</i>.pyebpf", 0, 0);
	if (!r)
		r = cube_add(&m->cube, m->p);
	if (r < 0)
		return r;
	cube_run(&m->cube)->lost = 3;
	r = cube_finish(&m->cube, m->p);
	if (!r && kinds_choose(&kinds, m->p, NULL) < 0)
		r = -1;
	return r ? r : exporter_html.finish(&x);
}

int main(int argc, char **argv)
{
	struct maker m = { .random = 88172645463325252, .cube.axes = PAGE_AXES };
	const char *kind = argc > 1 ? argv[1] : "";
	uint32_t nodes = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	FILE *out = argc > 2 ? fopen(argv[2], "w") : NULL;
	int r = -1;

	if (!out || profile_new(&m.p) < 0) {
		fprintf(stderr, "usage: pages empty|one|deep|hostile|tree|waits|diff|shares FILE "
				"[NODES]\n");
		return 2;
	}
	if (!strcmp(kind, "one"))
		make_one(&m);
	else if (!strcmp(kind, "deep"))
		make_deep(&m);
	else if (!strcmp(kind, "hostile"))
		make_hostile(&m);
	else if (!strcmp(kind, "tree"))
		make_tree(&m, nodes ? nodes : 10000);
	else if (!strcmp(kind, "waits"))
		make_waits(&m, nodes ? nodes : 10000);
	if (!strcmp(kind, "diff"))
		r = make_diff(&m, DIFF_AUTO, nodes, argv[2], out);
	else if (!strcmp(kind, "shares"))
		r = make_diff(&m, DIFF_SHARE, nodes, argv[2], out);
	else
		r = make_plain(&m, out);
	if (fclose(out))
		r = -1;
	if (r < 0)
		fprintf(stderr, "pages: %s\n", err_message(r));
	profile_free(m.p);
	cube_release(&m.cube);
	vec_release(&m.stacks);
	vec_release(&m.depth);
	return r < 0;
}
