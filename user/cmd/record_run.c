/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/environment.h"
#include "cmd/record.h"
#include "cmd/stopped.h"
#include "collect/event_links.h"
#include "collect/privilege.h"

#define STEP_MS 50
#define COMMAND_LINE_MAX (1u << 20)
#define PROGRESS_NS 500000000ULL
#define REST_MAX_NS \
	200000000ULL       /* a process that is left behind is found to run Python, or is not */
#define COMMAND_END_MS 200 /* a command that does not end with the recording goes on */

/* What ends or interrupts a recording arrives on one descriptor. SIGCHLD: the COMMAND has ended. */
static int watch_signals(struct record_run *r)
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

static int describe(const struct record_run *r)
{
	_cleanup_(strbuf_releasep) struct strbuf target = STRBUF_INIT, command = STRBUF_INIT;
	struct recording *m = profile_recording(recorder_profile(r->recorder));
	const struct pids *pids = &r->targets.pids;
	char host[256] = "";
	int e;

	gethostname(host, sizeof(host) - 1);
	if ((e = record_targets_put(&r->targets, &target)) < 0 ||
	    (e = own_command_line(&command)) < 0 || (e = recording_set_text(&m->host, host)) < 0 ||
	    (e = recording_set_text(&m->command, strbuf_str(&command))) < 0 ||
	    (e = recording_set_text(&m->target, strbuf_str(&target))) < 0)
		return e;
	return environment_describe(m, pids->len == 1 ? pids->items[0] : 0);
}

static int open_with(struct record_run *r)
{
	const struct record_opts *o = r->o;
	bool has_cgroup = record_targets_has_cgroup(&r->targets);
	const struct recorder_opts opts = {
		.session = { .modes = o->modes,
			     .events = &o->events,
			     .labels = &o->labels,
			     .has_async = o->async,
			     .freq_hz = o->freq_hz,
			     .is_system_wide = o->all,
			     .follow_children = !o->no_children || has_cgroup,
			     .cgroup = has_cgroup ? &r->targets.cgroup : NULL,
			     .ring_bytes = o->ring_bytes,
			     .cpus = o->cpus.items,
			     .cpu_count = o->cpus.len,
			     .has_opcodes = o->has_opcodes,
			     .has_native = o->has_native,
			     .no_gc = o->no_gc,
			     .no_task_work = o->no_task_work,
			     .old_kernel = o->kernel.is_old,
			     .btf = o->kernel.btf },
		.has_sources = true,
		.keeps_loop = o->async == ASYNC_LOOP,
		.pids = &r->targets.pids,
		.command = r->targets.command->items[0],
	};

	return recorder_open(&opts, &r->recorder);
}

static int open_recorder(struct record_run *r)
{
	struct record_opts *o = r->o;
	int e = events_resolve(&o->events);

	if (e < 0)
		return e;
	e = open_with(r);
	if (e == -EOPNOTSUPP && o->can_do_without_waits && o->modes & MODE_OFF_CPU) {
		o->modes &= ~(unsigned int)MODE_OFF_CPU;
		e = open_with(r);
	}
	if (e < 0 || (e = recorder_attach(r->recorder)) < 0)
		return e;
	r->is_attached = true;
	return recorder_aim(r->recorder);
}

int record_run_aim(struct record_run *r)
{
	const struct privilege_needs needs = { .for_record = true,
					       .has_events = r->o->events.len > 0,
					       .starts_programs = r->o->outputs.should_open };
	int e;

	/* The COMMAND has been forked by then, and keeps what we had. */
	if ((e = record_targets_prepare(&r->targets)) < 0 || (e = privilege_shed(&needs)) < 0 ||
	    (e = open_recorder(r)) < 0 || (e = record_targets_watch(&r->targets)) < 0 ||
	    (e = recorder_begin(r->recorder)) < 0)
		return e;
	if (record_targets_have_others(&r->targets))
		file_keep_private(0600);
	return describe(r);
}

