/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * kinds_recording FILE [WAITS [TASKS]]: writes a recording with samples of two kinds, and with
 * labels: what every command must tell apart. A second's ticks of 1 ms, 600 in main;work and 400 in
 * main, half of them labelled route=/pay, the others route=/list, user=u1; and spans of waiting, of
 * 10 ms each, 5 ms apart, WAITS (100) of them in main;wait, 25 in main. Two threads take turns, in
 * a container. And TASKS (0) of task time, of 10 ms each, 5 ms apart: of five one in main, the
 * others in main;wait, three of them labelled task=fetch, one with a task whose name a shell would
 * have quoted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/writer.h"

#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TICK_NS 1000000

static int intern(struct profile *p, const char *s, uint32_t *id)
{
	return strtab_intern(p->strings, s, strlen(s), id);
}

static int push(struct profile *p, uint32_t caller, const char *name, uint32_t *stack)
{
	struct frame f = { .line = 3, .first_line = 1 };
	uint32_t frame;
	int r = intern(p, name, &f.name);

	if (!r)
		r = intern(p, "/srv/shop.py", &f.file);
	if (!r)
		r = frametab_intern(p->frames, &f, &frame);
	return r ? r : stacktab_intern(p->stacks, caller, frame, stack);
}

static int add_label(struct profile *p, const char *name, const char *value, uint32_t *set)
{
	uint32_t name_id, value_id;
	int r = intern(p, name, &name_id);

	if (!r)
		r = intern(p, value, &value_id);
	return r ? r : labeltab_add(p->labels, *set, name_id, value_id, set);
}

static int add_threads(struct profile *p)
{
	struct process process = { .pid = 412, .ns_pid = 7 };
	uint32_t index;
	int r = intern(p, "shop", &process.name);

	if (!r)
		r = intern(p, CONTAINER, &process.container);
	if (!r)
		r = intern(p, "5c6d7e8f-0000-4000-8000-000000000000", &process.pod_uid);
	if (!r)
		r = intern(p, "orders", &process.pod_namespace);
	if (!r)
		r = intern(p, "shop-0", &process.pod_name);
	if (!r)
		r = profile_add_process(p, &process, &index);
	for (uint32_t i = 0; i < 2 && !r; i++) {
		struct thread thread = { .process = index, .tid = 412 + i };

		r = intern(p, i ? "pool" : "MainThread", &thread.name);
		if (!r)
			r = profile_add_thread(p, &thread, &index);
		index = 0;
	}
	return r;
}

static int add_tasks(struct profile *p, uint64_t tasks, uint32_t main_stack, uint32_t wait)
{
	struct sample_kind of_tasks = { .unit = UNIT_NS, .period = 1 };
	uint32_t fetch = 0, quoted = 0;
	uint16_t kind;
	int r;

	if (!tasks)
		return 0;
	if ((r = add_label(p, "task", "fetch", &fetch)) < 0 ||
	    (r = add_label(p, "task", "it's [*?] \\ $x", &quoted)) < 0 ||
	    (r = intern(p, PROFILE_TASK, &of_tasks.name)) < 0 ||
	    (r = profile_add_kind(p, &of_tasks, &kind)) < 0)
		return r;
	for (uint64_t i = 0; i < tasks && !r; i++) {
		struct sample s = { .time_ns = i * 5000000,
				    .duration_ns = 10000000,
				    .value = 10000000,
				    .stack = i % 5 ? wait : main_stack,
				    .labels = i % 5 == 4 ? quoted
					      : i % 5    ? fetch
							 : 0,
				    .kind = kind };

		r = profile_add_sample(p, &s);
	}
	return r;
}

static int fill(struct profile *p, uint64_t waits, uint64_t tasks)
{
	struct sample_kind off_cpu = { .unit = UNIT_NS, .period = 1 };
	uint32_t main_stack, work, wait, pay = 0, list = 0;
	uint16_t kind;
	int r = add_threads(p);

	if (r < 0 || (r = push(p, 0, "main", &main_stack)) < 0 ||
	    (r = push(p, main_stack, "work", &work)) < 0 ||
	    (r = push(p, main_stack, "wait", &wait)) < 0 ||
	    (r = add_label(p, "route", "/pay", &pay)) < 0 ||
	    (r = add_label(p, "route", "/list", &list)) < 0 ||
	    (r = add_label(p, "user", "u1", &list)) < 0 ||
	    (r = intern(p, "off-cpu", &off_cpu.name)) < 0 ||
	    (r = intern(p, "sched_switch", &off_cpu.event)) < 0 ||
	    (r = profile_add_kind(p, &off_cpu, &kind)) < 0)
		return r;
	for (uint64_t i = 0; i < 1000 && !r; i++) {
		struct sample s = { .time_ns = i * TICK_NS,
				    .value = 1,
				    .thread = i % 2,
				    .stack = i % 5 < 3 ? work : main_stack,
				    .labels = i < 500 ? pay : list };

		r = profile_add_sample(p, &s);
	}
	for (uint64_t i = 0; i < waits + 25 && !r; i++) {
		struct sample s = { .time_ns = i * 5000000,
				    .duration_ns = 10000000,
				    .value = 10000000,
				    .thread = i % 2,
				    .stack = i < waits ? wait : main_stack,
				    .kind = kind };

		r = profile_add_sample(p, &s);
	}
	return r ? r : add_tasks(p, tasks, main_stack, wait);
}

static int write_to(const char *path, uint64_t waits, uint64_t tasks)
{
	struct writer *w = NULL;
	struct profile *p = NULL;
	struct recording *m;
	int r = profile_new(&p);

	if (r < 0)
		return r;
	m = profile_recording(p);
	m->interval_ns = TICK_NS;
	m->rate_hz = 1000;
	m->duration_ns = 1000000000;
	m->has_ended = 1;
	if ((r = recording_set_text(&m->mode, "cpu,off-cpu")) == 0 &&
	    (r = recording_set_text(&m->event, "cpu-clock")) == 0 &&
	    (r = recording_set_text(&m->target, "shop")) == 0 && (r = fill(p, waits, tasks)) == 0 &&
	    (r = writer_open(path, p, &w)) == 0)
		r = writer_finish(w, p);
	writer_free(w);
	profile_free(p);
	return r;
}

int main(int argc, char **argv)
{
	int r;

	if (argc < 2) {
		fprintf(stderr, "usage: kinds_recording FILE [WAITS [TASKS]]\n");
		return 2;
	}
	r = write_to(argv[1], argc > 2 ? strtoull(argv[2], NULL, 10) : 100,
		     argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	if (r < 0)
		fprintf(stderr, "kinds_recording: %s\n", err_message(r));
	return r < 0;
}
