/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * waits_recording FILE [SLEEP_MS | -]: writes a recording of wall time, of threads that compute,
 * sleep, wait and keep others waiting: the stretches below are all that is in it. Ten seconds of
 * two processes; the first thread's sleep may be made longer or shorter. With `-` it is of waits of
 * a second each instead, whose stacks are lines of the input: FILE:NAME;FILE:NAME;<lock>
 *
 * shop (500)     MainThread 500  cpu 5.06 s, sleep 2, pipe 1, lock 0.94 + 0.1 not sampled, poll 0.9
 *                worker 501      cpu 1 s, GIL 4 (4 episodes), disk 1, runnable 0.5, idle 3.5
 *                pool 502        idle 10 s
 *                late 503        sleep 7 s, GIL 1 + 2 (2 episodes)
 * service (600)  MainThread 600  cpu 1 s, idle 9
 *
 * Who waited for whom: work for compute 4 s, late for compute 1 s, late for work 1 s, late for
 * extension 1 s, which kept the GIL while it read a file.
 * Memory: grow 12 MiB, of which 4 in load.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/writer.h"

#define MS 1000000ULL
#define TICK_MS 10
#define MIB (1u << 20)
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

enum kind { CPU, OFF_CPU, GIL_CONTENTION, MEMORY };

static const struct {
	const char *name, *event;
	enum sample_unit unit;
} kinds[] = {
	[CPU] = { "cpu", "cpu-clock", UNIT_NS },
	[OFF_CPU] = { "off-cpu", "sched_switch", UNIT_NS },
	[GIL_CONTENTION] = { "gil-contention", "gil", UNIT_NS },
	[MEMORY] = { "memory", "page-faults", UNIT_BYTES },
};

static const struct {
	const char *name;
	uint32_t pid;
} processes[] = { { "shop", 500 }, { "service", 600 } };

static const struct {
	uint32_t process, tid;
	const char *name;
} threads[] = {
	{ 0, 500, "MainThread" }, { 0, 501, "worker" },     { 0, 502, "pool" },
	{ 0, 503, "late" },       { 1, 600, "MainThread" },
};

/* Functions that are not of the shop. */
static const struct {
	const char *name, *file;
} functions[] = {
	{ "Thread._bootstrap", "/usr/lib/python3.12/threading.py" },
	{ "Thread._bootstrap_inner", "/usr/lib/python3.12/threading.py" },
	{ "Thread.run", "/usr/lib/python3.12/threading.py" },
	{ "_worker", "/usr/lib/python3.12/concurrent/futures/thread.py" },
	{ "run", "/usr/lib/python3.12/asyncio/runners.py" },
	{ "Runner.run", "/usr/lib/python3.12/asyncio/runners.py" },
	{ "BaseEventLoop.run_until_complete", "/usr/lib/python3.12/asyncio/base_events.py" },
	{ "BaseEventLoop.run_forever", "/usr/lib/python3.12/asyncio/base_events.py" },
	{ "BaseEventLoop._run_once", "/usr/lib/python3.12/asyncio/base_events.py" },
	{ "EpollSelector.select", "/usr/lib/python3.12/selectors.py" },
	{ "Handle._run", "/usr/lib/python3.12/asyncio/events.py" },
};

#define THREAD "Thread._bootstrap;Thread._bootstrap_inner;Thread.run;"
#define LOOP                                                                                  \
	"<module>;run;Runner.run;BaseEventLoop.run_until_complete;BaseEventLoop.run_forever;" \
	"BaseEventLoop._run_once;"
#define WORKER THREAD "_worker;"
#define HOLDS SAMPLE_BIT_HOLDS_GIL
#define EPISODE SAMPLE_BIT_EPISODE

/* Samples of one stack, one every so often. */
struct stretch {
	uint8_t thread; /* index */
	uint8_t kind;
	uint32_t from_ms, to_ms, each_ms;
	uint32_t lasts_ms; /* each of them, which counts each_ms; 0: as long as that */
	uint16_t flags;
	uint32_t value; /* of each; 0: ns, each_ms */
	const char *stack;
};

