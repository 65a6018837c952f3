/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SESSION_H
#define COLLECT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/events.h"
#include "collect/context_labels.h"
#include "collect/usage.h"
#include "target/cgroup.h"
#include "target/pid_namespace.h"

/*
 * The kernel side of a recording: the loaded BPF programs, their maps and the perf events that
 * drive them. Nothing runs before session_start() and nothing is left behind by session_free().
 */
struct session;

/* What is recorded of the threads. */
enum session_mode {
	MODE_CPU = 1 << 0,       /* ticks of CPU time */
	MODE_OFF_CPU = 1 << 1,   /* spans of waiting, and what each thread's times sum up to */
	MODE_GIL = 1 << 2,       /* of ticks those that hold the GIL alone */
	MODE_EXCEPTION = 1 << 3, /* those that handle an exception alone */
	MODE_MEMORY = 1 << 4,    /* growth of resident memory */
	MODE_EVENTS = 1 << 5,    /* perf events that the user names */
};
#define MODE_WALL (MODE_CPU | MODE_OFF_CPU)

struct session_opts {
	unsigned int modes;  /* enum session_mode; 0: MODE_CPU */
	uint32_t freq_hz;    /* 1 .. 100,000 */
	bool is_system_wide; /* every process; else those whose row says is_target */
	bool follow_children;
	bool has_opcodes;  /* samples carry the instruction of their leaf frame */
	bool no_exit_hook; /* spans are sampled when they begin, as before 6.16 */
	bool no_slots;     /* the times of all threads are where they are before 6.18 */
	bool has_native;   /* stacks show where Python code called C, and C called it */
	bool has_async;    /* samples tell which task of asyncio they are in */
	bool no_gc;        /* they do not show where the collector runs */
	bool no_task_work; /* missing pages are not read in by the thread itself, as before 6.18 */
	bool old_kernel;   /* ticks are taken as before 5.17: by sample_old */
	/* File with the kernel's types, for one that does not tell of them itself, by sample_old
	 * and without iterators; NULL: that of the kernel. Borrowed. */
	const char *btf;
	/*
	 * Only tasks in this cgroup or below it; NULL: anywhere. Borrowed until session_free(). Of
	 * version 2 the kernel knows who is in it, of version 1 the rows say so.
	 */
	const struct cgroup *cgroup;
	/* Only tasks of this PID namespace or of those inside it; NULL: of any. Borrowed. */
	const struct pid_namespace *pid_namespace;
	/* Of samples, beside those that they have anyway: NULL or borrowed until session_free(). */
	const struct context_label_list *labels;
	/* MODE_EVENTS, MODE_MEMORY: borrowed until session_free(). */
	const struct event_list *events;
	size_t ring_bytes; /* power of two, >= 64 KiB */
	/* The CPUs that tick; cpu_count 0: all. Borrowed until session_attach() has returned. */
	const uint32_t *cpus;
	size_t cpu_count;
};

/*
 * Loads the programs. In a PID namespace of our own all PIDs are those that it has, and only its
 * processes are recorded; /proc must be its own then. -EPERM or -EOPNOTSUPP with the missing
 * capability or kernel feature and what to do about it.
 */
int session_open(const struct session_opts *opts, struct session **out);
void session_free(struct session *s);
DEFINE_CLEANUP(struct session *, session_free)

/*
 * Opens an event a CPU (collect/ticker.h), which run but count for nothing: the earlier this is
 * done, the less session_start() waits.
 */
int session_attach(struct session *s);

int session_start(struct session *s);

/* Returns since when nothing is recorded any more, CLOCK_MONOTONIC. The times of threads end then.
 */
uint64_t session_stop(struct session *s);

/* To be called now and then: CPUs that come online get an event. Needs what session_attach() needs
 * if there are any. 0, or a negative errno with a message. */
int session_follow_cpus(struct session *s);

/*
 * From now on an event comes every `stride` ticks (1 at first) and stands for so many: samples
 * carry the weight, counters count ticks. Spans of waiting are all kept from so many ticks on, and
 * so are fewer of the shorter ones. May be called while they run.
 */
int session_set_stride(struct session *s, uint32_t stride);

/* An interpreter build. Returns its index (the same for equal offsets), -ENOSPC past LAYOUTS_MAX.
 */
int session_add_layout(struct session *s, const struct py_offsets *off);

/* Creates or replaces the row of a file; a full map is emptied first. session_find_binary():
 * -ENOENT if there is none. */
int session_add_binary(struct session *s, const struct binary_key *key,
		       const struct binary_row *row);
int session_find_binary(struct session *s, const struct binary_key *key, struct binary_row *row);

/* Creates or replaces the row of a process. */
int session_add_process(struct session *s, uint32_t pid, const struct proc_row *row);

/* Where threads of a process say what context they are in; process 0: nowhere. */
int session_set_thread_context(struct session *s, uint32_t pid,
			       const struct thread_context_row *row);

/* -ENOENT if it has none. */
int session_find_process(struct session *s, uint32_t pid, struct proc_row *row);

/* Forgets it: where there is a filter it is no target any more. */
void session_remove_process(struct session *s, uint32_t pid);

/* Rows that found no room in the table of processes so far. For any thread. */
uint64_t session_rows_refused(const struct session *s);

/* Where a process has its asyncio; NULL: it has none any more. 0, or a negative errno: the map is
 * full. */
