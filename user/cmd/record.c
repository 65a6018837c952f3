/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/browser.h"
#include "cmd/diff_run.h"
#include "cmd/input.h"
#include "cmd/memory_limit.h"
#include "cmd/record.h"
#include "cmd/stopped.h"
#include "cmd/summary.h"
#include "collect/modes.h"
#include "target/proc.h"

#define FREQ_HZ 99
#define FREQ_MAX_HZ 100000

int record_run_fail(const struct call *call, const struct record_run *r, int e)
{
	const struct record_targets *targets = &r->targets;
	int code = cmd_fail(call, e);

	if (cmd_is_limit(e) || targets->pid_fds ||
	    (record_targets_has_command(targets) && !targets->launch.pid))
		return code;
	if (e == -EINVAL && r->o->events.len)
		return EXIT_USAGE; /* this machine has no event of that name */
	if (record_targets_has_cgroup(targets) && targets->cgroup.fd < 0)
		return e == -EINVAL ? EXIT_USAGE : e == -EACCES ? EXIT_DENIED : EXIT_NOTHING;
	if (r->o->pids.len == 1 && r->recorder && e != -ESRCH)
		cmd_try("pyebpf doctor -p %u", r->o->pids.items[0]);
	else if (e != -ESRCH)
		cmd_try("pyebpf doctor");
	if (!r->is_attached || e == -EPERM)
		return EXIT_DENIED;
	return EXIT_NOTHING;
}

/* Nothing is left of a recording that has no samples. */
static int give_up(const struct call *call, struct record_run *r, int e)
{
	int code = record_run_fail(call, r, e);

	if (r->files.writer)
		writer_discard(r->files.writer);
	return code;
}

/* What --diff asks for, but for the recording there is going to be. */
static struct diff_call comparison_of(const struct record_opts *o)
{
	static const struct opt_list none;
	struct diff_call c = DIFF_CALL_INIT;

	c.base = (const char *const *)o->bases.items;
	c.base_count = o->bases.len;
	c.choice = o->choice;
	c.renames = &none;
	c.outputs = &o->diff_outputs;
	c.out = stderr; /* stdout may be the command's */
	return c;
}

static int check_usage(const struct call *call, const struct record_opts *o)
{
	const struct diff_call comparison = comparison_of(o);
	unsigned int modes = modes_of_words(o->mode_words);
	const char *for_diff = o->diff_outputs.len    ? "--diff-output"
			       : o->choice.format     ? "--from"
			       : o->choice.is_trusted ? "--trust"
			       : o->max_memory_bytes  ? "--max-memory"
						      : NULL;
	int status = record_targets_check(call, o);

	if (status)
		return status;
	if (o->bases.len && o->outputs.rotate_ns)
		return cmd_usage(call, "--diff and --rotate cannot be combined");
	if (modes_clash(modes))
		return cmd_usage(call, "--mode: " MODES_CLASH ", only with off-cpu");
	if (!o->bases.len && for_diff)
		return cmd_usage(call, "%s goes with --diff", for_diff);
	if (o->ring_bytes & (o->ring_bytes - 1))
		return cmd_usage(call, "--ring: %s is not a power of two",
				 units_bytes(o->ring_bytes).s);
	status = record_files_check(call, &o->outputs);
	return status ? status : diff_check_usage(call, &comparison);
}

/* The rate of the first recording to compare with, where that says it. */
static uint32_t base_freq_hz(const char *path, struct import_choice choice)
{
	_cleanup_(input_freep) struct input *in = NULL;
	uint64_t rate_hz;
	mode_t mask = umask(077);
	int r = input_open(path, choice, &in);

	umask(mask); /* a private BASE has taken rights from ours, which COMMAND inherits */
	if (r < 0) {
		err_clear(); /* compare() will say it, after the recording */
		return 0;
	}
	rate_hz = input_recording(in)->rate_hz;
	return rate_hz <= FREQ_MAX_HZ ? (uint32_t)rate_hz : 0;
}

/* --diff: what is there of BASE before the recording. */
static int begin_bases(const struct call *call, struct record_opts *o)
{
	int r = input_take_pipes(o->bases.items, o->bases.len, o->max_memory_bytes);

	if (r < 0)
		return cmd_fail(call, r);
	if (!o->freq_hz && o->bases.len)
		o->freq_hz = base_freq_hz(o->bases.items[0], o->choice);
	if (!o->freq_hz)
		o->freq_hz = FREQ_HZ;
	return EXIT_OK;
}

