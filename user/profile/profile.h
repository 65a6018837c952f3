/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/frametab.h"
#include "profile/kind.h"
#include "profile/labeltab.h"
#include "profile/recording.h"
#include "profile/stacktab.h"
#include "profile/strtab.h"

/*
 * What was recorded: interning tables, processes, threads, samples, counters, and what is known
 * about the recording. Fields may be read directly; they are changed by the functions below.
 */

/* Marker of a thread that runs no Python code in a process that has a Python. */
#define PROFILE_OUTSIDE_PYTHON "<outside Python>"

/* Marker of time that a thread had, as the scheduler says, and that no sample stands for. */
#define PROFILE_NOT_SAMPLED "<not sampled>"
/* Markers on top of a line: what runs there is the collector, or C that the line has called. */
#define PROFILE_GC "<GC>"
#define PROFILE_NATIVE "<native>"

/* Label of samples of threads that handle an exception; its value is "yes". */
#define PROFILE_HANDLES_EXCEPTION "handles-exception"

/* Label of samples of processes with several interpreters: the id of the one that ran. */
#define PROFILE_INTERPRETER "interpreter"

/* Label of spans of waiting: what for. */
#define PROFILE_WAIT "wait"

/* Label of samples in a task of an event loop, and kind of those of tasks that wait. */
#define PROFILE_TASK "task"

/* Labels that say which trace a sample is of: lower-case hexadecimal, of 16 and of 8 bytes. */
#define PROFILE_TRACE_ID "trace_id"
#define PROFILE_SPAN_ID "span_id"
#define PROFILE_TRACE_ID_BYTES 16
#define PROFILE_SPAN_ID_BYTES 8

/* Stands for a stack without frames where one is shown. */
#define PROFILE_NO_FRAMES "<unknown>"

struct process {
	uint32_t recording; /* index */
	uint32_t pid;       /* initial pid namespace */
	uint32_t ns_pid;    /* in its own namespace; 0: unknown */
	uint32_t ppid;
	uint32_t name;           /* string ids from here on; 0 (""): unknown */
	uint32_t command_line;   /* arguments joined by spaces */
	uint32_t python_version; /* "3.12.4" */
	uint32_t implementation; /* "CPython", "CPython free-threaded" */
	uint32_t executable;     /* path */
	uint32_t container;      /* id */
	uint32_t pod_uid;        /* of Kubernetes */
	uint32_t pod_name, pod_namespace;
	uint64_t start_ns;     /* CLOCK_BOOTTIME */
	uint32_t same, number; /* set by profile_add_process(): see struct thread */
};

/* A process has another name and command line than its entry had before. */
struct process_title {
	uint32_t process;            /* index */
	uint32_t name, command_line; /* before: string ids */
};

#define PROCESS_TITLES_MAX 65536

/* A thread that changes its name gets a second entry. */
struct thread {
	uint32_t process;  /* index */
	uint32_t tid;      /* initial pid namespace */
	uint32_t name;     /* string id */
	uint64_t start_ns; /* CLOCK_BOOTTIME: TIDs come again; 0: unknown */

	/*
	 * Set by profile_add_thread(): index of the first one that differs from it in the recording
	 * only, as where one recorder wrote several files. Who tells threads apart shows that one;
	 * its number counts those that are shown.
	 */
	uint32_t same, number;
};

/* The numbers are those of the file format. */
enum sample_bits {
	SAMPLE_BIT_HOLDS_GIL = 1 << 0,
	SAMPLE_BIT_TRUNCATED = 1 << 1,    /* deeper than the sampler goes: leaf end kept */
	SAMPLE_BIT_FAULT = 1 << 2,        /* a page was missing: leaf end kept */
	SAMPLE_BIT_CUT = 1 << 3,          /* the chain ends in a frame that is no entry frame */
	SAMPLE_BIT_AMBIGUOUS = 1 << 4,    /* several thread states: the likeliest one */
	SAMPLE_BIT_WEIGHTED = 1 << 5,     /* stands for several ticks */
	SAMPLE_BIT_APPROX_LINES = 1 << 6, /* some frame's line is approximate */
	SAMPLE_BIT_TASK_WORK = 1 << 7,    /* walked in the thread's own context */
	SAMPLE_BIT_KERNEL = 1 << 8,       /* interrupted in kernel mode */
	SAMPLE_BIT_EPISODE = 1 << 9,      /* a span that begins an episode of waiting for the GIL */
};

struct sample {
	uint64_t time_ns;     /* CLOCK_MONOTONIC since the recording's start; < 2^63 */
	uint64_t duration_ns; /* of a span, which begins then; 0: a moment */
	uint64_t value;       /* in periods of its kind, >= 1; ticks are UINT32_MAX at most */
	uint32_t thread;      /* index */
	uint32_t stack;       /* stack id */
	uint32_t labels;      /* set id */
	uint16_t cpu;
	uint16_t flags; /* enum sample_bits */
	uint16_t kind;  /* KIND_TICKS, or 1 + index of the profile's kinds */
	uint16_t gil; /* which one of its process it waits for, or others do: from 1; 0: unknown */
	uint32_t opcode; /* string id: the instruction its leaf frame was at; 0: not recorded */
};

/* Where a span ends; of a moment its time. Durations are a file's word: no time is beyond this one.
 */
#define SAMPLE_TIME_MAX ((uint64_t)INT64_MAX)
static inline uint64_t sample_end_ns(const struct sample *s)
{
	return s->duration_ns < SAMPLE_TIME_MAX - s->time_ns ? s->time_ns + s->duration_ns
							     : SAMPLE_TIME_MAX;
}

/*
 * What of a span's value is before a time: it lies evenly over the span. Rounded down, so that the
 * differences of any cuts add up to the value.
 */