/* clang-format off */
static struct stretch stretches[] = {
	{ 0, OFF_CPU, 4000, 6000, 2000, .stack = "<module>;main;nap;<sleep>" }, /* SLEEP_MS */
	{ 0, CPU, 0, 4000, TICK_MS, .flags = HOLDS, .stack = "<module>;main;compute" },
	{ 0, OFF_CPU, 6000, 7000, 100, .stack = "<module>;main;receive;<read: pipe>" },
	{ 0, OFF_CPU, 7000, 7940, 940, .stack = "<module>;main;locked;<lock>" },
	{ 0, OFF_CPU, 8000, 8900, 10, .lasts_ms = 1, .flags = SAMPLE_BIT_WEIGHTED,
	  .stack = "<module>;main;chatter;<poll>" },
	{ 0, CPU, 8940, 9940, TICK_MS, .stack = "<module>;main;compute;<native>" },
	{ 0, CPU, 9940, 10000, 60, .stack = "<not sampled>" },
	{ 0, OFF_CPU, 9900, 10000, 100, .stack = "<not sampled>;<lock>" },
	{ 1, OFF_CPU, 0, 4000, 1000, .lasts_ms = 500, .flags = EPISODE, .value = 500 * MS,
	  .stack = WORKER "work;<GIL>" },
	{ 1, OFF_CPU, 500, 4000, 1000, .lasts_ms = 500, .value = 500 * MS,
	  .stack = WORKER "work;<GIL>" },
	{ 1, CPU, 4000, 5000, TICK_MS, .flags = HOLDS, .stack = WORKER "work" },
	{ 1, OFF_CPU, 5000, 6000, 1000, .flags = HOLDS, .stack = WORKER "work;extension;<disk>" },
	{ 1, OFF_CPU, 6000, 6500, 500, .stack = WORKER "work;<runnable>" },
	{ 1, OFF_CPU, 6500, 10000, 3500, .stack = WORKER "<lock>" },
	{ 2, OFF_CPU, 0, 10000, 10000, .stack = WORKER "<lock>" },
	{ 3, OFF_CPU, 0, 2000, 2000, .stack = THREAD "late;<sleep>" },
	{ 3, OFF_CPU, 2000, 3000, 1000, .flags = EPISODE, .stack = THREAD "late;<GIL>" },
	{ 3, OFF_CPU, 3000, 4000, 1000, .stack = THREAD "late;<sleep>" },
	{ 3, OFF_CPU, 4000, 6000, 2000, .flags = EPISODE, .stack = THREAD "late;<GIL>" },
	{ 3, OFF_CPU, 6000, 10000, 4000, .stack = THREAD "late;<sleep>" },
	{ 4, CPU, 0, 1000, TICK_MS, .stack = LOOP "Handle._run;handle" },
	{ 4, OFF_CPU, 1000, 10000, 100, .stack = LOOP "EpollSelector.select;<poll>" },
	/* as long as each tick, for each that waits */
	{ 0, GIL_CONTENTION, 0, 2000, TICK_MS, .flags = HOLDS, .stack = "<module>;main;compute" },
	{ 0, GIL_CONTENTION, 2000, 3000, TICK_MS, .flags = HOLDS, .value = 2 * TICK_MS * MS,
	  .stack = "<module>;main;compute" },
	{ 0, GIL_CONTENTION, 3000, 4000, TICK_MS, .flags = HOLDS, .stack = "<module>;main;compute" },
	{ 1, GIL_CONTENTION, 4000, 5000, TICK_MS, .flags = HOLDS, .stack = WORKER "work" },
	{ 1, GIL_CONTENTION, 5000, 6000, 1000, .lasts_ms = 1000, .flags = HOLDS,
	  .stack = WORKER "work;extension;<disk>" },
	{ 0, MEMORY, 0, 1000, 500, .value = 4 * MIB, .stack = "<module>;main;grow" },
	{ 0, MEMORY, 1000, 2000, 1000, .value = 4 * MIB, .stack = "<module>;main;grow;load" },
};
/* clang-format on */

static int intern(struct profile *p, const char *s, uint32_t *id)
{
	return strtab_intern(p->strings, s, strlen(s), id);
}

static bool is_marker(const char *name)
{
	return *name == '<' && strcmp(name, "<module>") != 0 && !strchr(name, '>')[1];
}

/* NAME, or FILE:NAME */
static int add_frame(struct profile *p, char *text, uint32_t *id)
{
	struct frame f = { .line = 3, .first_line = 1 };
	const char *file = "/srv/shop.py", *name = text;
	char *colon = strrchr(text, ':');
	int r;

	if (colon && !is_marker(text)) {
		*colon = '\0';
		file = text;
		name = colon + 1;
	}
	r = intern(p, name, &f.name);
	for (size_t i = 0; i < LENGTH(functions) && !colon; i++)
		if (!strcmp(functions[i].name, name))
			file = functions[i].file;
	if (is_marker(name))
		f = (struct frame){ .name = f.name, .kind = FRAME_MARKER };
	else if (!r)
		r = intern(p, file, &f.file);
	return r ? r : frametab_intern(p->frames, &f, id);
}