/* --diff: the recording is there, whatever becomes of the comparison. */
static int compare(const struct call *call, const struct record_run *r)
{
	const char *current = r->files.path;
	struct diff_call c = comparison_of(r->o);
	char text[ERR_BYTES];
	int status;

	c.current = &current;
	c.current_count = 1;
	memory_limit_set(r->o->max_memory_bytes); /* COMMAND was started without it */
	status = diff_run(call, &c);
	if (status) {
		snprintf(text, sizeof(text), "comparison failed; the recording was saved as %s",
			 record_files_name(&r->files));
		log_line("pyebpf record: ", text);
	}
	/* The command's own status counts for more. */
	return record_targets_has_command(&r->targets) ? EXIT_OK : status;
}

/* The nearest of perf's own. */
static int fail_event(const struct call *call, const char *name, int e)
{
	_cleanup_(freep) const char **names = calloc(event_rows_count + 1, sizeof(*names));
	const char *nearest;

	if (!names)
		return cmd_fail(call, -ENOMEM);
	for (size_t i = 0; i < event_rows_count; i++)
		names[i] = event_rows[i].name;
	nearest = e == -ENOENT ? opt_nearest(name, names) : NULL;
	if (nearest)
		return cmd_usage(call, "-e %s: no such event: did you mean %s?", name, nearest);
	if (e == -ENOENT)
		return cmd_usage(call, "-e %s: no such event: pyebpf doctor --events lists them",
				 name);
	return cmd_usage(call, "-e %s", err_message(e));
}

/* What --mode, -e and -c ask for. */
static int read_modes(const struct call *call, struct record_opts *o)
{
	const struct event_rate rate = { .period = o->period, .freq_hz = o->freq_hz };
	int e;

	o->modes = modes_of_words(o->mode_words);
	for (size_t i = 0; i < o->event_names.len; i++) {
		e = events_add(&o->events, o->event_names.items[i], &rate);
		if (e < 0)
			return fail_event(call, o->event_names.items[i], e);
	}
	if (o->period && !o->events.len)
		return cmd_usage(call, "-c requires -e EVENT");
	if (o->events.len)
		o->modes |= MODE_EVENTS;
	if (o->modes & MODE_MEMORY && (e = events_add_memory(&o->events)) < 0)
		return cmd_fail(call, e);
	return 0;
}

static int read_labels(const struct call *call, struct record_opts *o)
{
	int e;

	if (o->async && o->label_texts.len == CONTEXT_LABELS_MAX)
		return cmd_usage(call,
				 "--label: at most %d labels with --async, which adds one itself",
				 CONTEXT_LABELS_MAX - 1);
	for (size_t i = 0; i < o->label_texts.len; i++) {
		e = context_labels_add(&o->labels, o->label_texts.items[i]);
		if (e < 0)
			return e == -ENOMEM ? cmd_fail(call, e)
					    : cmd_usage(call, "--label: %s", err_message(e));
	}
	return 0;
}

#define TRY_BYTES 64

/* next: what to type, which may lie in `try`, TRY_BYTES. 0 or -ENOMEM. */
static int put_why_nothing(struct strbuf *out, const struct record_run *r, const char **next,
			   char *try)
{
	pid_t stopped = stopped_find(&r->targets);

	if (stopped) {
		snprintf(try, TRY_BYTES, "kill -CONT %d, then record again", stopped);
		*next = try;
		return stopped_put(stopped, out);
	}
	if (!recorder_awaits_python(r->recorder))
		return account_put_nothing(out, r->files.top.profile, next);
	snprintf(try, TRY_BYTES, "pgrep -P %d -a, which lists its child processes",
		 r->targets.pids.items[0]);
	*next = try;
	return strbuf_puts(out, "no process that ran Python was sampled");
}

/* No samples: what the ticks were. A command's own status counts for more. */
static int explain_nothing(const struct call *call, const struct record_run *r)
{
	bool has_command = record_targets_has_command(&r->targets);
	_cleanup_(strbuf_releasep) struct strbuf why = STRBUF_INIT;
	char try[TRY_BYTES];
	const char *next;

	if (put_why_nothing(&why, r, &next, try) < 0)
		return record_run_fail(call, r, -ENOMEM);
	if (!has_command) {
		err_set(-ENODATA, "no samples of %s in %s: %s",
			profile_recording(recorder_profile(r->recorder))->target,
			units_ns(monotonic_ns() - r->sampling_ns).s, strbuf_str(&why));
		cmd_fail(call, -ENODATA);
	} else if (log_level() >= LOG_LEVEL_WARNING) {
		log_warning("%s: no samples: %s", call->operands.items[0], strbuf_str(&why));
	} else {
		return EXIT_OK;
	}
	if (writer_has_kept_old(r->files.writer))
		log_warning("%s was not overwritten: it still holds the previous recording",
			    r->files.path);
	cmd_try("%s", next);
	return has_command ? EXIT_OK : EXIT_NOTHING;
}

