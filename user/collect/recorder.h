/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_RECORDER_H
#define COLLECT_RECORDER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "collect/interpreters.h"
#include "collect/pipeline.h"
#include "collect/session.h"
#include "collect/usage.h"
#include "profile/profile.h"
#include "target/proc.h"

/*
 * A recording as it is made: the BPF programs, the discovery of processes, the pipeline and the
 * profile in which samples end, wired together. In this order:
 *
 * open, attach, aim   all that it takes; nothing is recorded yet
 * begin, start        a first part of the recording, and what makes samples
 * step                again and again
 * cut, begin          as often as wanted: the profile is whole, then a next part begins
 * finish              the last part is whole
 *
 * Errors are negative errnos with a message. After one there is only finish, if it has started, for
 * what was recorded until then, and free.
 */
struct recorder;

struct recorder_opts {
	struct session_opts session; /* whom: its cgroup, else all if is_system_wide, else */
	const struct pids *pids;     /* these; borrowed until recorder_aim(), as is the command */
	bool has_sources; /* digests of source files are recorded, for reports that show them */
	bool keeps_loop;  /* of tasks (session.has_async): the frames of their loop, below them */
	const char *command; /* pids has one of our own that is about to execute it; NULL: none */
};

/* Loads the programs: errors of session_open(). */
int recorder_open(const struct recorder_opts *opts, struct recorder **out);
void recorder_free(struct recorder *rec);
DEFINE_CLEANUP(struct recorder *, recorder_free)

/* Opens the events. What follows needs fewer capabilities, but for recorder_follow_cpus(). */
int recorder_attach(struct recorder *rec);

/*
 * Finds the processes to record: errors of discovery_add_target() and the like. Where children are
 * followed, a program without Python gives a warning: a child of it may run Python later.
 */
int recorder_aim(struct recorder *rec);

/* Appends the PIDs of those that are recorded, as far as they are known. 0 or a negative errno. */
int recorder_list_processes(struct recorder *rec, struct pids *out);

/*
 * What the interpreters are called that were found in processes, one with each number from 0 on; of
 * processes without samples, too. False: there are no more. Valid until recorder_free().
 */
bool recorder_find_interpreter(const struct recorder *rec, uint32_t number,
			       struct interpreter_text *out);

/*
 * *python: a process that is recorded and runs Python; 0: none is known to. Returns 1 if any
 * process is recorded, 0 or a negative errno.
 */
int recorder_find_python(struct recorder *rec, pid_t *python);

/* After recorder_begin(): there was such a program, and no process that runs Python since. */
bool recorder_awaits_python(const struct recorder *rec);

/*
 * Begins the first part, now, or the next one where the last was cut: all tables of the profile
 * begin anew, and so do the times of samples and what is counted.
 */
int recorder_begin(struct recorder *rec);

/* From now on there are samples. */
int recorder_start(struct recorder *rec);

/*
 * Waits until there is something to do, `fd` (-1: none) is readable or max_ms are over, and does
 * it. Returns 1 once a second: then samples that waited for names are in the profile as far as
 * these have come, and it is time to write. recorder_settle() has that at once.
 */
int recorder_step(struct recorder *rec, int fd, int max_ms);
int recorder_settle(struct recorder *rec);

/*
 * Like recorder_settle(), but waits up to 200 ms for names that are asked for: the caller writes a
 * file that is read next.
 */
int recorder_settle_to_write(struct recorder *rec);

/*
 * The same, and where waiting is recorded what threads wait for at that moment is in the profile up
 * to then, and goes on as another span: for who shows what goes on. As session_close_spans(), some
 * 25 us a thread that waits.
 */
int recorder_catch_up(struct recorder *rec);

/* CPUs that come online are recorded too. To be called now and then. */
int recorder_follow_cpus(struct recorder *rec);

/* As session_set_stride(). */
int recorder_set_stride(struct recorder *rec, uint32_t stride);

/* The part ends, and recorder_profile() is all of it until recorder_begin(). */
int recorder_cut(struct recorder *rec);

/* The same for good: nothing runs any more, and samples without all their names are there too. */
int recorder_finish(struct recorder *rec);

/*
 * The part so far; borrowed. Of its facts the recorder knows what it does and where: host, command,
 * target and the environment are the caller's to add.
 */
struct profile *recorder_profile(const struct recorder *rec);

/* After recorder_finish(): it is the caller's. */
struct profile *recorder_take_profile(struct recorder *rec);

/* The tables are too large, the samples taken: all ids begin anew, and the part goes on. */
int recorder_clear(struct recorder *rec);

/* The counters of the part so far go into the profile, where recorder_cut() puts them at the end.
 */
int recorder_store_counters(struct recorder *rec);

/* Those of all parts that are over, into another profile. */
int recorder_store_total(const struct recorder *rec, struct profile *to);

/* Events that met those who are recorded, in the parts that are over. */
uint64_t recorder_target_events(const struct recorder *rec);

/* CPU time of the sampler so far. -EPERM: we may use no map. */
int recorder_read_cost(struct recorder *rec, uint64_t *ns);

/* What the threads did so far, in all parts; borrowed. NULL: not recorded. */
const struct times_sum *recorder_times(const struct recorder *rec);

/* What is known of tasks; borrowed. NULL: they are not asked for. */
const struct task_stacks_stats *recorder_tasks(const struct recorder *rec);

/* As pipeline_has_met_label(). */
bool recorder_has_met_label(const struct recorder *rec, size_t number);

/* Borrowed. */
const struct pipeline_stats *recorder_stats(const struct recorder *rec);

/* As session_usage() and pipeline_usage(). */
int recorder_usage(struct recorder *rec, struct usage maps[SESSION_USAGES],
		   struct usage tables[PIPELINE_USAGES]);

#endif