int record_run_start(struct record_run *r)
{
	int e;

	if ((e = watch_signals(r)) < 0 || (e = record_run_aim(r)) < 0 ||
	    (e = record_files_open(&r->files, r->recorder)) < 0)
		return e;
	return record_run_go(r);
}

/* Where the kernel cannot, the recording is none the worse. */
static void confine(const struct record_run *r)
{
	int e = r->o->outputs.should_open ? 0 : privilege_confine();

	if (e < 0)
		log_debug("%s", err_message(e));
}

int record_run_go(struct record_run *r)
{
	int e = recorder_start(r->recorder);

	if (e < 0)
		return e;
	confine(r);
	r->sampling_ns = monotonic_ns();
	if (!record_targets_has_command(&r->targets))
		return 0;
	return launch_go(&r->targets.launch, r->targets.command->items[0]);
}

static void clear_progress(struct record_run *r)
{
	if (r->has_progress)
		fputs("\r\033[K", stderr);
	r->has_progress = false;
}

static void show_progress(struct record_run *r)
{
	const struct pipeline_stats *stats = recorder_stats(r->recorder);
	uint64_t now = monotonic_ns();

	if (now - r->last_progress_ns < PROGRESS_NS || log_level() < LOG_LEVEL_WARNING ||
	    !isatty(STDERR_FILENO))
		return;
	r->last_progress_ns = now;
	fprintf(stderr, "\r\033[Krecording %s, %s samples of %s process%s, %s  (Ctrl-C to stop)",
		units_ns((now - r->sampling_ns) / NS_PER_SECOND * NS_PER_SECOND).s,
		units_count(stats->samples).s, units_count(stats->processes).s,
		stats->processes == 1 ? "" : "es", units_bytes(writer_size(r->files.writer)).s);
	r->has_progress = true;
}

static int tell_of_stopped(struct record_run *r)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	pid_t pid = stopped_step(r, monotonic_ns());

	if (pid <= 0)
		return pid;
	if (stopped_put_note(pid, r->o->modes, &text) < 0)
		return -ENOMEM;
	clear_progress(r);
	log_warning("%s", strbuf_str(&text));
	return 0;
}

static int handle_signals(struct record_run *r)
{
	struct launch *l = &r->targets.launch;
	struct signalfd_siginfo info;
	int e = 0;

	while (e >= 0 && read(r->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGUSR1:
			e = record_files_write_all(&r->files);
			break;
		case SIGCHLD:
			e = launch_reap(l, false);
			break;
		case SIGTERM:
		case SIGHUP:
			/* From a terminal the command gets it as we do; from kill it would not. */
			if (l->pid && !l->has_ended && info.ssi_code <= 0)
				kill(l->pid, info.ssi_signo);
			r->should_stop = true;
			break;
		default:
			r->should_stop = true;
		}
		if (r->should_stop)
			file_end_soon();
	}
	return e;
}

/* Until the ring is looked at again, or -d is over. */
static int step_ms(const struct record_run *r)
{
	uint64_t elapsed = monotonic_ns() - r->sampling_ns, max_ns = r->o->duration_ns;

	if (!max_ns || elapsed + STEP_MS * 1000000ULL <= max_ns)
		return STEP_MS;
	return elapsed < max_ns ? (max_ns - elapsed) / 1000000 + 1 : 0;
}

/* The processes of -p have ended; a child goes on. */
static void tell_of_child(struct record_run *r, pid_t child)
{
	if (r->has_told_of_child)
		return;
	r->has_told_of_child = true;
	clear_progress(r);
	log_warning(
		"pid %d has ended; pid %d, which it began, is recorded until it ends, or Ctrl-C",
		r->targets.pids.items[0], child);
}

/* The COMMAND has ended; a process that it left behind goes on. */
static void tell_of_rest(struct record_run *r, pid_t child)
{
	clear_progress(r);
	log_warning("pid %d, which %s began, goes on and is not recorded any more", child,
		    r->targets.command->items[0]);
	if (log_level() >= LOG_LEVEL_WARNING)
		cmd_try("pyebpf record -p %d", child);
}

