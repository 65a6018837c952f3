/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * gen_recording KIND RATE_HZ SECONDS FILE: makes a synthetic recording as a recorder would, one
 * flush a second, reads it back, and prints one line: bytes a sample over the whole file,
 * CPU nanoseconds a sample to write (compression included), to read, and to aggregate. For sizes
 * and speeds of the store, and for big inputs to report and diff. The same arguments make the same
 * file.
 *
 * steady    one thread, 50 deep, a loop over 12 lines of its innermost function
 * mixed     four threads under one lock, 5 ms each in turn; a fixed call graph of 400 functions
 *           with four call sites each, 11-31 deep, a random walk through it
 * cyclic    mixed, but the same million samples again and again
 * churning  one thread, tree recursion 12-40 deep: nearly every sample is a new stack
 *
 * Ticks come 2 us late, plus 3 us on average, one in 200 up to 200 us.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "profile/calltree.h"
#include "profile/profile.h"
#include "store/reader.h"
#include "store/writer.h"

#define FUNCTIONS 400
#define DEPTH_MAX 64
#define LINES 24
#define CYCLE 1000000 /* samples, of cyclic */
#define SEED UINT64_C(88172645463325252)

struct generator {
	struct profile *p;
	uint64_t random;
	uint64_t rate_hz;
	uint32_t frame[FUNCTIONS][LINES]; /* id + 1; 0: not made yet */
	uint32_t site[4][DEPTH_MAX];      /* mixed: call site taken in each frame, by thread */
	unsigned int depth[4];
	uint64_t write_ns;
};

/* xorshift64*: any fixed sequence will do. */
static uint64_t next_random(struct generator *g)
{
	g->random ^= g->random >> 12;
	g->random ^= g->random << 25;
	g->random ^= g->random >> 27;
	return g->random * UINT64_C(2685821657736338717);
}

static uint32_t below(struct generator *g, uint32_t limit)
{
	return (uint32_t)((next_random(g) >> 32) * limit >> 32);
}