/* Its leaf is what it waits for. */
static int add_stack(struct profile *p, const struct stretch *of, struct sample *s)
{
	char copy[8192], *name, *rest = copy, *leaf = copy;
	uint32_t frame, label, value;
	int r = 0;

	snprintf(copy, sizeof(copy), "%s", of->stack);
	while ((name = strsep(&rest, ";")) && !r) {
		r = add_frame(p, name, &frame);
		if (!r)
			r = stacktab_intern(p->stacks, s->stack, frame, &s->stack);
		leaf = name;
	}
	if (of->kind != OFF_CPU || r < 0)
		return r;
	leaf[strlen(leaf) - 1] = '\0';
	if ((r = intern(p, "wait", &label)) < 0 || (r = intern(p, leaf + 1, &value)) < 0)
		return r;
	return labeltab_add(p->labels, 0, label, value, &s->labels);
}

static int add_stretch(struct profile *p, const struct stretch *of)
{
	bool is_span = of->kind == OFF_CPU || of->lasts_ms;
	struct sample s = {
		.value = of->value ? of->value : of->each_ms * MS,
		.duration_ns = is_span ? (of->lasts_ms ? of->lasts_ms : of->each_ms) * MS : 0,
		.thread = of->thread,
		.flags = of->flags,
		.kind = (uint16_t)(of->kind + 1),
	};
	int r = add_stack(p, of, &s);

	for (uint32_t at = of->from_ms; at < of->to_ms && !r; at += of->each_ms) {
		s.time_ns = at * MS;
		r = profile_add_sample(p, &s);
	}
	return r;
}

/* What this program is given. */
static int add_lines(struct profile *p, FILE *in)
{
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	while (getline(&line, &size, in) > 0 && !r) {
		struct stretch of = { .kind = OFF_CPU, .to_ms = 1000, .each_ms = 1000 };

		line[strcspn(line, "\n")] = '\0';
		of.stack = line;
		r = add_stretch(p, &of);
	}
	free(line);
	return r;
}

static int add_threads(struct profile *p)
{
	uint32_t index;
	int r = 0;

	for (size_t i = 0; i < LENGTH(processes) && !r; i++) {
		struct process process = { .pid = processes[i].pid };

		r = intern(p, processes[i].name, &process.name);
		if (!r)
			r = profile_add_process(p, &process, &index);
	}
	for (size_t i = 0; i < LENGTH(threads) && !r; i++) {
		struct thread thread = { .process = threads[i].process, .tid = threads[i].tid };

		r = intern(p, threads[i].name, &thread.name);
		if (!r)
			r = profile_add_thread(p, &thread, &index);
	}
	return r;
}

static int add_kinds(struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < LENGTH(kinds) && !r; i++) {
		struct sample_kind kind = { .period = 1, .unit = (uint8_t)kinds[i].unit };
		uint16_t number;

		r = intern(p, kinds[i].name, &kind.name);
		if (!r)
			r = intern(p, kinds[i].event, &kind.event);
		if (!r)
			r = profile_add_kind(p, &kind, &number);
	}
	return r;
}

static int fill(struct profile *p, FILE *in)
{
	struct recording *m = profile_recording(p);
	int r = add_kinds(p);

	m->interval_ns = TICK_MS * MS;
	m->rate_hz = 1000 / TICK_MS;
	m->duration_ns = 10000 * MS;
	m->has_ended = 1;
	if (!r)
		r = recording_set_text(&m->mode, "wall,memory");
	if (!r)
		r = recording_set_text(&m->event, "cpu-clock");
	if (!r)
		r = recording_set_text(&m->target, "pid 500, 600");
	if (!r)
		r = add_threads(p);
	if (in && !r)
		return add_lines(p, in);
	for (size_t i = 0; i < LENGTH(stretches) && !r; i++)
		r = add_stretch(p, &stretches[i]);
	return r;
}

/* in: of stacks; NULL: it is of the stretches. */
static int write_to(const char *path, FILE *in)
{
	struct writer *w = NULL;
	struct profile *p = NULL;
	int r = profile_new(&p);

	if (!r)
		r = fill(p, in);
	if (!r)
		r = writer_open(path, p, &w);
	if (!r)
		r = writer_finish(w, p);
	writer_free(w);
	profile_free(p);
	return r;
}

int main(int argc, char **argv)
{
	bool has_stacks = argc > 2 && !strcmp(argv[2], "-");
	int r;

	if (argc < 2) {
		fprintf(stderr, "usage: waits_recording FILE [SLEEP_MS | -]\n");
		return 2;
	}
	if (argc > 2 && !has_stacks) {
		stretches[0].each_ms = (uint32_t)strtoul(argv[2], NULL, 10);
		stretches[0].to_ms = stretches[0].from_ms + stretches[0].each_ms;
	}
	r = write_to(argv[1], has_stacks ? stdin : NULL);
	if (r < 0)
		fprintf(stderr, "waits_recording: %s\n", err_message(r));
	return r < 0;
}
