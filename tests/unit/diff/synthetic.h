/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TEST_SYNTHETIC_H
#define TEST_SYNTHETIC_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diff/diff.h"

/*
 * Recordings made by hand. A stack is written as collapsed text has it, root first:
 * "main (app.py);Cart.total (shop/cart.py:12);<GC>", the number being the line of the def.
 */
#define INTERVAL_NS 1000000

static inline uint32_t frame_of(struct profile *p, const char *text, size_t len)
{
	const char *open = memmem(text, len, " (", 2), *colon;
	struct frame f = { .kind = open ? FRAME_PYTHON : FRAME_MARKER };
	size_t name_len = open ? (size_t)(open - text) : len, file_len;
	const char *file = open ? open + 2 : "~";
	uint32_t id;

	file_len = open ? (size_t)(text + len - 1 - file) : 1;
	colon = open ? memrchr(file, ':', file_len) : NULL;
	if (colon) {
		f.line = f.first_line = (uint32_t)strtoul(colon + 1, NULL, 10);
		file_len = (size_t)(colon - file);
	}
	assert_int_equal(strtab_intern(p->strings, text, name_len, &f.name), 0);
	assert_int_equal(strtab_intern(p->strings, file, file_len, &f.file), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
	return id;
}

static inline uint32_t stack_of(struct profile *p, const char *text)
{
	uint32_t stack = 0;

	while (*text) {
		size_t len = strcspn(text, ";");

		assert_int_equal(stacktab_intern(p->stacks, stack, frame_of(p, text, len), &stack),
				 0);
		text += len + (text[len] == ';');
	}
	return stack;
}

/* All that the profile holds are of the run that was added last. */
static inline void take_samples(struct diff_input *in, uint32_t run)
{
	assert_int_equal(run + 1, in->cube.runs.len);
	assert_int_equal(diff_input_take_samples(in, true), 0);
}

/* facts: of its recording; texts are copied. */
static inline uint32_t add_run_of(struct diff_input *in, enum diff_side side,
				  const struct recording *facts, bool has_times,
				  uint64_t expected_ns)
{
	uint32_t recording, run;

	assert_int_equal(profile_begin_recording(in->profile, &recording), 0);
	assert_int_equal(recording_copy(&in->profile->recordings.items[recording], facts), 0);
	assert_int_equal(diff_input_add_run(in, side, side == DIFF_BASE ? "base" : "current",
					    recording, expected_ns, &run),
			 0);
	in->cube.runs.items[run].has_times = has_times;
	return run;
}

static inline uint32_t add_run(struct diff_input *in, enum diff_side side, bool has_times)
{
	const struct recording facts = { .interval_ns = INTERVAL_NS, .is_whole = 1 };

	return add_run_of(in, side, &facts, has_times, 0);
}

static inline void put(struct profile *p, uint32_t stack, uint32_t thread, uint64_t time_ns,
		       uint32_t ticks)
{
	struct sample s = { .time_ns = time_ns, .thread = thread, .stack = stack, .value = ticks };

	if (ticks)
		assert_int_equal(profile_add_sample(p, &s), 0);
}

static inline uint32_t add_thread(struct profile *p, uint32_t tid)
{
	struct process process = { .pid = 1 };
	struct thread thread = { .tid = tid };
	uint32_t index;

	assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
	assert_int_equal(profile_add_thread(p, &thread, &index), 0);
	return index;
}

/* Of a process with this version of Python. */
static inline uint32_t add_python(struct profile *p, const char *version)
{
	struct process process = { .pid = 1, .recording = (uint32_t)p->recordings.len - 1 };
	struct thread thread = { .tid = 1 };
	uint32_t index;

	if (version)
		assert_int_equal(strtab_intern(p->strings, version, strlen(version),
					       &process.python_version),
				 0);
	assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
	assert_int_equal(profile_add_thread(p, &thread, &index), 0);
	return index;
}

/* Lines of collapsed text, `stack count`, each spread evenly over 40 blocks of a second. */
static inline void add_text_of(struct diff_input *in, uint32_t run, uint32_t thread,
			       const char *lines)
{
	struct profile *p = in->profile;

	for (const char *end; *lines; lines = end + (*end != '\0')) {
		char line[1024];
		uint32_t stack;
		char *space;
		int ticks;

		end = strchrnul(lines, '\n');
		if (end == lines)
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)(end - lines), lines);
		space = strrchr(line, ' ');
		ticks = (int)strtol(space, NULL, 10);
		*space = '\0';
		stack = stack_of(p, line);
		for (int block = 0; block < DIFF_BLOCKS; block++)
			put(p, stack, thread, (uint64_t)block * 1000000000 + 500000000,
			    (uint32_t)(ticks * (block + 1) / DIFF_BLOCKS -
				       ticks * block / DIFF_BLOCKS));
	}
	take_samples(in, run);
}

