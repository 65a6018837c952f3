/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * gen_waits FOLDER SEED BASE CURRENT SECONDS KEPT_MS CYCLES < PROGRAM: recordings of the waiting of
 *an invented program by dice, FOLDER/base-1.pyebpf ... and FOLDER/current-1.pyebpf ..., so many
 *runs a side, for the tables of verdicts.py. The same arguments make the same files.
 *
 * PROGRAM is threads, each a line and below it what it does, again and again:
 *
 *	threads COUNT BUSY_S REST_S
 *	STACK LAW BASE CURRENT
 *
 * A step lasts for BASE or CURRENT milliseconds by side: LAW `fixed`, `exp`onential, `pareto`
 * (of infinite variance: exponent 1.5, with that mean). STACK is as in collapsed text, without
 * spaces, and `cpu` for computing, which is not recorded; `bytes`: it does not take time, but
 * as many bytes in pages of 4,096, as a fault each. With REST_S a thread works for
 * BUSY_S seconds on end on average, then waits in main;rest for REST_S; all threads of a line at
 * once if COUNT is negative, which also take each step together: a convoy. Threads are begun in the
 * midst of what they do, and cut off. Spans below KEPT_MS are kept by chance T / KEPT_MS, and count
 * so much then, as the sampler does it.
 *
 * With CYCLES each thread does all of its steps so many times, from its start, and ends: a
 *command's work. SECONDS are as many as it may take at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/writer.h"

#define LINE_MAX_BYTES 4096
#define NAME_MAX_BYTES 1024
#define WARM_UP 20 /* draws, before which seeds next to each other look alike */
#define PARETO 1.5
#define PAGE_BYTES 4096
#define RUN_UP_S 30 /* that a thread did before the recording began */

enum law { LAW_FIXED, LAW_EXP, LAW_PARETO, LAWS };
static const char *const laws[LAWS] = { "fixed", "exp", "pareto" };

struct step {
	char *stack;
	enum law law;
	double ms[2]; /* by side */
};

struct threads {
	int count; /* negative: all together */
	double busy_s, rest_s;
	VEC(struct step) steps;
};

struct world {
	VEC(struct threads) threads;
	uint64_t random;
	double seconds, kept_s;
	unsigned long cycles; /* 0: for ever */
};

static void world_release(struct world *w)
{
	for (size_t i = 0; i < w->threads.len; i++) {
		for (size_t k = 0; k < w->threads.items[i].steps.len; k++)
			free(w->threads.items[i].steps.items[k].stack);
		vec_release(&w->threads.items[i].steps);
	}
	vec_release(&w->threads);
}

/* --- dice ------------------------------------------------------------------------------------- */

/* xorshift64*; in (0, 1). */
static double uniform(struct world *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return ((double)((w->random * UINT64_C(2685821657736338717)) >> 12) + 0.5) /
	       4503599627370496;
}

static double draw(struct world *w, enum law law, double mean)
{
	if (law == LAW_EXP)
		return -mean * log(uniform(w));
	if (law == LAW_PARETO)
		return mean * (PARETO - 1) / PARETO * pow(uniform(w), -1 / PARETO);
	return mean;
}

/* --- one run ---------------------------------------------------------------------------------- */

struct run {
	struct world *w;
	struct profile *p;
	int side;
	uint16_t off_cpu, memory;
	double end; /* of the last thread */
};

static int stack_of(struct profile *p, const char *text, uint32_t *stack)
{
	int r = 0;

	*stack = 0;
	while (*text && !r) {
		size_t len = strcspn(text, ";");
		struct frame f = { .line = 1, .first_line = 1 };
		uint32_t frame;

		r = strtab_intern(p->strings, text, len, &f.name);
		if (!r)
			r = strtab_intern(p->strings, "/app.py", 7, &f.file);
		if (!r)
			r = frametab_intern(p->frames, &f, &frame);
		if (!r)
			r = stacktab_intern(p->stacks, *stack, frame, stack);
		text += len + (text[len] == ';');
	}
	return r;
}

