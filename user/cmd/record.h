/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_RECORD_H
#define CMD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/launch.h"
#include "cmd/record_files.h"
#include "collect/recorder.h"
#include "target/cgroup.h"
#include "target/proc.h"

/* The parts of `pyebpf record`; its options and exit codes are in record.c. */

enum record_async { ASYNC_NONE, ASYNC_TASKS, ASYNC_LOOP };

/* What the kernel is taken for, of every command that samples: collect/session.h. */
struct kernel_opts {
	bool is_old;
	const char *btf; /* NULL: the kernel tells of its types itself */
};

/* clang-format off */
#define KERNEL_OPTIONS(k)                                                                          \
	OPT_FLAG(0, "old-kernel", &(k)->is_old,                                                    \
		 "use the sampler for kernels before Linux 5.17"),                       \
	OPT_STR(0, "btf", &(k)->btf, "FILE",                                                       \
		"read the kernel's BTF from FILE, if it was built without (implies "               \
		"--old-kernel)")
/* clang-format on */

struct record_opts {
	struct opt_u32_list pids;
	bool all;
	const char *cgroup, *container; /* at most one of the two */
	uint64_t duration_ns;
	uint32_t freq_hz;
	struct opt_u32_list cpus; /* that tick; none: all */
	unsigned int mode_words;  /* of --mode: bits, collect/modes.h; 0: none is given */
	bool no_children;
	bool has_opcodes, has_native, no_gc;
	struct opt_list event_names; /* -e */
	uint64_t period;             /* -c; 0: as each event has it */
	unsigned int modes;          /* enum session_mode, by --mode and -e */
	bool can_do_without_waits; /* of the modes that of waiting is left out where it has to be */
	struct event_list events;
	struct opt_list label_texts; /* --label */
	unsigned int async;          /* enum record_async */
	struct context_label_list labels;
	struct record_outputs outputs;
	uint64_t ring_bytes;
	bool no_task_work;
	struct kernel_opts kernel;
	struct opt_list bases, diff_outputs; /* --diff */
	struct import_choice choice;         /* of the bases */
	uint64_t max_memory_bytes;           /* of the comparison; 0: the default */
};

/* Whom: what the options say, and the COMMAND if there is one. */
struct record_targets {
	const struct record_opts *o;
	const struct operands *command;
	struct launch launch; /* of the COMMAND */
	struct cgroup cgroup; /* of --cgroup or --container */
	struct pids pids;     /* of -p, or the COMMAND's */
	int *pid_fds;         /* one each; -1: it has exited. NULL: not watched yet */
};

static inline bool record_targets_has_command(const struct record_targets *t)
{
	return t->command->len > 0;
}

/* Could a process be recorded that is not the user's to whom the output belongs? */
bool record_targets_have_others(const struct record_targets *t);

static inline bool record_targets_has_cgroup(const struct record_targets *t)
{
	return t->o->cgroup || t->o->container;
}

/* clang-format off */
#define RECORD_TARGET_OPTIONS(o)                                                                   \
	OPT_U32_LIST('p', "pid", &(o)->pids, "PID", "record these processes and their children",         \
		     .min = 1, .max = 1 << 22),                                                    \
	OPT_FLAG('a', "all", &(o)->all, "record all Python processes of the machine"),                           \
	OPT_STR(0, "cgroup", &(o)->cgroup, "PATH",                                                 \
		"record all processes in this cgroup and below"),                   \
	OPT_STR(0, "container", &(o)->container, "ID",                                             \
		"record this container (id, first 12 digits or more)"),                  \
	OPT_FLAG(0, "no-children", &(o)->no_children, "do not record child processes")
/* clang-format on */

/* One of them, and no process twice: EXIT_OK, or EXIT_USAGE with a message. */
int record_targets_check(const struct call *call, const struct record_opts *o);

/* The cgroup is found, the COMMAND waits to be let go. A negative errno with a message. */
int record_targets_prepare(struct record_targets *t);

/* Has record_targets_are_gone() know when they have exited. A negative errno with a message. */
int record_targets_watch(struct record_targets *t);

/* Have all of them exited? A cgroup can have others until it is removed. */
bool record_targets_are_gone(struct record_targets *t);

/* "pid 412, pid 413", "all processes", "container 0123456789ab", a cgroup's folder, the command. */
int record_targets_put(const struct record_targets *t, struct strbuf *out);

/* The COMMAND came to its end of itself, and not by a signal. */
bool record_targets_have_run_whole(struct record_targets *t);

void record_targets_release(struct record_targets *t);

/* cmd/stopped.h. Starts as zeros. */
struct stopped_watch {
	struct pids stopped; /* who was told of, and still is */
	struct pids found;   /* who is to be told of */
	uint64_t due_ns;     /* CLOCK_MONOTONIC: of the next look */
};

/* One use of the command. */
struct record_run {
	struct record_opts *o;
	struct record_targets targets;
	struct record_files files;
	struct recorder *recorder;
	bool is_attached; /* the kernel allows and has all that is asked for */
	struct stopped_watch stopped;
	int signal_fd;
	uint64_t sampling_ns; /* since when there are ticks: a loaded disk may take its time before
			       */
	uint64_t last_progress_ns;
	uint64_t rest_ns;  /* since when those that are left behind run no Python; 0: not so */
	bool has_progress; /* a progress line is on the terminal */
	bool has_told_of_child;
	bool should_stop;
};

/*
 * Everything up to the first tick, and the COMMAND runs. A negative errno with a message.
 *
 * record_run_aim()  the targets are found, the recorder has begun; nothing is recorded yet
 * record_run_go()   from now on there are samples, and the COMMAND runs
 */
int record_run_start(struct record_run *r);
int record_run_aim(struct record_run *r);
int record_run_go(struct record_run *r);

/* Says what failed. The exit code: what an error means depends on how far we were. */
int record_run_fail(const struct call *call, const struct record_run *r, int e);

/* Records until something ends it. A negative errno with a message. */
int record_run_loop(struct record_run *r);

/*
 * Have all processes ended that were to be recorded? 1, 0 or a negative errno. *rest: one that runs
 * Python and goes on, or 0. A child of -p is recorded further; what a COMMAND leaves behind is not.
 */
int record_run_has_ended(struct record_run *r, pid_t *rest);

/* Stops the events and writes the rest; after record_run_loop(), whatever that returned. */
int record_run_finish(struct record_run *r);

/* Waits for the COMMAND, which gets the signals that we get. A negative errno with a message. */
int record_run_await_command(struct record_run *r);

void record_run_release(struct record_run *r);

/* Says what the interpreters of a recording cannot tell of what was asked for. */
void record_warn_of_limits(const struct record_opts *o, const struct recorder *rec);

#endif
