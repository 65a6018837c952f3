/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/browser.h"
#include "cmd/account.h"
#include "cmd/cmd.h"
#include "cmd/diff_run.h"
#include "cmd/environment.h"
#include "cmd/input.h"
#include "cmd/launch.h"
#include "cmd/load.h"
#include "cmd/record_files.h"
#include "cmd/summary.h"
#include "collect/counters.h"
#include "collect/discover.h"
#include "collect/pipeline.h"
#include "collect/session.h"
#include "profile/profile.h"
#include "store/writer.h"
#include "target/container_cgroup.h"

#define FREQ_HZ 99
#define FREQ_MAX_HZ 100000
#define FLUSH_NS NS_PER_SECOND
#define POLL_MS 50
#define FLUSH_SAMPLES 65536      /* or as soon as so many wait */
#define SEGMENT_BYTES (4u << 20) /* tables beyond this start a new segment of the file */
#define COMMAND_LINE_MAX (1u << 20)
#define COUNTERS_NS 10000000000ULL
#define PROGRESS_NS 500000000ULL
#define COMMAND_END_MS 200   /* a command that does not end with the recording goes on */
#define LOOK_NS 250000000ULL /* who is in a version 1 cgroup is asked this often */

struct record_opts {
	struct opt_u32_list pids;
	bool all;
	const char *cgroup, *container; /* at most one of the two */
	uint64_t duration_ns;
	uint32_t freq_hz;
	bool no_children;
	bool has_opcodes;
	struct record_outputs outputs;
	uint64_t ring_bytes;
	bool no_task_work;
	struct opt_list bases, diff_outputs; /* --diff */
};

struct recorder {
	struct call *call;
	const struct record_opts *o;
	struct record_files files;
	struct launch launch; /* the COMMAND, if any */
	struct cgroup cgroup; /* of --cgroup or --container */
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct pipeline *pipeline;
	struct writer *writer;
	int signal_fd;
	int *pid_fds;    /* one a target; -1: it has exited */
	struct load top; /* for the summary: samples by function */
	struct leaf_map leaves;
	struct counters since; /* what the files before this one have counted */
	uint64_t file_start_ns;
	uint64_t sampling_ns; /* since when there are ticks: a loaded disk may take its time before
			       */
	uint64_t start_ns, last_flush_ns, last_counters_ns, last_progress_ns, last_look_ns;
	bool has_progress; /* a progress line is on the terminal */
	bool should_stop;
};

/* What ends or interrupts a recording arrives on one descriptor. SIGCHLD: the COMMAND has ended. */
static int watch_signals(struct recorder *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? err_set(-errno, "signalfd: %s", strerror(errno)) : 0;
}

static bool has_command(const struct recorder *r)
{
	return r->call->operands.len > 0;
}

static bool has_cgroup(const struct recorder *r)
{
	return r->o->cgroup || r->o->container;
}

static int open_cgroup(struct recorder *r)
{
	if (r->o->container)
		return cgroup_open_container(r->o->container, &r->cgroup);
	return r->o->cgroup ? cgroup_open(r->o->cgroup, &r->cgroup) : 0;
}

static size_t target_count(const struct recorder *r)
{
	return has_command(r) ? 1 : r->o->pids.len;
}

static pid_t target_pid(const struct recorder *r, size_t i)
{
	return has_command(r) ? r->launch.pid : (pid_t)r->o->pids.items[i];
}

/* Descriptors that tell when a target has exited, immune to its pid being used again. */
static int watch_targets(struct recorder *r)
{
	size_t count = target_count(r);

	r->pid_fds = malloc((count + 1) * sizeof(r->pid_fds[0]));
	if (!r->pid_fds)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		r->pid_fds[i] = syscall(SYS_pidfd_open, target_pid(r, i), 0);
		if (r->pid_fds[i] < 0 && errno != ESRCH)
			return err_set(-errno, "watch pid %d: %s", target_pid(r, i),
				       strerror(errno));
	}
	return 0;
}