/* What the recording has of a span. */
static int add_span(struct run *run, uint32_t thread, const char *stack, double from, double to)
{
	struct sample s = { .thread = thread, .kind = run->off_cpu };
	double length;
	int r;

	from = fmax(from, 0);
	to = fmin(to, run->w->seconds);
	length = to - from;
	if (!(length > 0))
		return 0;
	if (length < run->w->kept_s && uniform(run->w) > length / run->w->kept_s)
		return 0;
	if (length < run->w->kept_s)
		s.flags = SAMPLE_BIT_WEIGHTED;
	s.time_ns = (uint64_t)(from * 1e9);
	s.duration_ns = (uint64_t)(length * 1e9);
	s.value = (uint64_t)(fmax(length, run->w->kept_s) * 1e9);
	r = stack_of(run->p, stack, &s.stack);
	return r || !s.value ? r : profile_add_sample(run->p, &s);
}

static int add_bytes(struct run *run, uint32_t thread, const char *stack, double at, double bytes)
{
	struct sample s = { .thread = thread,
			    .kind = run->memory,
			    .value = PAGE_BYTES,
			    .time_ns = (uint64_t)(fmax(at, 0) * 1e9) };
	int r = at < 0 || at >= run->w->seconds ? 0 : stack_of(run->p, stack, &s.stack);

	for (double done = 0; at >= 0 && at < run->w->seconds && done < bytes && !r;
	     done += PAGE_BYTES)
		r = profile_add_sample(run->p, &s);
	return r;
}

/* One after another, of one thread, or of several at once. */
static int live(struct run *run, const struct threads *t, uint32_t first, uint32_t count)
{
	struct world *w = run->w;
	double now = w->cycles ? 0 : -RUN_UP_S * (0.5 + uniform(w) / 2), turn = 0;
	size_t steps = w->cycles ? w->cycles * t->steps.len : SIZE_MAX;
	int r = 0;

	for (size_t i = 0; now < w->seconds && i < steps && !r; i++) {
		const struct step *step = &t->steps.items[i % t->steps.len];
		double length = draw(w, step->law, step->ms[run->side]), end;

		if (!turn)
			turn = now + draw(w, LAW_EXP, t->busy_s);
		if (t->rest_s > 0 && now >= turn) {
			end = now + draw(w, LAW_EXP, t->rest_s);
			for (uint32_t k = 0; k < count && !r; k++)
				r = add_span(run, first + k, "main;rest", now, end);
			now = end;
			turn = 0;
			i--; /* the step is still to be done */
			continue;
		}
		if (!strncmp(step->stack, "bytes;", 6)) {
			r = add_bytes(run, first, step->stack + 6, now, length);
			continue;
		}
		end = now + length / 1e3;
		for (uint32_t k = 0; k < count && strcmp(step->stack, "cpu") != 0 && !r; k++)
			r = add_span(run, first + k, step->stack, now, end);
		now = end;
	}
	run->end = fmax(run->end, fmin(now, w->seconds));
	return r;
}

static int fill(struct run *run)
{
	struct process process = { .pid = 412 };
	uint32_t process_index, tid = 412, first = 0;
	int r = profile_add_process(run->p, &process, &process_index);

	for (size_t i = 0; i < run->w->threads.len && !r; i++) {
		const struct threads *t = &run->w->threads.items[i];
		uint32_t count = (uint32_t)abs(t->count), index;

		for (uint32_t k = 0; k < count && !r; k++) {
			struct thread thread = { .process = process_index, .tid = tid++ };

			r = profile_add_thread(run->p, &thread, &index);
		}
		for (uint32_t k = 0; k < count && t->count > 0 && !r; k++)
			r = live(run, t, first + k, 1);
		if (t->count < 0 && !r)
			r = live(run, t, first, count);
		first += count;
	}
	return r;
}

static int add_kinds(struct run *run)
{
	struct sample_kind off_cpu = { .unit = UNIT_NS, .period = 1 };
	struct sample_kind memory = { .unit = UNIT_BYTES, .period = 1 };
	int r = strtab_intern(run->p->strings, "off-cpu", 7, &off_cpu.name);

	if (!r)
		r = strtab_intern(run->p->strings, "memory", 6, &memory.name);
	if (!r)
		r = profile_add_kind(run->p, &off_cpu, &run->off_cpu);
	return r ? r : profile_add_kind(run->p, &memory, &run->memory);
}

