/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_MODEL_H
#define CMD_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "profile/select.h"

/*
 * What `top` shows: the time of threads, summed by stack, thread, kind and labels, over the last
 * seconds and since the start. Knows no terminal and no clock. Samples come a slice of time after
 * the other, from a profile that is emptied now and then; the model has tables of its own, and what
 * it holds grows with the variety of what runs. Beyond TOP_BYTES_MAX it begins anew.
 */
#define TOP_BYTES_MAX (64u << 20)

struct top_model;

/* window_ns: of TOP_LAST. 0 or -ENOMEM, as all that follow. */
int top_model_new(uint64_t window_ns, struct top_model **out);
void top_model_free(struct top_model *m);
DEFINE_CLEANUP(struct top_model *, top_model_free)

/* What was counted, of a slice of time or of several. */
struct top_counts {
	uint64_t samples;
	uint64_t lost, lost_wait_ns;              /* ticks; time of waiting */
	uint64_t ticks, idle_ticks, python_ticks; /* of all CPUs */
	uint64_t own_ns, sampler_ns;              /* CPU time of ours, and of the kernel's for us */
};

/*
 * A slice of time ends (CLOCK_MONOTONIC): the samples that p holds now are what has come to light
 * of it, and of earlier ones. The first one begins with p's recording.
 */
int top_model_add(struct top_model *m, const struct profile *p, uint64_t now_ns,
		  const struct top_counts *counts);

/*
 * While it is held, what is shown stays as it is, and what comes is kept: it counts since the start
 * as soon as it is let go, and the last seconds begin anew then.
 */
void top_model_hold(struct top_model *m, bool is_held);

/* The tables of p were emptied. */
void top_model_forget_ids(struct top_model *m);

/* All begins anew, at that time. */
int top_model_reset(struct top_model *m, uint64_t now_ns);

/* Counts how often all begins anew: ids of before mean nothing then. */
uint32_t top_model_generation(const struct top_model *m);

/* Which samples are shown. Borrows the patterns until the next one. */
void top_model_select(struct top_model *m, const struct select_query *q);

/* One thread, one process, the tasks of one name of those. */
#define TOP_NONE UINT32_MAX
struct top_scope {
	uint32_t process; /* index; TOP_NONE: all */
	uint32_t tid;     /* of that process; 0: all */
	uint32_t task; /* string that they are called by; 0: all, and what is in none. Where one is
			  asked for task time is waiting */
};

enum top_span { TOP_LAST, TOP_SINCE_START };
#define TOP_SPANS 2

enum top_table { TOP_PROCESSES, TOP_THREADS, TOP_FUNCTIONS, TOP_TASKS };

/*
 * CPU time in the function itself; also in what it calls; what it waited itself; of that for the
 * GIL. Of threads, processes and tasks the first two are the same; that a task waited is time of
 * its own, which threads do not have.
 */
enum top_column { TOP_SELF, TOP_TOTAL, TOP_WAIT, TOP_GIL };
#define TOP_COLUMNS 4

struct top_row {
	uint32_t id; /* index of a process, or of a thread's newest entry; of a function a frame; of
			tasks the string that they are called by */
	uint64_t ns[TOP_COLUMNS];
	uint32_t threads;   /* of a process: how many had time */
	uint32_t mostly;    /* of threads and processes: a frame of the function in which they had
			       most of the column's time; of all, where they had none of that */
	uint32_t waits_for; /* string id of the marker that they waited for most; 0: none */
};

struct top_wait {
	uint32_t marker; /* string id; 0: not known */
	uint64_t ns;
};

struct top_sums {
	VEC(struct top_row) rows;   /* of one table, in no order */
	VEC(struct top_wait) waits; /* largest first */
	uint64_t ns[TOP_COLUMNS];   /* of all threads */
	uint64_t span_ns;
	uint64_t threads, processes;
	struct top_counts counts;
	bool has_waits; /* spans of waiting were recorded */
};
void top_sums_release(struct top_sums *s);

/* *out is zeros, or of an earlier call. -EOVERFLOW, too. */
int top_model_sum(struct top_model *m, enum top_span span, enum top_table table,
		  enum top_column column, const struct top_scope *scope, struct top_sums *out);

/* Time in a function and what it calls, by what called it, or by its lines. */
struct top_part {
	uint32_t frame; /* TOP_NONE: nothing called it */
	uint64_t cpu_ns, wait_ns;
};

struct top_parts {
	struct top_part *items; /* a VEC, largest first */
	size_t len, cap;
};

/* One function, by what top_model_sum() summed last. */
struct top_detail {
	struct top_parts callers, lines;
	VEC(uint32_t) stack; /* the one with most time in it: frames, root first */
	uint64_t stack_ns, all_ns;
};
void top_detail_release(struct top_detail *d);
int top_model_look(struct top_model *m, uint32_t frame, struct top_detail *out);

/* The tables that all ids are of; borrowed until the next top_model_add(). */
const struct profile *top_model_profile(const struct top_model *m);

/* Orders by a column, the largest first. */
void top_sort(struct top_row *rows, size_t count, enum top_column column);

#endif
