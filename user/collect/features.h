/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_FEATURES_H
#define COLLECT_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/kernel_types.h"

/* What is looked for in the kernel's types, in one go: functions, but for what is said. */
enum kernel_function {
	KERNEL_ITER_TASK,
	KERNEL_TASK_WORK,      /* Linux 7.0 */
	KERNEL_TASK_WORK_IMPL, /* 6.18; from 7.0 on not for programs */
	/* Tracepoints, as programs have them. */
	KERNEL_SCHED_SWITCH,
	KERNEL_SCHED_EXIT, /* Linux 6.16 */
	KERNEL_SCHED_FORK,
	KERNEL_SCHED_FREE,
	KERNEL_SCHED_MIGRATE,
	KERNEL_COPY_FROM_TASK, /* Linux 5.18 */
	KERNEL_RDONLY_CAST,    /* Linux 6.2 */
	KERNEL_PT_REGS,        /* a struct */
	KERNEL_TASK,           /* likewise */
	KERNEL_ARGUMENT_TAGS,  /* an enum: Linux 6.9 */
	KERNEL_RSS_STAT,
	KERNEL_RSS_BATCH, /* a struct: until Linux 6.1 */
	KERNEL_MEM_ALLOC, /* a struct: Linux 6.1 */
	KERNEL_FUNCTIONS
};

/*
 * What this kernel, these permissions and this machine allow: the one table of it. session_open()
 * refuses by it, `pyebpf doctor` prints it.
 */
enum feature_state {
	FEATURE_OK,
	FEATURE_LIMITED, /* recording works, but for what the row's problem says */
	FEATURE_MISSING,
	FEATURE_UNKNOWN, /* cannot be told: another row that fails says why */
};

/* "ok", "limited", "missing", "unknown". */
const char *feature_state_name(enum feature_state state);

#define FEATURE_FOUND_BYTES 128

/* What probes share. Starts as { 0 }, ends in feature_probe_release(). */
struct feature_probe {
	char found[FEATURE_FOUND_BYTES]; /* what the last one saw, "" if its state says it all */
	bool is_old;                     /* session_opts.old_kernel */
	const char *btf;                 /* file of the kernel's types; NULL: its own */
	struct kernel_types *types;      /* from the first probe that wants them, and with them */
	struct kernel_type functions[KERNEL_FUNCTIONS];
};

/* One row a feature, in the order in which they are worth mending: a row that fails can make the
 * ones behind it fail too. */
struct feature {
	const char *name;    /* "BTF", "CAP_BPF", ...: does not change between versions */
	const char *problem; /* what it means if it is not ok, a clause */
	const char *remedy;  /* what to type or change, a clause */
	int refusal; /* of session_open() if it is missing: -EPERM or -EOPNOTSUPP; 0: none */
	enum feature_state (*probe)(struct feature_probe *p);
};

extern const struct feature features[];
extern const int features_count;

/* Runs one row's probe. p->found is valid until the next. */
enum feature_state feature_run(const struct feature *f, struct feature_probe *p);
void feature_probe_release(struct feature_probe *p);

/*
 * 0, or the refusal of the first row that is missing and has one, with a message that says what is
 * wrong and what to do.
 */
int features_check(struct feature_probe *p);

/* May we open fewer files than a recording needs? */
bool feature_has_few_files(void);

/* Reads p->types and p->functions, if that was not done before. Errors as kernel_types_open(). */
int feature_kernel_types(struct feature_probe *p);

/*
 * Does it lack what came up to Linux 5.17 and all programs but sample_old take: bpf_loop(),
 * bpf_find_vma(), bpf_task_pt_regs()? Or is it taken for one that does: is_old, btf?
 */
bool feature_is_old(struct feature_probe *p);

/* Can time off the CPU be recorded at all? */
bool feature_switches(const struct feature_probe *p);

/* Does a map take memory for a row when that is made, also by programs that interrupt? Else the map
 * has all of it from the start. */
bool feature_growing_maps(const struct feature_probe *p);

/* Rows of the table of processes, where there are so many processes now. */
uint32_t feature_process_rows(const struct feature_probe *p, size_t processes);

/* Can the memory of a thread that waits be read? */
bool feature_remote_memory(const struct feature_probe *p);

/* Do threads tell the kernel of their pages 64 at a time (TASK_RSS_EVENTS_THRESH of mm/memory.c)?
 */
bool feature_rss_batches(const struct feature_probe *p);

/* Can spans of waiting be sampled when they end, by the thread that has come back? */
bool feature_exit_hook(const struct feature_probe *p);

/* The id of the kernel's function that queues task work from a BPF program; 0: it has none. */
uint32_t feature_task_work(const struct feature_probe *p);

/* Of the one that has a program read a struct at any address. */
uint32_t feature_rdonly_cast(const struct feature_probe *p);

/* Does the verifier take global functions whose parameter is a task? */
bool feature_task_arguments(const struct feature_probe *p);

#endif
