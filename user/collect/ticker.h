/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_TICKER_H
#define COLLECT_TICKER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"

/*
 * What makes the sampler run: a cpu-clock event on each CPU that is online, whoever runs there. An
 * event of a task's own would begin with the task, so that nothing that lives for less than a
 * period were ever seen.
 *
 * The periods are random, drawn anew on each CPU at random times by a thread of the ticker's: with
 * a fixed one a loop that takes as long, or a part of it, would be met in the same place for ever.
 * The times and periods do not depend on what runs: a redraw throws away the running period, and
 * where that happened only if something had been seen, what was seen would be no fair share. On
 * average there are freq_hz ticks a second and CPU.
 */
struct ticker;

struct ticker_opts {
	uint32_t freq_hz;
	int program_fd;          /* of the sampler, a perf_event program */
	struct cpu_ticks *ticks; /* shared with the sampler: one for each possible CPU; borrowed */
	int cpus;                /* their number */
	const uint32_t *only;    /* the CPUs that tick, for ticker_new(); borrowed */
	size_t only_count;       /* 0: all of them do */
};

/*
 * Opens the events and lets them run; the sampler ignores them until ticker_start(). 0, or a
 * negative errno with a message.
 */
int ticker_new(const struct ticker_opts *opts, struct ticker **out);
void ticker_free(struct ticker *t);
DEFINE_CLEANUP(struct ticker *, ticker_free)

/*
 * Ticks count from now on. Waits first until the events have run for the longest period there is,
 * at most 100 ms: so the first moments are as likely to be met as any later ones. 0, or a negative
 * errno with a message.
 */
int ticker_start(struct ticker *t);

/* No more ticks. May be called twice. */
void ticker_stop(struct ticker *t);

/*
 * From now on an event comes every `stride` ticks (1 at first) and stands for so many. 0, or a
 * negative errno with a message.
 */
int ticker_set_stride(struct ticker *t, uint32_t stride);

/*
 * Events for CPUs that came online, none for those that went; costs little where nothing changed.
 * Opening one needs what ticker_new() needs. 0, or a negative errno with a message.
 */
int ticker_follow_cpus(struct ticker *t);

/* Ticks that the events must have made since ticker_start(): by the periods that were set. */
uint64_t ticker_expected(struct ticker *t);

/* Ticks that are missing at most, of CPUs that came online and had no event yet. */
uint64_t ticker_unwatched(struct ticker *t);

/* Likewise, of CPUs that are not among opts.only. For the thread that starts and stops it. */
uint64_t ticker_left_out(struct ticker *t);

#endif