static int add_targets(struct recorder *r)
{
	int e = 0;

	if (r->o->all)
		return discovery_add_all(r->discovery);
	if (has_cgroup(r))
		return discovery_follow_cgroup(r->discovery, &r->cgroup);
	if (has_command(r))
		return discovery_add_command(r->discovery, r->launch.pid,
					     r->call->operands.items[0]);
	for (size_t i = 0; i < target_count(r) && e >= 0; i++)
		e = r->o->no_children ? discovery_add_target(r->discovery, target_pid(r, i))
				      : discovery_add_family(r->discovery, target_pid(r, i));
	return e;
}

/* "pid 412, pid 413", "all processes", "container 0123456789ab", a cgroup's folder, the command. */
static int target_text(const struct recorder *r, struct strbuf *out)
{
	int e = 0;

	if (r->o->all)
		return strbuf_puts(out, "all processes");
	if (has_cgroup(r))
		return strbuf_appendf(out, "%s %s", r->o->container ? "container" : "cgroup",
				      r->o->container ? r->o->container : r->cgroup.path);
	if (has_command(r)) {
		for (int i = 0; i < r->call->operands.len; i++)
			e = strbuf_appendf(out, "%s%s", i ? " " : "", r->call->operands.items[i]);
		return e;
	}
	for (size_t i = 0; i < r->o->pids.len; i++)
		e = strbuf_appendf(out, "%spid %u", i ? ", " : "", r->o->pids.items[i]);
	return e;
}

/* As it was typed: the option parser has moved the words of argv. */
static int own_command_line(struct strbuf *out)
{
	_cleanup_(freep) char *words = NULL;
	size_t len;
	int e = file_read("/proc/self/cmdline", COMMAND_LINE_MAX, &words, &len);

	for (size_t at = 0; e >= 0 && at < len; at += strlen(words + at) + 1)
		e = strbuf_appendf(out, "%s%s", at ? " " : "", words + at);
	return e;
}

static int describe_recording(struct recorder *r)
{
	_cleanup_(strbuf_releasep) struct strbuf target = STRBUF_INIT, command = STRBUF_INIT;
	struct recording *m = profile_recording(r->profile);
	struct utsname u;
	char host[256] = "";
	int e;

	m->rate_hz = r->o->freq_hz;
	m->interval_ns = NS_PER_SECOND / r->o->freq_hz;
	profile_recording(r->top.profile)->interval_ns = m->interval_ns;
	m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	gethostname(host, sizeof(host) - 1);
	uname(&u);
	if ((e = target_text(r, &target)) < 0 || (e = own_command_line(&command)) < 0 ||
	    (e = recording_set_text(&m->host, host)) < 0 ||
	    (e = recording_set_text(&m->kernel, u.release)) < 0 ||
	    (e = recording_set_text(&m->machine, u.machine)) < 0 ||
	    (e = recording_set_text(&m->version, PYEBPF_VERSION)) < 0 ||
	    (e = recording_set_text(&m->command, strbuf_str(&command))) < 0 ||
	    (e = recording_set_text(&m->mode, "cpu")) < 0 ||
	    (e = recording_set_text(&m->target, strbuf_str(&target))) < 0 ||
	    (e = environment_describe(m, target_count(r) == 1 ? target_pid(r, 0) : 0)) < 0)
		return e;
	return recording_set_text(&m->event, "cpu-clock");
}

/* Begins a file whose time 0 is start_ns. */
static int open_file(struct recorder *r, uint64_t start_ns)
{
	struct recording *m = profile_recording(r->profile);
	int e;

	m->start_realtime_ns = clock_ns(CLOCK_REALTIME) - (monotonic_ns() - start_ns);
	m->start_monotonic_ns = start_ns;
	m->duration_ns = 0;
	m->has_ended = 0;
	r->file_start_ns = r->last_flush_ns = r->last_counters_ns = start_ns;
	if ((e = record_files_next(&r->files, m->start_realtime_ns)) < 0 ||
	    (e = writer_open(r->files.path, r->profile, &r->writer)) < 0)
		return e;
	return record_files_keep(&r->files);
}