static inline uint64_t sample_value_until(const struct sample *s, uint64_t ns)
{
	if (ns >= sample_end_ns(s))
		return s->value;
	if (ns <= s->time_ns)
		return 0;
	return (uint64_t)((unsigned __int128)s->value * (ns - s->time_ns) / s->duration_ns);
}

/*
 * A source file as the recorder read it with the rights of a process that runs its code. A file has
 * a row for each version, and one without a digest for each process that could not read it.
 */
struct source_version {
	uint32_t recording; /* index */
	uint32_t file;      /* string id of its path */
	uint64_t digest;    /* base/digest.h; 0: the process could not read it */
};

/* The facts that module.h reads in a text. Zeros: not read yet. */
struct string_facts {
	uint32_t library_root; /* as a path: bytes of it */
	uint8_t file_origin;   /* as a path: enum origin of Python code in it */
	uint8_t name_origin;   /* as the name of a function without a file: enum origin */
	bool is_known;
};

struct profile {
	struct strtab *strings;
	struct frametab *frames;
	struct stacktab *stacks;
	struct labeltab *labels;
	VEC(struct sample_kind) kinds;
	VEC(struct process) processes;
	VEC(struct process_title) titles; /* PROCESS_TITLES_MAX at most, in the order they came */
	VEC(struct thread) threads;
	VEC(struct source_version) sources;
	VEC(struct sample) samples;       /* in no order of time */
	VEC(struct recording) recordings; /* at least one */
	bool has_begun;                   /* the first one: see profile_begin_recording() */
	struct profile_maps *maps;
};

int profile_new(struct profile **out);
void profile_free(struct profile *p);
DEFINE_CLEANUP(struct profile *, profile_free)

/* The first recording: the only one of a profile that is being recorded. */
static inline struct recording *profile_recording(const struct profile *p)
{
	return p->recordings.items;
}

/*
 * A further recording joins those of p. The first call gives the one that is there from the start,
 * of which nothing is known yet. 0 and *index, -ENOMEM, -EOVERFLOW.
 */
int profile_begin_recording(struct profile *p, uint32_t *index);

/*
 * The facts of all recordings together, for who takes them as one: the first one's, but durations
 * and work add up (work is unknown if that of one is), all have ended, one of sums makes it sums.
 * Texts are borrowed, and there are no counters.
 */
struct recording profile_facts(const struct profile *p);

/*
 * Interned over all fields, but for where a process runs: there the first word stands. Return 0
 * and *index, or -ENOMEM, -EOVERFLOW with *index untouched. The strings must be in p->strings,
 * t->process below p->processes.len.
 */
int profile_add_process(struct profile *p, const struct process *process, uint32_t *index);
int profile_add_thread(struct profile *p, const struct thread *t, uint32_t *index);

/*
 * A process of the only recording has another title than was known, as have its samples: its name
 * and its command line, a string id. 0 or -ENOMEM.
 */
int profile_title_process(struct profile *p, uint32_t index, uint32_t title);

/* A thread has another name than was known, as have its samples. 0 or -ENOMEM. */
int profile_name_thread(struct profile *p, uint32_t index, uint32_t name);

/*
 * How many are told apart, whatever recording they are of. A thread of several names is one; a
 * process that began another program is one more.
 */
size_t profile_count_processes(const struct profile *p);
size_t profile_count_threads(const struct profile *p);

/*
 * The place where the facts of a string are kept, so that a long one is read once and not for each
 * row that has it. NULL without memory; else valid until the next call. Of one thread at a time.
 */
struct string_facts *profile_string_facts(const struct profile *p, uint32_t string);

/* Container and pod become those of `from`, unless they are known. */
void process_set_place(struct process *p, const struct process *from);

static inline bool process_has_place(const struct process *p)
{
	return p->container || p->pod_uid;
}

/*
 * Appends what people call the place: "NAMESPACE/POD", "pod 1f2e3d4c", "container 0123456789ab";
 * nothing where none is known. The bytes are the recording's. 0 or -ENOMEM.
 */
int process_put_place(const struct profile *p, const struct process *process, struct strbuf *out);

/* 0 or -ENOMEM. The string and the recording must be in p. */
static inline int profile_add_source(struct profile *p, const struct source_version *source)
{
	return vec_push(&p->sources, *source);
}

/* Interned over all fields. 0 and *kind, as samples have it; -ENOMEM, -EOVERFLOW (KINDS_MAX). */
int profile_add_kind(struct profile *p, const struct sample_kind *added, uint16_t *kind);

/* 0 or -ENOMEM. thread, stack, labels and kind must be in p. */
static inline int profile_add_sample(struct profile *p, const struct sample *s)
{
	return vec_push(&p->samples, *s);
}

/* The latest time of the samples that it holds; 0: there are none. */
uint64_t profile_last_ns(const struct profile *p);

/* Forgets the samples, keeps their memory and everything else: after a flush. */
void profile_clear_samples(struct profile *p);

/*
 * Empties all tables, samples included, and frees their memory; counters and metadata stay. Every
 * id handed out before is invalid, so is every borrowed string. 0, or -ENOMEM with p unchanged.
 */
int profile_reset(struct profile *p);

/* Of the first recording: recording_set_counter(). */
int profile_set_counter(struct profile *p, const char *name, uint64_t value);

/* Of all recordings together; 0 where there is none of that name. */
uint64_t profile_counter(const struct profile *p, const char *name);

/* All counters of all recordings, added to those of *sum. As recording_set_counter(). */
int profile_sum_counters(const struct profile *p, struct recording *sum);

/* Memory it holds, samples included. */
size_t profile_bytes(const struct profile *p);

#endif