/* Small numbers far more often: each next one half as likely. */
static uint32_t skewed(struct generator *g, uint32_t limit)
{
	return (uint32_t)__builtin_ctzll(next_random(g) >> 16 | UINT64_C(1) << 40) % limit;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int make_threads(struct generator *g, uint32_t count)
{
	struct process process = { .pid = 412, .ns_pid = 412, .ppid = 1 };
	uint32_t index;
	int r = profile_add_process(g->p, &process, &index);

	for (uint32_t i = 0; i < count && !r; i++) {
		struct thread t = { .process = index, .tid = 412 + i };

		r = profile_add_thread(g->p, &t, &index);
		index = 0;
	}
	return r;
}

static int make_frame(struct generator *g, uint32_t function, uint32_t line, uint32_t *id)
{
	struct frame f = {
		.first_line = 10 + function % 10 * 60,
		.line = 11 + function % 10 * 60 + line,
	};
	char name[64], file[64];
	int r, n;

	n = snprintf(name, sizeof(name), "Package%u.method_%u", function / 40, function);
	r = strtab_intern(g->p->strings, name, (size_t)n, &f.name);
	n = snprintf(file, sizeof(file), "/usr/lib/app/package%u/module%u.py", function / 40,
		     function / 10);
	if (!r)
		r = strtab_intern(g->p->strings, file, (size_t)n, &f.file);
	return r ? r : frametab_intern(g->p->frames, &f, id);
}

static int push_frame(struct generator *g, uint32_t function, uint32_t line, uint32_t *stack)
{
	uint32_t *known = &g->frame[function][line], id;
	int r;

	if (!*known) {
		r = make_frame(g, function, line, &id);
		if (r < 0)
			return r;
		*known = id + 1;
	}
	return stacktab_intern(g->p->stacks, *stack, *known - 1, stack);
}

static int steady_stack(struct generator *g, uint32_t *stack)
{
	uint32_t line = skewed(g, 12);
	int r = 0;

	*stack = 0;
	for (uint32_t i = 0; i < 50 && !r; i++)
		r = push_frame(g, i, i == 49 ? line : 3, stack);
	return r;
}

/* A step of the walk: up some frames, down some call sites, another line in the leaf. */
static int mixed_stack(struct generator *g, unsigned int thread, uint32_t *stack)
{
	uint32_t *site = g->site[thread], function = thread;
	unsigned int depth = g->depth[thread], up = skewed(g, 12), down = skewed(g, 12);
	int r = 0;

	depth = depth > up + 10 ? depth - up : 10;
	for (; down && depth < 30; down--)
		site[depth++] = skewed(g, 4);
	g->depth[thread] = depth;
	*stack = 0;
	for (unsigned int i = 0; i < depth && !r; i++) {
		r = push_frame(g, function, 5 * site[i] + 2, stack);
		function = (function * 7 + site[i] * 31 + 5) % FUNCTIONS;
	}
	return r ? r : push_frame(g, function, skewed(g, 8), stack);
}

static int churning_stack(struct generator *g, uint32_t *stack)
{
	unsigned int depth = 12 + below(g, 29);
	int r = 0;

	*stack = 0;
	for (unsigned int i = 0; i < depth && !r; i++)
		r = push_frame(g, i < 6 ? i : 6, i < 6 ? 2 : below(g, 3), stack);
	return r;
}

static int make_sample(struct generator *g, const char *kind, uint64_t tick)
{
	uint64_t time_ns = tick * (1000000000 / g->rate_hz) + 700000;
	bool is_walk = kind[0] == 'm' || !strcmp(kind, "cyclic");
	uint32_t thread = is_walk ? (uint32_t)(time_ns / 5000000 % 4) : 0;
	struct sample s = { .thread = thread, .value = 1, .cpu = (uint16_t)(tick / 5000 % 2) };
	double late_us;
	int r;

	if (kind[1] == 'y' && tick % CYCLE == 0) {
		g->random = SEED;
		memset(g->site, 0, sizeof(g->site));
		memset(g->depth, 0, sizeof(g->depth));
	}
	late_us = 2 - 3 * log(1 - (double)(next_random(g) >> 11) / 9007199254740992.0);
	s.time_ns = time_ns + (uint64_t)(late_us * 1000) +
		    (below(g, 200) ? 0 : below(g, 200) * UINT64_C(1000));
	s.flags = SAMPLE_BIT_HOLDS_GIL;
	if (kind[0] == 's')
		r = steady_stack(g, &s.stack);
	else if (is_walk)
		r = mixed_stack(g, thread, &s.stack);
	else
		r = churning_stack(g, &s.stack);
	return r ? r : profile_add_sample(g->p, &s);
}

static int generate(struct generator *g, const char *kind, uint64_t seconds, const char *path)
{
	_cleanup_(writer_freep) struct writer *w = NULL;
	uint64_t start_ns;
	ssize_t n = 0;
	int r;

	profile_recording(g->p)->rate_hz = g->rate_hz;
	profile_recording(g->p)->interval_ns = 1000000000 / g->rate_hz;
	profile_recording(g->p)->start_realtime_ns = UINT64_C(1700000000000000000);
	r = recording_set_text(&profile_recording(g->p)->event, "task-clock");
	if (!r)
		r = make_threads(g, 4);
	if (!r)
		r = writer_open(path, g->p, &w);
	for (uint64_t second = 0; second < seconds && !r; second++) {
		for (uint64_t i = 0; i < g->rate_hz && !r; i++)
			r = make_sample(g, kind, second * g->rate_hz + i);
		start_ns = now_ns();
		if (!r)
			n = writer_flush(w, g->p);
		g->write_ns += now_ns() - start_ns;
		profile_clear_samples(g->p);
		r = r ? r : n < 0 ? (int)n : 0;
	}
	profile_recording(g->p)->duration_ns = seconds * 1000000000;
	profile_recording(g->p)->has_ended = 1;
	return r ? r : writer_finish(w, g->p);
}

/* Reads as a report does: sums chunk by chunk. */
static int measure(const char *kind, uint64_t rate_hz, uint64_t write_ns, const char *path)
{
	_cleanup_(cube_release) struct cube cube = { 0 };
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(reader_freep) struct reader *r = NULL;
	uint64_t read_ns = now_ns(), tree_ns, samples = 0, bytes = 0;
	double count;
	int n = profile_new(&p);

	if (!n)
		n = reader_open(path, &r);
	while (!n) {
		n = reader_next(r, p);
		if (n <= 0)
			break;
		samples += p->samples.len;
		n = cube_add(&cube, p);
		profile_clear_samples(p);
	}
	read_ns = now_ns() - read_ns;
	if (n < 0)
		return n;
	tree_ns = now_ns();
	n = cube_finish(&cube, p);
	if (!n)
		n = calltree_new(p, &cube, KIND_TICKS, CALLTREE_BY_FUNCTION, &tree);
	tree_ns = now_ns() - tree_ns;
	if (n < 0)
		return n;
	reader_is_truncated(r, &bytes);
	count = samples ? (double)samples : 1;
	printf("%-9s %6" PRIu64 " Hz %9" PRIu64 " samples %8" PRIu32 " stacks %6.2f B a sample, "
	       "write %5.0f ns, read %5.0f ns, tree %5.0f ns\n",
	       kind, rate_hz, samples, stacktab_count(p->stacks), (double)bytes / count,
	       (double)write_ns / count, (double)read_ns / count, (double)tree_ns / count);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct generator *g = calloc(1, sizeof(*g));
	uint64_t seconds;
	int r;

	if (argc != 5 || !g ||
	    (strcmp(argv[1], "steady") && strcmp(argv[1], "mixed") && strcmp(argv[1], "cyclic") &&
	     strcmp(argv[1], "churning"))) {
		fprintf(stderr,
			"usage: gen_recording steady|mixed|cyclic|churning RATE_HZ SECONDS FILE\n");
		return 2;
	}
	g->random = SEED;
	g->rate_hz = strtoull(argv[2], NULL, 10);
	seconds = strtoull(argv[3], NULL, 10);
	if (g->rate_hz < 1 || g->rate_hz > 1000000) {
		fprintf(stderr, "gen_recording: RATE_HZ is 1 to 1000000\n");
		return 2;
	}
	r = profile_new(&p);
	g->p = p;
	if (!r)
		r = generate(g, argv[1], seconds, argv[4]);
	if (!r)
		r = measure(argv[1], g->rate_hz, g->write_ns, argv[4]);
	if (r < 0)
		fprintf(stderr, "gen_recording: %s\n", err_message(r));
	free(g);
	return r < 0;
}