/* Everything up to the first tick. */
static int prepare(struct recorder *r)
{
	struct session_opts so = {
		.freq_hz = r->o->freq_hz,
		.is_system_wide = r->o->all,
		.follow_children = !r->o->no_children || has_cgroup(r),
		.ring_bytes = r->o->ring_bytes,
		.has_opcodes = r->o->has_opcodes,
		.no_task_work = r->o->no_task_work,
	};
	int e;

	if ((e = watch_signals(r)) < 0 || (e = open_cgroup(r)) < 0)
		return e;
	so.cgroup = has_cgroup(r) ? &r->cgroup : NULL;
	if (has_command(r) && (e = launch_prepare(&r->launch, r->call->operands.items)) < 0)
		return e;
	if ((e = session_open(&so, &r->session)) < 0 || (e = session_attach(r->session)) < 0 ||
	    (e = discovery_new(r->session, &r->discovery)) < 0 || (e = add_targets(r)) < 0 ||
	    (e = watch_targets(r)) < 0 || (e = profile_new(&r->profile)) < 0 ||
	    (e = profile_new(&r->top.profile)) < 0)
		return e;
	r->start_ns = monotonic_ns();
	if ((e = describe_recording(r)) < 0 ||
	    (e = pipeline_new(r->session, r->discovery, r->profile, r->start_ns, &r->pipeline)) < 0)
		return e;
	return open_file(r, r->start_ns);
}

/*
 * The account of ticks goes into the file now and then only: a line of it a second would outweigh
 * the samples at 99 Hz.
 */
static int store_counters(struct recorder *r, uint64_t now)
{
	struct counters c;
	int e;

	if (now - r->last_counters_ns < COUNTERS_NS)
		return 0;
	r->last_counters_ns = now;
	e = counters_read(r->session, r->pipeline, &c);
	return e < 0 ? e : counters_store(&c, &r->since, r->profile);
}

/* Writes what there is; starts a new segment when the tables have grown too large. */
static int flush(struct recorder *r)
{
	uint64_t now = monotonic_ns();
	ssize_t n;
	int e;

	r->last_flush_ns = now;
	if ((e = pipeline_settle(r->pipeline, now, false)) < 0 || (e = store_counters(r, now)) < 0)
		return e;
	n = writer_flush(r->writer, r->profile);
	if (n < 0)
		return n;
	if ((e = load_add_leaves(&r->top, r->profile, &r->leaves)) < 0)
		return e;
	profile_clear_samples(r->profile);
	if (profile_bytes(r->profile) < SEGMENT_BYTES)
		return 0;
	if ((e = writer_segment(r->writer)) < 0 || (e = profile_reset(r->profile)) < 0)
		return e;
	r->leaves.len = 0;
	return pipeline_forget_ids(r->pipeline);
}

static bool is_flush_due(const struct recorder *r)
{
	return r->profile->samples.len >= FLUSH_SAMPLES ||
	       monotonic_ns() - r->last_flush_ns >= FLUSH_NS;
}

static void clear_progress(struct recorder *r)
{
	if (r->has_progress)
		fputs("\r\033[K", stderr);
	r->has_progress = false;
}

static void show_progress(struct recorder *r)
{
	uint64_t now = monotonic_ns();

	if (now - r->last_progress_ns < PROGRESS_NS || log_level() < LOG_LEVEL_WARNING ||
	    !isatty(STDERR_FILENO))
		return;
	r->last_progress_ns = now;
	fprintf(stderr, "\r\033[Krecording %s, %s samples of %s process%s, %s  (Ctrl-C ends it)",
		units_ns((now - r->start_ns) / NS_PER_SECOND * NS_PER_SECOND).s,
		units_count(pipeline_stats(r->pipeline)->samples).s,
		units_count(pipeline_stats(r->pipeline)->processes).s,
		pipeline_stats(r->pipeline)->processes == 1 ? "" : "es",
		units_bytes(writer_size(r->writer)).s);
	r->has_progress = true;
}