/* On stderr: stdout may be the command's. */
static int summarise(struct record_run *r)
{
	const struct pipeline_stats *stats = recorder_stats(r->recorder);
	struct load *top = &r->files.top;
	struct summary_extra x = {
		.output = record_files_name(&r->files),
		.processes = stats->processes,
		.contained = stats->contained,
		.wall_ns = monotonic_ns() - r->sampling_ns,
		.is_system_wide = r->o->all,
		.times = recorder_times(r->recorder),
		.tasks = recorder_tasks(r->recorder),
	};
	struct rusage u;
	int e;

	if (log_level() < LOG_LEVEL_WARNING)
		return 0;
	getrusage(RUSAGE_SELF, &u);
	x.cpu_ns = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_SECOND +
		   (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ULL + apart_cpu_ns();
	x.rss_bytes_max = proc_own_memory();
	if ((e = recorder_read_cost(r->recorder, &x.sampler_ns)) < 0)
		return e;
	if (cube_finish(&top->cube, top->profile) < 0)
		return -ENOMEM;
	return summary_print(stderr, top, &x);
}

static void warn_of_labels(const struct record_run *r)
{
	const struct context_label_list *labels = &r->o->labels;

	for (size_t i = 0; i < labels->len; i++)
		if (!recorder_has_met_label(r->recorder, i))
			log_warning("--label %s: no sample has this label: no recorded process %s",
				    labels->items[i].name,
				    labels->items[i].config.part
					    ? "was in a span of OpenTelemetry"
					    : "had set its variable to a str or int");
}

static void warn_of_tasks(const struct record_run *r)
{
	const struct task_stacks_stats *t = recorder_tasks(r->recorder);

	if (!t)
		return;
	if (t->failed_pid)
		log_warning("--async: pid %u: %s", t->failed_pid, t->failed);
	else if (!t->has_asyncio)
		log_warning("--async: no tasks found: no recorded process had imported asyncio");
}

/* Says what became of a recording that came to its end. */
static int conclude(const struct call *call, struct record_run *r)
{
	int e, status;

	record_warn_of_limits(r->o, r->recorder);
	warn_of_labels(r);
	warn_of_tasks(r);
	if (!recorder_stats(r->recorder)->samples) {
		if (!record_files_has_recording(&r->files))
			writer_discard(r->files.writer);
		return explain_nothing(call, r);
	}
	if ((e = summarise(r)) < 0)
		return record_run_fail(call, r, e);
	status = r->o->bases.len ? compare(call, r) : EXIT_OK;
	if ((e = record_files_convert(&r->files)) < 0)
		return record_run_fail(call, r, e);
	browser_tell_how(record_files_name(&r->files));
	return status;
}

/* What was recorded is written whatever happens; a command's own status counts in the end. */
static int record(const struct call *call, struct record_run *r)
{
	int e = record_run_start(r), e_finish, status;

	if (e < 0)
		return give_up(call, r, e);
	e = record_run_loop(r);
	e_finish = record_run_finish(r);
	if (e < 0 || e_finish < 0)
		return give_up(call, r, e < 0 ? e : e_finish);
	status = conclude(call, r);
	if (status || !record_targets_has_command(&r->targets))
		return status;
	if (record_run_await_command(r) < 0)
		return EXIT_RUNTIME;
	return launch_exit_code(&r->targets.launch);
}

static const char *const async_words[] = { "no", "tasks", "loop", NULL };

static int run(struct call *call)
{
	struct record_opts o = { .ring_bytes = 8 << 20 };
	const struct opt opts[] = {
		OPT_GROUP("What to record"),
		RECORD_TARGET_OPTIONS(&o),
		OPT_TIME('d', "duration", &o.duration_ns,
			 "stop after TIME, e.g. 30s (default: at Ctrl-C, or when all targets have "
			 "exited)",
			 .min = 1000000),
		OPT_FREQ('F', "freq", &o.freq_hz,
			 "samples per second of CPU time (default: 99, or BASE's rate with --diff)",
			 .min = 1, .max = FREQ_MAX_HZ),
		OPT_ALIAS('r', "rate"),
		OPT_ENUM_SET(0, "mode", &o.mode_words, "MODE[,MODE]", mode_words,
			     "what to record: CPU time, waits or both (default: cpu; with -e: "
			     "events only)"),
		OPT_LIST('e', "event", &o.event_names, "EVENT",
			 "sample on an event: page-faults, cycles, GROUP:TRACEPOINT[:FIELD], "
			 "uprobe:FILE:FUNCTION[:argN], usdt:FILE:PROVIDER:NAME[:argN]; may repeat"),
		OPT_U64('c', "count", &o.period, "COUNT",
			"take one sample every COUNT events (default: 1; clocks and hardware "
			"events use -F)",
			.min = 1),
		OPT_LIST(0, "label", &o.label_texts, "NAME=contextvar:VAR",
			 "label samples with the value of context variable VAR (str or int), or "
			 "(otel) with trace_id and span_id of OpenTelemetry's span; may repeat"),
		OPT_ENUM(0, "async", &o.async, "WHAT", async_words,
			 "record asyncio and trio tasks: stacks start at the awaiting tasks (loop: "
			 "below the event loop's frames); with --mode wall also task waits",
			 .bare = ASYNC_TASKS),
		OPT_FLAG(0, "opcodes", &o.has_opcodes,
			 "record the bytecode instruction of each sample"),
		OPT_FLAG('n', "native", &o.has_native,
			 "show <native> where Python calls C, or C calls Python"),
		OPT_FLAG(0, "no-gc", &o.no_gc, "do not show <GC> frames"),
		OPT_GROUP("Output"),
		OPT_LIST('o', "output", &o.outputs.paths, "FILE",
			 "write FILE; the suffix sets the format; may repeat "
			 "(default: " DEFAULT_RECORDING ")"),
		OPT_FLAG(0, "open", &o.outputs.should_open, BROWSER_OPEN_HELP),
		OPT_TIME(0, "rotate", &o.outputs.rotate_ns,
			 "start a new file every TIME, named by its start time (UTC)",
			 .min = 1000000000),
		OPT_U32(0, "rotate-keep", &o.outputs.rotate_keep, "N",
			"keep only the newest N files (default: all)", .min = 1, .max = 1000000),
		OPT_GROUP("Comparison"),
		OPT_LIST(0, "diff", &o.bases, "BASE",
			 "compare with recording BASE; repeat for several runs of BASE"),
		OPT_LIST(0, "diff-output", &o.diff_outputs, "FILE",
			 "write the comparison, as diff -o does; may repeat"),
		INPUT_OPTIONS(&o.choice, &o.max_memory_bytes),
		OPT_GROUP("Tuning"),
		OPT_BYTES(0, "ring", &o.ring_bytes,
			  "size of the kernel ring buffer, a power of two (default: 8MiB)",
			  .min = 1 << 16, .max = 1 << 30),
		OPT_U32_LIST(
			0, "cpus", &o.cpus, "CPU[,CPU...]",
			"sample on these CPUs only, where the targets are bound to them (all)"),
		OPT_FLAG(0, "no-task-work", &o.no_task_work,
			 "do not let target threads read missing pages (as before Linux 6.18)"),
		KERNEL_OPTIONS(&o.kernel),
		OPT_END,
	};
	struct record_run r = { .o = &o,
				.targets = { .o = &o,
					     .command = &call->operands,
					     .launch = LAUNCH_INIT,
					     .cgroup = CGROUP_INIT },
				.files.o = &o.outputs,
				.signal_fd = -1 };
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	status = check_usage(call, &o);
	if (!status)
		status = begin_bases(call, &o);
	if (!status)
		status = read_modes(call, &o);
	if (!status)
		status = read_labels(call, &o);
	if (!status)
		status = record(call, &r);
	record_run_release(&r);
	events_release(&o.events);
	vec_release(&o.event_names);
	context_labels_release(&o.labels);
	vec_release(&o.label_texts);
	vec_release(&o.outputs.paths);
	vec_release(&o.bases);
	vec_release(&o.diff_outputs);
	vec_release(&o.pids);
	vec_release(&o.cpus);
	return status;
}

const struct command command_record = {
	.name = "record",
	.summary = "record where Python processes spend their time",
	.usage = "-p PID[,PID...] [OPTION]...\n-a [OPTION]...\n--cgroup PATH [OPTION]...\n"
		 "--container ID [OPTION]...\n[OPTION]... -- COMMAND [ARG]...",
	.about = "Records the Python stacks of running processes by sampling, from inside the "
		 "kernel. The processes are not stopped, not written to and not traced. Requires "
		 "root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.\n\nIf -p names a program "
		 "without Python, such as a launcher or a server's parent process, record waits "
		 "for a child process that runs Python. With --no-children it fails.\n\nThe "
		 "recording can be read at any time, even after kill -9. SIGUSR1 writes buffered "
		 "samples now. With COMMAND, record waits for it and returns its exit status.",
	.examples = "pyebpf record -p 412 -d 30s\t30 seconds of a running process\n"
		    "pyebpf record -F 999 -- python3 app.py\ta program from start to end\n"
		    "pyebpf record --container 6f2a91c0d4e8\ta container, until it ends\n"
		    "pyebpf record --diff before.pyebpf -- python3 app.py\twhat changed since\n"
		    "pyebpf record -a -o all.pyebpf\tevery Python process, until Ctrl-C",
	.operands = "*",
	.run = run,
};
