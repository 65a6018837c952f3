/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_PIPELINE_H
#define COLLECT_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collect/discover.h"
#include "collect/session.h"
#include "profile/profile.h"

/*
 * Ring records -> a profile: names and line tables go to a code table, samples to p->samples with
 * their stacks interned. A sample whose code objects are not all known yet waits for them, for two
 * seconds at most. Every record is checked like foreign bytes.
 */
struct pipeline;

/* All three are borrowed and must outlive the pipeline. start_ns: CLOCK_MONOTONIC, time 0. */
int pipeline_new(struct session *session, struct discovery *discovery, struct profile *profile,
		 uint64_t start_ns, struct pipeline **out);
void pipeline_free(struct pipeline *p);
DEFINE_CLEANUP(struct pipeline *, pipeline_free)

/*
 * A session_record_fn; arg is the pipeline. It touches no target: what it takes a look to know is
 * asked of the discovery. -ENOMEM is its only error.
 */
int pipeline_record(void *arg, const void *record, size_t size);

/*
 * Takes the answers of discovery, and up the samples that waited for them. To be called whenever
 * the ring was emptied. 0, or a negative errno with a message.
 */
int pipeline_step(struct pipeline *p);

/*
 * Takes up the samples that wait; is_last: with "<unknown>" for what never came, and a while after
 * it was asked for. Call before the profile's samples are written.
 */
int pipeline_settle(struct pipeline *p, uint64_t now_ns, bool is_last);

/*
 * Forgets all ids: after profile_reset(). Processes that are gone, and programs that ran before an
 * exec, are forgotten altogether, with their threads and code objects; not where samples still
 * wait. 0, or a negative errno with a message.
 */
int pipeline_forget_ids(struct pipeline *p);

/* Another time 0, CLOCK_MONOTONIC. Samples that waited from before it get time 0. */
void pipeline_set_start(struct pipeline *p, uint64_t start_ns);

/* What user space adds to the counters of the kernel. */
struct pipeline_stats {
	uint64_t samples;
	uint64_t processes; /* met, exited ones included */
	uint64_t contained; /* those of them in a container or pod */
	uint64_t weight;
	uint64_t unnamed;   /* samples with a frame that never got its name */
	uint64_t waiting;   /* now */
	uint64_t malformed; /* records we could not read: a bug */
	uint64_t refused;   /* looks at targets: too many, or too much of one */
	/* By source, as its counters count: of processes that were not identified then. Now
	 * samples outside Python; without Python. */
	uint64_t found_outside[SOURCE_COUNT_], found_other[SOURCE_COUNT_];
};
const struct pipeline_stats *pipeline_stats(const struct pipeline *p);

/*
 * Bytes of the tables that grow: code objects, processes with their threads, samples that wait. And
 * how many questions about targets waited at most since the last call.
 */
#define PIPELINE_USAGES 4
void pipeline_usage(const struct pipeline *p, struct usage out[PIPELINE_USAGES]);

#endif