static inline void add_text(struct diff_input *in, uint32_t run, const char *lines)
{
	add_text_of(in, run, add_thread(in->profile, 1), lines);
}

static inline struct diff_input *input_of(const char *base, const char *current)
{
	struct diff_input *in;

	assert_int_equal(diff_input_new(false, &in), 0);
	add_text(in, add_run(in, DIFF_BASE, true), base);
	add_text(in, add_run(in, DIFF_CURRENT, true), current);
	return in;
}

static inline struct diff *compare(struct diff_input *in, enum diff_normalize normalize,
				   const struct diff_renames *renames)
{
	struct diff_options o = { .normalize = normalize, .renames = renames };
	struct diff *d;

	assert_int_equal(diff_input_finish(in), 0);
	assert_int_equal(diff_new(in, &o, &d), 0);
	return d;
}

/* "main;f": names on the way to a node. */
static inline void path_of(const struct diff *d, uint32_t node, char *out, size_t size)
{
	const struct strtab *strings = d->input->profile->strings;
	const struct diff_function *f = &d->functions[d->nodes[node].function];
	size_t len = 0;

	if (d->nodes[node].parent) {
		path_of(d, d->nodes[node].parent, out, size);
		len = strlen(out);
	}
	snprintf(out + len, size - len, "%s%s", len ? ";" : "", strtab_get(strings, f->name));
}

/* The only node of that path. */
static inline const struct diff_node *node_at(const struct diff *d, const char *path)
{
	const struct diff_node *found = NULL;

	for (uint32_t i = 1; i < d->node_count; i++) {
		char text[1024];

		path_of(d, i, text, sizeof(text));
		if (strcmp(text, path) != 0)
			continue;
		if (found)
			fail_msg("%s: twice", path);
		found = &d->nodes[i];
	}
	if (!found)
		fail_msg("%s: not there", path);
	return found;
}

static inline const struct diff_function *function_named(const struct diff *d, const char *name)
{
	for (size_t i = 0; i < d->function_count; i++)
		if (!strcmp(strtab_get(d->input->profile->strings, d->functions[i].name), name))
			return &d->functions[i];
	fail_msg("%s: no such function", name);
	return NULL;
}

/* --- random numbers with a fixed seed --------------------------------------------------------- */

struct dice {
	uint64_t state;
};

/* xorshift64*; in (0, 1). */
static inline double dice_uniform(struct dice *d)
{
	d->state ^= d->state >> 12;
	d->state ^= d->state << 25;
	d->state ^= d->state >> 27;
	return ((double)((d->state * UINT64_C(2685821657736338717)) >> 12) + 0.5) /
	       4503599627370496;
}

static inline double dice_normal(struct dice *d)
{
	double radius = sqrt(-2 * log(dice_uniform(d)));

	return radius * cos(2 * M_PI * dice_uniform(d));
}

static inline uint32_t dice_poisson(struct dice *d, double mean)
{
	double left = exp(-mean);
	uint32_t n = 0;

	if (mean > 50) {
		double x = mean + sqrt(mean) * dice_normal(d) + 0.5;

		return x > 0 ? (uint32_t)x : 0;
	}
	for (double p = dice_uniform(d); p > left; p *= dice_uniform(d))
		n++;
	return n;
}

#endif