static int handle_signals(struct recorder *r)
{
	struct signalfd_siginfo info;
	int e = 0;

	while (e >= 0 && read(r->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGUSR1:
			r->last_counters_ns = 0; /* with the account of ticks */
			e = flush(r);
			break;
		case SIGCHLD:
			e = launch_reap(&r->launch, false);
			break;
		case SIGTERM:
		case SIGHUP:
			/* From a terminal the command gets it as we do; from kill it would not. */
			if (has_command(r) && !r->launch.has_ended && info.ssi_code <= 0)
				kill(r->launch.pid, info.ssi_signo);
			r->should_stop = true;
			break;
		default:
			r->should_stop = true;
		}
	}
	return e;
}

/* Have all targets exited? A cgroup can have others until it is removed. */
static bool targets_are_gone(struct recorder *r)
{
	if (r->o->all)
		return false;
	if (has_cgroup(r))
		return cgroup_is_gone(&r->cgroup);
	for (size_t i = 0; i < target_count(r); i++) {
		struct pollfd p = { .fd = r->pid_fds[i], .events = POLLIN };

		if (p.fd < 0)
			continue;
		if (poll(&p, 1, 0) <= 0)
			return false;
		closep(&r->pid_fds[i]);
		r->pid_fds[i] = -1;
	}
	return true;
}

/* Until the ring or a new process is looked at again, or -d is over. */
static int poll_timeout(const struct recorder *r)
{
	uint64_t elapsed = monotonic_ns() - r->sampling_ns;
	int max_ms = POLL_MS;

	if (r->o->duration_ns && elapsed + POLL_MS * 1000000ULL > r->o->duration_ns)
		max_ms = elapsed < r->o->duration_ns ? (r->o->duration_ns - elapsed) / 1000000 + 1
						     : 0;
	return discovery_timeout_ms(r->discovery, max_ms);
}

static int look_into_cgroup(struct recorder *r)
{
	uint64_t now = monotonic_ns();

	if (!has_cgroup(r) || r->cgroup.is_v2 || now - r->last_look_ns < LOOK_NS)
		return 0;
	r->last_look_ns = now;
	return discovery_follow_cgroup(r->discovery, &r->cgroup);
}

/* Of itself, and not by a signal. */
static bool has_run_to_its_end(struct recorder *r)
{
	return has_command(r) && launch_reap(&r->launch, false) >= 0 && r->launch.has_ended &&
	       WIFEXITED(r->launch.status);
}

/* Writes the rest of a file. is_last: also samples whose names have not come yet. */
static int close_file(struct recorder *r, uint64_t now, bool is_last)
{
	struct counters c;
	int e;

	e = is_last ? session_drain(r->session, pipeline_record, r->pipeline)
		    : session_consume(r->session, 0, pipeline_record, r->pipeline);
	if (e < 0 || (e = pipeline_settle(r->pipeline, now, is_last)) < 0 ||
	    (e = counters_read(r->session, r->pipeline, &c)) < 0 ||
	    (e = counters_store(&c, &r->since, r->profile)) < 0)
		return e;
	r->since = c;
	profile_recording(r->profile)->duration_ns = now - r->file_start_ns;
	profile_recording(r->profile)->has_ended = 1;
	profile_recording(r->profile)->is_whole =
		is_last && !r->o->outputs.rotate_ns && has_run_to_its_end(r);
	if ((e = environment_complete(r->profile)) < 0 ||
	    (e = writer_finish(r->writer, r->profile)) < 0)
		return e;
	return load_add_leaves(&r->top, r->profile, &r->leaves);
}

/*
 * The next file of --rotate: complete by itself, so all tables begin anew. What comes meanwhile
 * waits in the ring and goes into the new one.
 */
