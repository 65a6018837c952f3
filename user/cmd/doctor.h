/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DOCTOR_H
#define CMD_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cmd/record.h"
#include "cmd/terminal.h"
#include "collect/features.h"
#include "profile/profile.h"
#include "target/runtime.h"

/* The parts of `pyebpf doctor`; its option table is in doctor.c. */

/*
 * Prints what this machine allows: the table of collect/features.h, and which Pythons run. Returns
 * 1 if recording is possible, 0 if not, or a negative errno.
 */
int doctor_machine(const struct terminal *t, struct feature_probe *probe);
int doctor_machine_json(struct json *j, struct feature_probe *probe);

/*
 * What `record -e` can name on this machine, a line each. 0, or a negative errno with a message:
 * tracepoints cannot be listed.
 */
int doctor_events(const struct terminal *t);
int doctor_events_json(struct json *j);

/* What is known of one process before anything is recorded. Texts are owned; 0, NULL: unknown. */
#define DUMP_WAY_BYTES 320

struct doctor_process {
	pid_t pid;
	pid_t own_pid; /* in its own PID namespace */
	char *comm, *program, *command_line, *root;
	bool is_deleted; /* the program's file */
	bool has_other_pids, has_other_mounts;
	size_t threads;
	uint64_t build_id_bytes;
	uint8_t build_id[64];

	bool has_runtime; /* the rest is filled in */
	struct py_runtime runtime;
	bool is_shared, is_debug, is_mapping_deleted;
	const char *found_by; /* "symbol _PyRuntime", ... */
	const char *layout;   /* where the offsets come from */
	const char *tstate;   /* how the thread state of a thread is found */
	const char *jit;      /* what its JIT makes of lines; NULL: none is at work */
	bool has_lists;       /* the next two are known */
	size_t interpreters, thread_states;
	char dump_way[DUMP_WAY_BYTES]; /* how `dump` reads its threads */
};

/*
 * Fills in *out, to be released in any case. Returns 0, or what runtime_find() says; then what is
 * known without an interpreter is there all the same. -ESRCH, -ENOENT for what is no process.
 */
int doctor_process_look(pid_t pid, struct doctor_process *out);
void doctor_process_release(struct doctor_process *p);

int doctor_process_print(const struct terminal *t, const struct doctor_process *p);
void doctor_process_json(struct json *j, const struct doctor_process *p);

/* One sample of a process. Starts as { 0 }, ends in doctor_stack_release(). */
struct doctor_stack {
	struct profile *profile; /* holds the sample, if there was one */
	uint64_t wait_ns;        /* until it came, or all in all */
	uint64_t load_ns;        /* until the programs were loaded and the events open */
	uint64_t ticks;          /* that found the process on a CPU */
};

/*
 * Records the process until its first sample, for a second at most. Returns 1, or 0 if none came;
 * errors as of recorder_open() and recorder_aim().
 */
int doctor_stack_record(pid_t pid, const struct kernel_opts *kernel, struct doctor_stack *out);
void doctor_stack_release(struct doctor_stack *s);

int doctor_stack_print(const struct terminal *t, const struct doctor_stack *s);
void doctor_stack_json(struct json *j, const struct doctor_stack *s);

#endif