/* A process that was left behind runs no Python, as far as was seen since it is alone. */
static bool has_looked_at_rest(struct record_run *r)
{
	uint64_t now = monotonic_ns();

	if (!r->rest_ns)
		r->rest_ns = now;
	return now - r->rest_ns >= REST_MAX_NS;
}

int record_run_has_ended(struct record_run *r, pid_t *rest)
{
	int left;

	*rest = 0;
	if (!record_targets_are_gone(&r->targets))
		return 0;
	if (record_targets_has_cgroup(&r->targets) || r->o->no_children)
		return 1;
	left = recorder_find_python(r->recorder, rest);
	if (left <= 0)
		return left < 0 ? left : 1;
	if (!*rest)
		return has_looked_at_rest(r);
	r->rest_ns = 0;
	return record_targets_has_command(&r->targets);
}

static int is_over(struct record_run *r)
{
	pid_t rest;
	int has_ended;

	if (r->o->duration_ns && monotonic_ns() - r->sampling_ns >= r->o->duration_ns)
		return 1;
	has_ended = record_run_has_ended(r, &rest);
	if (rest > 0)
		(has_ended ? tell_of_rest : tell_of_child)(r, rest);
	return has_ended;
}

int record_run_loop(struct record_run *r)
{
	int e = 0, is_time;

	while (!r->should_stop && !e) {
		is_time = recorder_step(r->recorder, r->signal_fd, step_ms(r));
		if (is_time < 0)
			return is_time;
		if ((e = handle_signals(r)) < 0 ||
		    (e = record_files_step(&r->files, is_time)) < 0 ||
		    (e = recorder_follow_cpus(r->recorder)) < 0 || (e = tell_of_stopped(r)) < 0)
			return e;
		if ((e = is_over(r)) == 0)
			show_progress(r);
	}
	return e < 0 ? e : 0;
}

int record_run_finish(struct record_run *r)
{
	bool is_whole;
	int e;

	clear_progress(r);
	if (!r->files.writer)
		return 0; /* the next file could not be opened */
	if ((e = recorder_finish(r->recorder)) < 0)
		return e;
	is_whole = !r->o->outputs.rotate_ns && record_targets_have_run_whole(&r->targets);
	if ((e = record_files_end(&r->files, is_whole)) < 0)
		return e;
	return recorder_store_total(r->recorder, r->files.top.profile);
}

/* What a terminal sends the command gets as well, and what kill sends from here. */
static void pass_signals_on(const struct record_run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_code <= 0 && info.ssi_signo != SIGCHLD && info.ssi_signo != SIGUSR1)
			kill(r->targets.launch.pid, (int)info.ssi_signo);
}

static void tell_that_command_goes_on(const struct record_run *r)
{
	char text[ERR_BYTES];

	if (log_level() < LOG_LEVEL_WARNING)
		return;
	snprintf(text, sizeof(text), "recording finished; waiting for %s (pid %d) to exit",
		 r->targets.command->items[0], r->targets.launch.pid);
	log_line("pyebpf record: ", text);
	cmd_try("Ctrl-C or kill %d, to end it", r->targets.launch.pid);
}

int record_run_await_command(struct record_run *r)
{
	struct pollfd p = { .fd = r->signal_fd, .events = POLLIN };
	int timeout_ms = COMMAND_END_MS, e = 0;

	while (!r->targets.launch.has_ended && e >= 0) {
		if (poll(&p, 1, timeout_ms) == 0) {
			tell_that_command_goes_on(r);
			timeout_ms = -1;
		}
		pass_signals_on(r);
		e = launch_reap(&r->targets.launch, false);
	}
	return e;
}

void record_run_release(struct record_run *r)
{
	record_files_release(&r->files);
	recorder_free(r->recorder);
	record_targets_release(&r->targets);
	stopped_watch_release(&r->stopped);
	closep(&r->signal_fd);
}