static int rotate(struct recorder *r)
{
	uint64_t now = monotonic_ns();
	int e;

	if (!r->o->outputs.rotate_ns || now - r->file_start_ns < r->o->outputs.rotate_ns)
		return 0;
	if ((e = close_file(r, now, false)) < 0)
		return e;
	writer_free(r->writer);
	r->writer = NULL;
	if ((e = profile_reset(r->profile)) < 0)
		return e;
	r->leaves.len = 0;
	pipeline_set_start(r->pipeline, now);
	if ((e = pipeline_forget_ids(r->pipeline)) < 0)
		return e;
	return open_file(r, now);
}

static int record_loop(struct recorder *r)
{
	struct pollfd fds[] = {
		{ .fd = session_poll_fd(r->session), .events = POLLIN },
		{ .fd = r->signal_fd, .events = POLLIN },
	};
	int e;

	while (!r->should_stop) {
		if (poll(fds, 2, poll_timeout(r)) < 0 && errno != EINTR)
			return err_set(-errno, "poll: %s", strerror(errno));
		if ((e = session_consume(r->session, 0, pipeline_record, r->pipeline)) < 0 ||
		    (e = discovery_step(r->discovery)) < 0 || (e = handle_signals(r)) < 0)
			return e;
		if ((is_flush_due(r) && (e = flush(r)) < 0) || (e = rotate(r)) < 0 ||
		    (e = look_into_cgroup(r)) < 0 || (e = session_follow_cpus(r->session)) < 0)
			return e;
		if (targets_are_gone(r) ||
		    (r->o->duration_ns && monotonic_ns() - r->sampling_ns >= r->o->duration_ns))
			break;
		show_progress(r);
	}
	return 0;
}

/* Stops the events and writes the rest. */
static int finish(struct recorder *r)
{
	static const struct counters none;
	int e;

	clear_progress(r);
	session_stop(r->session);
	if (!r->writer)
		return 0; /* the next file could not be opened */
	if ((e = close_file(r, monotonic_ns(), true)) < 0)
		return e;
	return counters_store(&r->since, &none, r->top.profile);
}

static void recorder_release(struct recorder *r)
{
	for (size_t i = 0; r->pid_fds && i < target_count(r); i++)
		closep(&r->pid_fds[i]);
	free(r->pid_fds);
	load_release(&r->top);
	vec_release(&r->leaves);
	writer_free(r->writer);
	pipeline_free(r->pipeline);
	profile_free(r->profile);
	discovery_free(r->discovery);
	session_free(r->session);
	launch_release(&r->launch);
	cgroup_release(&r->cgroup);
	record_files_release(&r->files);
	closep(&r->signal_fd);
}

/* The exit code of an error: what it means depends on how far we were. */
static int fail(const struct recorder *r, int e)
{
	int code = cmd_fail(r->call, e);

	if (e == -ENOMEM || r->pid_fds || (has_command(r) && !r->launch.pid))
		return code;
	if (has_cgroup(r) && r->cgroup.fd < 0)
		return e == -EINVAL ? EXIT_USAGE : e == -EACCES ? EXIT_DENIED : EXIT_NOTHING;
	if (r->o->pids.len == 1 && r->session && e != -ESRCH)
		cmd_try("pyebpf doctor -p %u", r->o->pids.items[0]);
	else if (e != -ESRCH)
		cmd_try("pyebpf doctor");
	if (!r->session || e == -EPERM)
		return EXIT_DENIED;
	return EXIT_NOTHING;
}

/* Nothing is left of a recording that has no samples. */
static int give_up(struct recorder *r, int e)
{
	int code = fail(r, e);

	if (r->writer)
		writer_discard(r->writer);
	return code;
}

/* What --diff asks for, but for the recording there is going to be. */
static struct diff_call comparison_of(const struct record_opts *o)
{
	static const struct opt_list none;
	struct diff_call c = DIFF_CALL_INIT;

