/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_PIPELINE_H
#define COLLECT_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collect/discover.h"
#include "collect/session.h"
#include "collect/task_stacks.h"
#include "collect/times.h"
#include "profile/profile.h"

/*
 * Ring records -> a profile: names and line tables go to a code table, samples to p->samples with
 * their stacks interned. A sample whose code objects are not all known yet waits for them, for two
 * seconds at most. Every record is checked like foreign bytes.
 */
struct pipeline;

struct pipeline_opts {
	uint64_t start_ns;    /* CLOCK_MONOTONIC: time 0 */
	uint64_t interval_ns; /* of ticks */
	unsigned int modes;   /* enum session_mode; MODE_OFF_CPU: all is in ns, collect/times.h */
	bool has_opcodes, has_native;            /* see struct session_opts */
	bool has_async, keeps_loop;              /* the same; the loop's frames are kept below */
	bool has_sources;                        /* digests of source files are recorded */
	bool has_filter;                         /* rows say who is recorded */
	const struct context_label_list *labels; /* the same: NULL or borrowed */
};

/* All three are borrowed and must outlive the pipeline. */
int pipeline_new(struct session *session, struct discovery *discovery, struct profile *profile,
		 const struct pipeline_opts *opts, struct pipeline **out);
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

/* How long the ring may be left alone: max_ms at most. */
int pipeline_patience(const struct pipeline *p, int max_ms);

/* Where threads' times are recorded: what is known of them, else NULL. */
struct times *pipeline_times(const struct pipeline *p);

/* What is known of tasks; NULL: they are not asked for. */
const struct task_stacks_stats *pipeline_tasks(const struct pipeline *p);

/* How long samples may wait on for what they lack. */
enum pipeline_wait {
	PIPELINE_WAITS,  /* until it is there, two seconds at most */
	PIPELINE_WRITES, /* the same, after a while for what is asked for now: the file is read next
			  */
	PIPELINE_ENDS_PART, /* a while for what is asked for now: they are of a part that ends */
	PIPELINE_ENDS,      /* the same, and what never came is "<unknown>" */
};

/* Takes up the samples that wait. Call before the profile's samples are written. */
int pipeline_settle(struct pipeline *p, uint64_t now_ns, enum pipeline_wait wait);

/*
 * Forgets all ids: after profile_reset(). Processes that are gone, and programs that ran before an
 * exec, are forgotten altogether, with their threads and code objects; not where samples still
 * wait. 0, or a negative errno with a message.
 */
int pipeline_forget_ids(struct pipeline *p);

/* Was the variable of that label met anywhere? By its number in the options. */
bool pipeline_has_met_label(const struct pipeline *p, size_t number);

/*
 * Another time 0, CLOCK_MONOTONIC. Samples that waited from before it get time 0. And when the part
 * ends, as soon as that is known: samples that begin later wait for the next one.
 */
void pipeline_set_start(struct pipeline *p, uint64_t start_ns);
void pipeline_set_end(struct pipeline *p, uint64_t end_ns);

/* What user space adds to the counters of the kernel. */
struct pipeline_stats {
	uint64_t samples;
	uint64_t processes; /* met, exited ones included */
	uint64_t contained; /* those of them in a container or pod */
	uint64_t weight;
	uint64_t unnamed;     /* samples with a frame that never got its name */
	uint64_t approximate; /* samples with a frame whose line is approximate */
	uint64_t waiting;     /* now */
	uint64_t malformed;   /* records we could not read: a bug */
	uint64_t refused;     /* looks at targets: too many, or too much of one */
	uint64_t labels_lost; /* samples whose labels were sent and lost */
	/* By source, as its counters count: of processes that were not identified then. Now
	 * samples outside Python; left out by the mode; without Python. */
	uint64_t found_outside[SOURCE_COUNT_], found_left_out[SOURCE_COUNT_],
		found_other[SOURCE_COUNT_];
};
const struct pipeline_stats *pipeline_stats(const struct pipeline *p);

/*
 * Bytes of the tables that grow: code objects, processes with their threads, samples that wait. And
 * how many questions about targets waited at most since the last call.
 */
#define PIPELINE_USAGES 4
void pipeline_usage(const struct pipeline *p, struct usage out[PIPELINE_USAGES]);

#endif
