/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * gen_runs FOLDER SEED BASE CURRENT SECONDS PARTS NOISE < PROGRAM: recordings of an invented
 * program by dice, FOLDER/base-1.pyebpf ... and FOLDER/current-1.pyebpf ..., so many runs a side,
 * for the tables of verdicts.py. The same arguments make the same files.
 *
 * PROGRAM has a line for each function:
 *
 *	STACK BASE_TICKS CURRENT_TICKS NOISE BUSY LENGTH
 *
 * STACK is as in collapsed text, without spaces, each frame a name; it is sampled so many times a
 * run, a tick being 1 ms of CPU time: by Poisson's law about a mean that is off in each run by
 * NOISE (normally distributed, of the logarithm), and by the NOISE of the command line, which
 * all functions of a run share. It works for BUSY of the time, LENGTH seconds on end on average
 * (exponentially distributed, so are the rests): at 1, steadily. Samples have one of PARTS times.
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
#define INTERVAL_NS 1000000
#define WORK 100   /* units of a run */
#define WARM_UP 20 /* draws, before which seeds next to each other look alike */

struct function {
	char *stack;
	double ticks[2]; /* of a run, by side */
	double noise;
	double busy, length;
};

struct world {
	VEC(struct function) functions;
	uint64_t random;
	double seconds;
	uint32_t parts;
	double noise;
};

static void world_release(struct world *w)
{
	for (size_t i = 0; i < w->functions.len; i++)
		free(w->functions.items[i].stack);
	vec_release(&w->functions);
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

static double normal(struct world *w)
{
	double radius = sqrt(-2 * log(uniform(w)));

	return radius * cos(2 * M_PI * uniform(w));
}

/* Halves of a large mean are drawn apart, so that the law is exact. */
static uint32_t poisson(struct world *w, double mean)
{
	double left, p;
	uint32_t n = 0;

	if (mean > 1000) {
		double x = mean + sqrt(mean) * normal(w) + 0.5;

		return x > 0 ? (uint32_t)x : 0;
	}
	for (; mean > 30; mean -= 30)
		n += poisson(w, 30);
	left = exp(-mean);
	for (p = uniform(w); p > left; p *= uniform(w))
		n++;
	return n;
}

/* --- one run ---------------------------------------------------------------------------------- */

/* Share of each part of the time in which the function works. */
static void take_turns(struct world *w, const struct function *f, double *worked)
{
	double part_s = w->seconds / w->parts, now = 0;
	bool is_busy = uniform(w) < f->busy;

	for (uint32_t i = 0; i < w->parts; i++)
		worked[i] = f->busy < 1 ? 0 : 1;
	while (f->busy < 1 && now < w->seconds) {
		double mean = is_busy ? f->length : f->length * (1 - f->busy) / f->busy;
		double end = fmin(now - mean * log(uniform(w)), w->seconds);

		for (double until; is_busy && now < end; now = until) {
			uint32_t part = (uint32_t)(now / part_s);

			if (part >= w->parts)
				break;
			until = fmin(end, (part + 1) * part_s);
			if (until <= now)
				until = end; /* rounding at the end of a part */
			worked[part] += (until - now) / part_s;
		}
		now = end;
		is_busy = !is_busy;
	}
}

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

static int add_function(struct world *w, struct profile *p, const struct function *f, int side,
			double all, double *worked)
{
	double mean = f->ticks[side] / w->parts * exp(all + f->noise * normal(w)) / f->busy;
	struct sample s = { 0 };
	int r = stack_of(p, f->stack, &s.stack);

	take_turns(w, f, worked);
	for (uint32_t i = 0; i < w->parts && !r; i++) {
		s.value = poisson(w, mean * worked[i]);
		s.time_ns = (uint64_t)((i + 0.5) * w->seconds / w->parts * 1e9);
		if (s.value)
			r = profile_add_sample(p, &s);
	}
	return r;
}

static int fill(struct world *w, struct profile *p, int side)
{
	_cleanup_(freep) double *worked = calloc(w->parts, sizeof(*worked));
	struct process process = { .pid = 412 };
	double all = w->noise * normal(w);
	struct thread t = { .tid = 412 };
	uint32_t index;
	int r = worked ? profile_add_process(p, &process, &t.process) : -ENOMEM;

	if (!r)
		r = profile_add_thread(p, &t, &index);
	for (size_t i = 0; i < w->functions.len && !r; i++)
		r = add_function(w, p, &w->functions.items[i], side, all, worked);
	return r;
}

static int make_run(struct world *w, int side, const char *path)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(writer_freep) struct writer *writer = NULL;
	int r = profile_new(&p);

	if (r < 0)
		return r;
	profile_recording(p)->interval_ns = INTERVAL_NS;
	profile_recording(p)->rate_hz = 1000000000 / INTERVAL_NS;
	profile_recording(p)->start_realtime_ns = UINT64_C(1700000000000000000);
	profile_recording(p)->duration_ns = (uint64_t)(w->seconds * 1e9);
	profile_recording(p)->work = WORK;
	profile_recording(p)->is_whole = profile_recording(p)->has_ended = 1;
	r = recording_set_text(&profile_recording(p)->event, "task-clock");
	if (!r)
		r = fill(w, p, side);
	if (!r)
		r = writer_open(path, p, &writer);
	return r ? r : writer_finish(writer, p);
}

/* --- the program ------------------------------------------------------------------------------ */

static int read_function(struct world *w, const char *line)
{
	char stack[LINE_MAX_BYTES];
	struct function f;

	if (sscanf(line, "%4095s %lf %lf %lf %lf %lf", stack, &f.ticks[0], &f.ticks[1], &f.noise,
		   &f.busy, &f.length) != 6 ||
	    !(f.busy > 0) || !(f.busy <= 1) || !(f.length > 0))
		return err_set(-EINVAL, "'%s' is no function", line);
	f.stack = strdup(stack);
	return f.stack && vec_push(&w->functions, f) == 0 ? 0 : -ENOMEM;
}

static int read_program(struct world *w)
{
	char line[LINE_MAX_BYTES];
	int r = 0;

	while (!r && fgets(line, sizeof(line), stdin))
		r = read_function(w, line);
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
		fprintf(stderr, "usage: gen_runs FOLDER SEED BASE CURRENT SECONDS PARTS NOISE "
				"< PROGRAM\n");
		return 2;
	}
	w.random = strtoull(argv[2], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	runs[0] = strtoul(argv[3], NULL, 10);
	runs[1] = strtoul(argv[4], NULL, 10);
	w.seconds = strtod(argv[5], NULL);
	w.parts = (uint32_t)strtoul(argv[6], NULL, 10);
	w.noise = strtod(argv[7], NULL);
	r = w.seconds > 0 && w.parts ? generate(&w, argv[1], runs) : -EINVAL;
	if (r < 0)
		fprintf(stderr, "gen_runs: %s\n", err_message(r));
	return r < 0;
}