	c.base = (const char *const *)o->bases.items;
	c.base_count = o->bases.len;
	c.renames = &none;
	c.outputs = &o->diff_outputs;
	c.out = stderr; /* stdout may be the command's */
	return c;
}

static int check_usage(const struct call *call, const struct record_opts *o)
{
	const struct diff_call comparison = comparison_of(o);
	bool has_command = call->operands.len > 0;
	int status, given = (o->pids.len > 0) + o->all + !!o->cgroup + !!o->container + has_command;

	if (has_command && call->operands.dashed != call->operands.len)
		return cmd_usage(call, "unexpected operand %s: a command to run goes behind --",
				 call->operands.items[0]);
	if (!given)
		return cmd_usage(call, "nothing to record: give -p PID, -a, --cgroup PATH, "
				       "--container ID or -- COMMAND");
	if (given > 1)
		return cmd_usage(call, "-p, -a, --cgroup, --container and -- COMMAND exclude "
				       "each other");
	if (o->bases.len && o->outputs.rotate_ns)
		return cmd_usage(call, "--diff compares one recording, --rotate makes many");
	if (o->diff_outputs.len && !o->bases.len)
		return cmd_usage(call, "--diff-output goes with --diff");
	if (o->ring_bytes & (o->ring_bytes - 1))
		return cmd_usage(call, "--ring: %s is not a power of two",
				 units_bytes(o->ring_bytes).s);
	for (size_t i = 0; i < o->pids.len; i++)
		for (size_t j = 0; j < i; j++)
			if (o->pids.items[i] == o->pids.items[j])
				return cmd_usage(call, "pid %u is given twice", o->pids.items[i]);
	status = record_files_check(call, &o->outputs);
	return status ? status : diff_check_usage(call, &comparison);
}

/* The rate of the first recording to compare with, where that says it. */
static uint32_t base_freq_hz(const char *path)
{
	_cleanup_(input_freep) struct input *in = NULL;
	uint64_t rate_hz;

	if (input_open(path, &in) < 0) {
		err_clear(); /* compare() will say it, after the recording */
		return 0;
	}
	rate_hz = input_recording(in)->rate_hz;
	return rate_hz <= FREQ_MAX_HZ ? (uint32_t)rate_hz : 0;
}

/* --diff: the recording is there, whatever becomes of the comparison. */
static int compare(struct recorder *r)
{
	const char *current = r->files.path;
	struct diff_call c = comparison_of(r->o);
	char text[ERR_BYTES];
	int status;

	c.current = &current;
	c.current_count = 1;
	status = diff_run(r->call, &c);
	if (status) {
		snprintf(text, sizeof(text), "not compared; %s is kept",
			 record_files_name(&r->files));
		log_line("pyebpf record: ", text);
	}
	return has_command(r) ? EXIT_OK : status; /* its own status counts for more */
}

/* No samples: what the ticks were. A command's own status counts for more. */
static int explain_nothing(struct recorder *r)
{
	_cleanup_(strbuf_releasep) struct strbuf why = STRBUF_INIT;
	const char *next;

	if (account_put_nothing(&why, r->top.profile, &next) < 0)
		return fail(r, -ENOMEM);
	if (!has_command(r)) {
		err_set(-ENODATA, "no samples of %s in %s: %s",
			profile_recording(r->profile)->target,
			units_ns(monotonic_ns() - r->sampling_ns).s, strbuf_str(&why));
		cmd_fail(r->call, -ENODATA);
	} else if (log_level() >= LOG_LEVEL_WARNING) {
		log_warning("%s: no samples: %s", r->call->operands.items[0], strbuf_str(&why));
	} else {
		return EXIT_OK;
	}
	if (writer_has_kept_old(r->writer))
		log_warning("%s is still the recording of before", r->files.path);
	cmd_try("%s", next);
	return has_command(r) ? EXIT_OK : EXIT_NOTHING;
}