static int make_run(struct world *w, int side, const char *path)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(writer_freep) struct writer *writer = NULL;
	struct run run = { .w = w, .side = side };
	struct recording *m;
	int r = profile_new(&p);

	if (r < 0)
		return r;
	run.p = p;
	m = profile_recording(p);
	m->interval_ns = 10000000;
	m->rate_hz = 100;
	m->start_realtime_ns = UINT64_C(1700000000000000000);
	m->is_whole = 1;
	m->has_ended = 1;
	m->work = 100;
	r = recording_set_text(&m->mode, "off-cpu");
	if (!r)
		r = add_kinds(&run);
	if (!r)
		r = fill(&run);
	m->duration_ns = (uint64_t)(run.end * 1e9);
	if (!r)
		r = writer_open(path, p, &writer);
	return r ? r : writer_finish(writer, p);
}

/* --- the program ------------------------------------------------------------------------------ */

static int read_step(struct world *w, const char *line)
{
	char stack[NAME_MAX_BYTES], law[NAME_MAX_BYTES];
	struct step s = { .law = LAW_FIXED };

	if (sscanf(line, "%1023s %1023s %lf %lf", stack, law, &s.ms[0], &s.ms[1]) != 4 ||
	    !w->threads.len || !(s.ms[0] > 0) || !(s.ms[1] > 0))
		return err_set(-EINVAL, "'%s' is no step", line);
	while (s.law < LAWS && strcmp(laws[s.law], law) != 0)
		s.law++;
	if (s.law == LAWS)
		return err_set(-EINVAL, "'%s' is no law", law);
	s.stack = strdup(stack);
	return s.stack && vec_push(&w->threads.items[w->threads.len - 1].steps, s) == 0 ? 0
											: -ENOMEM;
}

static int read_program(struct world *w)
{
	char line[LINE_MAX_BYTES];
	int r = 0;

	while (!r && fgets(line, sizeof(line), stdin)) {
		struct threads t = { .count = 0 };

		if (strncmp(line, "threads ", 8) != 0)
			r = read_step(w, line);
		else if (sscanf(line + 8, "%d %lf %lf", &t.count, &t.busy_s, &t.rest_s) != 3)
			r = err_set(-EINVAL, "'%s': threads COUNT BUSY_S REST_S", line);
		else
			r = vec_push(&w->threads, t);
	}
	return r;
}

static int generate(struct world *w, const char *folder, const unsigned long runs[2])
{
	static const char *const sides[] = { "base", "current" };
	char path[LINE_MAX_BYTES];
	int r = read_program(w);

	for (int i = 0; i < WARM_UP; i++)
		uniform(w);
	for (int s = 0; s < 2; s++)
		for (unsigned long i = 1; i <= runs[s] && !r; i++) {
			snprintf(path, sizeof(path), "%s/%s-%lu.pyebpf", folder, sides[s], i);
			r = make_run(w, s, path);
		}
	return r;
}

int main(int argc, char **argv)
{
	_cleanup_(world_release) struct world w = { 0 };
	unsigned long runs[2];
	int r;

	if (argc != 8) {
		fprintf(stderr, "usage: gen_waits FOLDER SEED BASE CURRENT SECONDS KEPT_MS CYCLES "
				"< PROGRAM\n");
		return 2;
	}
	w.random = strtoull(argv[2], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	runs[0] = strtoul(argv[3], NULL, 10);
	runs[1] = strtoul(argv[4], NULL, 10);
	w.seconds = strtod(argv[5], NULL);
	w.kept_s = strtod(argv[6], NULL) / 1e3;
	w.cycles = strtoul(argv[7], NULL, 10);
	r = w.seconds > 0 ? generate(&w, argv[1], runs) : -EINVAL;
	if (r < 0)
		fprintf(stderr, "gen_waits: %s\n", err_message(r));
	return r < 0;
}