int session_set_asyncio(struct session *s, uint32_t pid, const struct asyncio_row *row);

/* Do rows say who is recorded (is_target)? */
bool session_has_filter(const struct session *s);

/* How many processes have got a row with a Python so far. */
uint64_t session_pythons_begun(const struct session *s);

/* Appends the PIDs of all rows to out. 0, or a negative errno with a message. */
int session_list_processes(struct session *s, struct pids *out);

/* The same of the rows of those that are recorded. */
int session_list_recorded(struct session *s, struct pids *out);

/*
 * Calls fn for every process, with its exact start time and exec count. Stops at fn's first
 * negative result and returns it.
 */
int session_list_tasks(struct session *s, int (*fn)(const struct task_record *r, void *arg),
		       void *arg);

/* The same of one process. -ESRCH if there is none. */
int session_find_task(struct session *s, uint32_t pid, struct task_record *out);

/* Is the process, by its identity, still there, and has it begun no other program since? */
bool session_still_runs(struct session *s, uint32_t pid, uint64_t process);

/*
 * Calls fn with the times, so far, of every thread that lives and whose times are recorded: none
 * where no spans are. Stops at fn's first negative result and returns it. Those of threads that
 * have ended come as records in the ring.
 */
int session_list_thread_times(struct session *s,
			      int (*fn)(const struct thread_times_event *e, void *arg), void *arg);

/*
 * Hands the records in the ring to fn, waiting up to timeout_ms for the first; the ring is woken
 * when a quarter is full, so a caller polls about every 50 ms. fn's first negative result ends it,
 * and so do 100 ms: where records come faster than they are worked off, the caller has its turn all
 * the same. Returns the number of records.
 */
typedef int (*session_record_fn)(void *arg, const void *record, size_t size);
int session_consume(struct session *s, int timeout_ms, session_record_fn fn, void *arg);

/* After session_stop(): all that is left. 0, or fn's first negative result. */
int session_drain(struct session *s, session_record_fn fn, void *arg);

/* A descriptor that becomes readable when the ring wants to be emptied. */
int session_poll_fd(const struct session *s);

/* Is it one that a session with these options records by? */
bool session_opts_have_source(const struct session_opts *opts, enum sample_source source);

/* Is it one that this session records by? */
bool session_has_source(const struct session *s, enum sample_source source);

/*
 * Ends the spans of all threads that wait at that moment (CLOCK_MONOTONIC, just now), and begins
 * new ones: their samples go into the ring. Before a part of the recording ends, before
 * session_stop(), and behind it at its moment. Takes some 25 us a thread, and as long as their
 * pages are waited for. 1: the ring is too full, to be emptied and called again.
 */
int session_close_spans(struct session *s, uint64_t at_ns);

/*
 * Looks at threads that do not switch, where spans of waiting are recorded; to be called often, by
 * the thread that consumes. Those of processes that session_add_process() added are in the
 * recording from then on, running or waiting. Of each that has waited for 100 ms, or 20 ms where a
 * process has begun within a second, a sample is taken, once: as its process ends, a thread's
 * Python may be gone before it wakes up. What it stands for its end says. Waits 5 ms at most for a
 * pass over the threads, which may take longer: their pages are waited for. A process whose memory
 * does not answer within 1.5 s is named in a warning, and looked at no more. 0, or a negative errno
 * with a message.
 */
int session_visit_threads(struct session *s);

/* How long may be waited until the next visit: max_ms at most. */
int session_patience(struct session *s, int max_ms);

/* By its number, as samples have it; NULL: the session has none of that. Borrowed. */
const struct event *session_event(const struct session *s, uint32_t number);

/* What was counted of a source: sums over the CPUs. 0, or a negative errno with a message. */
int session_stats(struct session *s, enum sample_source source, uint64_t stats[STAT_COUNT_]);

/* After session_stop(): what of a source still waits for its threads to come back from the kernel,
 * as its counters count. It is lost. */
uint64_t session_pending(const struct session *s, enum sample_source source);

/* What a tick stands for, ns; 0: there are none. */
uint64_t session_interval_ns(const struct session *s);

/*
 * CPU time of all targets since session_start(), as the scheduler counts it, threads that have
 * ended included; 0: not known, where everything is recorded. May go through all tasks. 0, or a
 * negative errno with a message.
 */
int session_cpu_time(struct session *s, uint64_t *ns);

/*
 * Ticks the events must have made since session_start(). What is above the sum of the tick counters
 * was dropped by the kernel before it reached us.
 */
uint64_t session_expected_ticks(struct session *s);

/* Ticks that are missing at most, of CPUs that came online and had no event yet. */
uint64_t session_unwatched_ticks(struct session *s);

/* Likewise, on CPUs that are not among opts.cpus. */
uint64_t session_left_out_ticks(struct session *s);

/*
 * How full the maps are, by their names in bpf/README.md. The ring's is the most that was taken out
 * of it at once since the last call, in bytes; lossy caches fill up in the course of time and lose
 * nothing but time then. Costs less than a millisecond.
 */
#define SESSION_USAGES 8
int session_usage(struct session *s, struct usage out[SESSION_USAGES]);

/* Has the kernel send every name and line table again. */
void session_resend(struct session *s);

/* Has the names and lines of a code object sent again with the next sample that has it. */
void session_resend_code(struct session *s, uint64_t identity);

#endif