/* On stderr: stdout may be the command's. */
static int summarise(struct recorder *r)
{
	struct summary_extra x = {
		.output = record_files_name(&r->files),
		.processes = pipeline_stats(r->pipeline)->processes,
		.contained = pipeline_stats(r->pipeline)->contained,
		.wall_ns = monotonic_ns() - r->sampling_ns,
		.sampler_ns = profile_counter(r->top.profile, "run_ns"),
		.is_system_wide = r->o->all,
	};
	struct rusage u;

	if (log_level() < LOG_LEVEL_WARNING)
		return 0;
	getrusage(RUSAGE_SELF, &u);
	x.cpu_ns = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_SECOND +
		   (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ULL;
	x.rss_bytes_max = u.ru_maxrss * 1024ULL;
	if (cube_finish(&r->top.cube, r->top.profile) < 0)
		return -ENOMEM;
	return summary_print(stderr, &r->top, &x);
}

/* Records until something ends it; what was recorded is written whatever happens. */
static int record(struct recorder *r)
{
	int e, e_finish, status;

	e = prepare(r);
	if (e >= 0)
		e = session_start(r->session);
	r->sampling_ns = monotonic_ns();
	if (e >= 0 && has_command(r))
		e = launch_go(&r->launch, r->call->operands.items[0]);
	if (e < 0)
		return give_up(r, e);
	e = record_loop(r);
	e_finish = finish(r);
	if (e < 0 || e_finish < 0)
		return give_up(r, e < 0 ? e : e_finish);
	if (!pipeline_stats(r->pipeline)->samples) {
		if (!record_files_has_recording(&r->files))
			writer_discard(r->writer);
		return explain_nothing(r);
	}
	if ((e = summarise(r)) < 0)
		return fail(r, e);
	status = r->o->bases.len ? compare(r) : EXIT_OK;
	if ((e = record_files_convert(&r->files)) < 0)
		return fail(r, e);
	return status;
}

/* What a terminal sends the command gets as well, and what kill sends from here. */
static void pass_signals_on(struct recorder *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_code <= 0 && info.ssi_signo != SIGCHLD && info.ssi_signo != SIGUSR1)
			kill(r->launch.pid, (int)info.ssi_signo);
}

static void tell_that_command_goes_on(const struct recorder *r)
{
	char text[ERR_BYTES];

	if (log_level() < LOG_LEVEL_WARNING)
		return;
	snprintf(text, sizeof(text),
		 "%s (pid %d) goes on after the recording; its exit status is waited for",
		 r->call->operands.items[0], r->launch.pid);
	log_line("pyebpf record: ", text);
	cmd_try("Ctrl-C or kill %d, to end it", r->launch.pid);
}

/* The command goes on after -d, and may after Ctrl-C; its exit status is ours. */
static int command_status(struct recorder *r)
{
	struct pollfd p = { .fd = r->signal_fd, .events = POLLIN };
	int timeout_ms = COMMAND_END_MS;

	while (!r->launch.has_ended) {
		if (poll(&p, 1, timeout_ms) == 0) {
			tell_that_command_goes_on(r);
			timeout_ms = -1;
		}
		pass_signals_on(r);
		if (launch_reap(&r->launch, false) < 0)
			return EXIT_RUNTIME;
	}
	return launch_exit_code(&r->launch);
}

static int run(struct call *call)
{
	struct record_opts o = { .ring_bytes = 8 << 20 };
	const struct opt opts[] = {
		OPT_GROUP("What to record"),
		OPT_U32_LIST('p', "pid", &o.pids, "PID", "these processes, and their children",
			     .min = 1, .max = 1 << 22),
		OPT_FLAG('a', "all", &o.all, "all processes of the machine"),
		OPT_STR(0, "cgroup", &o.cgroup, "PATH",
			"processes of this cgroup and those below it, also later ones"),
		OPT_STR(0, "container", &o.container, "ID",
			"processes of this container, by the first 12 digits of its id"),
		OPT_FLAG(0, "no-children", &o.no_children, "not the children of -p or COMMAND"),
		OPT_TIME('d', "duration", &o.duration_ns,
			 "stop after TIME, e.g. 30s (until Ctrl-C or the last target's exit)",
			 .min = 1000000),
		OPT_FREQ('F', "freq", &o.freq_hz,
			 "samples a second of CPU time (99; with --diff as BASE has it)", .min = 1,
			 .max = FREQ_MAX_HZ),
		OPT_ALIAS('r', "rate"),
		OPT_FLAG(0, "opcodes", &o.has_opcodes,
			 "also which bytecode instruction each sample is at"),
		OPT_GROUP("Output"),
		OPT_LIST('o', "output", &o.outputs.paths, "FILE",
			 "recording to write, or by its suffix a page, ...; may repeat "
			 "(" DEFAULT_RECORDING ")"),
		OPT_FLAG(0, "open", &o.outputs.should_open, BROWSER_OPEN_HELP),
		OPT_TIME(0, "rotate", &o.outputs.rotate_ns,
			 "a new file every TIME, the start's time (UTC) in its name",
			 .min = 1000000000),
		OPT_U32(0, "rotate-keep", &o.outputs.rotate_keep, "N",
			"keep the last N of these files (all)", .min = 1, .max = 1000000),
		OPT_GROUP("Comparison"),
		OPT_LIST(0, "diff", &o.bases, "BASE",
			 "compare with this recording then; several are runs of it"),
		OPT_LIST(0, "diff-output", &o.diff_outputs, "FILE",
			 "write the comparison, as diff -o does; may repeat"),
		OPT_GROUP("Tuning"),
		OPT_BYTES(0, "ring", &o.ring_bytes,
			  "buffer between kernel and recorder, a power of two (8MiB)",
			  .min = 1 << 16, .max = 1 << 30),
		OPT_FLAG(0, "no-task-work", &o.no_task_work,
			 "do not have threads read missing pages in, as before Linux 6.18"),
		OPT_END,
	};
	struct recorder r = { .call = call,
			      .o = &o,
			      .files.o = &o.outputs,
			      .launch = LAUNCH_INIT,
			      .cgroup = CGROUP_INIT,
			      .signal_fd = -1 };
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	if (!o.freq_hz && o.bases.len)
		o.freq_hz = base_freq_hz(o.bases.items[0]);
	if (!o.freq_hz)
		o.freq_hz = FREQ_HZ;
	status = check_usage(call, &o);
	if (!status)
		status = record(&r);
	if (!status && has_command(&r))
		status = command_status(&r);
	vec_release(&o.outputs.paths);
	vec_release(&o.bases);
	vec_release(&o.diff_outputs);
	recorder_release(&r);
	vec_release(&o.pids);
	return status;
}

const struct command command_record = {
	.name = "record",
	.summary = "sample Python processes",
	.usage = "-p PID[,PID...] [OPTION]...\n-a [OPTION]...\n--cgroup PATH [OPTION]...\n"
		 "--container ID [OPTION]...\n[OPTION]... -- COMMAND [ARG]...",
	.about = "Samples the Python code that processes run on the CPU, from inside the kernel: "
		 "the "
		 "processes are not stopped, not written to and not traced. Needs root, or the "
		 "capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.\n\n"
		 "The recording is readable at any moment, also after kill -9. SIGUSR1 writes what "
		 "there is now. With COMMAND the exit status is the command's own, which is waited "
		 "for "
		 "where that goes on after the recording.",
	.examples = "pyebpf record -p 412 -d 30s\t30 seconds of a running process\n"
		    "pyebpf record -F 999 -- python3 app.py\ta program from start to end\n"
		    "pyebpf record --container 6f2a91c0d4e8\ta container, until it ends\n"
		    "pyebpf record --diff before.pyebpf -- python3 app.py\twhat changed since\n"
		    "pyebpf record -a -o all.pyebpf\tevery Python process, until Ctrl-C",
	.operands = "*",
	.run = run,
};
