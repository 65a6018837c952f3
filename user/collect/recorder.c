/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/recorder.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/priority.h"
#include "base/strbuf.h"
#include "collect/counters.h"
#include "collect/discover.h"
#include "collect/modes.h"
#include "target/runtime.h"

#define LOOK_NS 250000000ULL /* who is in a version 1 cgroup is asked this often */
#define SETTLE_NS NS_PER_SECOND
#define CLOSING_PASSES 64 /* each fills half of the ring */

struct recorder {
	struct recorder_opts opts;
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct pipeline *pipeline; /* NULL: no part has begun */
	struct counters since;     /* what the parts before this one have counted */
	uint64_t last_look_ns, last_settle_ns;
	struct priority priority;
	bool awaits_python; /* a target had none, nor had its children */
};

static int describe_mode(const struct recorder *rec, struct recording *m)
{
	_cleanup_(strbuf_releasep) struct strbuf mode = STRBUF_INIT;
	int r = modes_put(rec->opts.session.modes, &mode);

	if (r < 0)
		return r;
	return recording_set_text(&m->mode, mode.len ? strbuf_str(&mode) : "events");
}

/* What has samples taken: "cpu-clock,page-faults,rss_stat". */
static int describe_events(const struct recorder *rec, struct recording *m)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	const struct event *e;

	if (session_has_source(rec->session, SOURCE_TICKS))
		strbuf_puts(&text, "cpu-clock");
	for (uint32_t i = 0; (e = session_event(rec->session, i)); i++)
		strbuf_appendf(&text, "%s%s", text.len ? "," : "", event_source(e));
	if (strbuf_error(&text))
		return -ENOMEM;
	return recording_set_text(&m->event, strbuf_str(&text));
}

static int describe(struct recorder *rec)
{
	struct recording *m = profile_recording(rec->profile);
	struct utsname u;
	int r;

	m->rate_hz = session_has_source(rec->session, SOURCE_TICKS) ? rec->opts.session.freq_hz : 0;
	m->interval_ns = session_interval_ns(rec->session);
	m->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uname(&u);
	if ((r = recording_set_text(&m->kernel, u.release)) < 0 ||
	    (r = recording_set_text(&m->machine, u.machine)) < 0 ||
	    (r = recording_set_text(&m->version, PYEBPF_VERSION)) < 0 ||
	    (r = describe_mode(rec, m)) < 0)
		return r;
	return describe_events(rec, m);
}

int recorder_open(const struct recorder_opts *opts, struct recorder **out)
{
	_cleanup_(recorder_freep) struct recorder *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec)
		return -ENOMEM;
	rec->opts = *opts;
	if (!rec->opts.session.modes)
		rec->opts.session.modes = MODE_CPU;
	if ((r = session_open(&rec->opts.session, &rec->session)) < 0 ||
	    (r = profile_new(&rec->profile)) < 0 || (r = describe(rec)) < 0)
		return r;
	*out = take_ptr(rec);
	return 0;
}

void recorder_free(struct recorder *rec)
{
	if (!rec)
		return;
	priority_give_back(&rec->priority);
	pipeline_free(rec->pipeline);
	profile_free(rec->profile);
	discovery_free(rec->discovery);
	session_free(rec->session);
	free(rec);
}

int recorder_attach(struct recorder *rec)
{
	return session_attach(rec->session);
}

/* A child of a program without Python may run Python later; none of a zombie or kernel thread. */
static int aim_at_family(struct recorder *rec, pid_t pid)
{
	int r = discovery_add_family(rec->discovery, pid);
	struct proc_stat stat;

	if (r != -ENOENT)
		return r;
	if ((r = runtime_check_process(pid, &stat)) < 0)
		return r;
	log_warning("%s: waiting for a child process that runs Python", err_message(-ENOENT));
	err_clear();
	rec->awaits_python = true;
	return 0;
}

int recorder_aim(struct recorder *rec)
{
	const struct recorder_opts *o = &rec->opts;
	int r = discovery_new(rec->session, &rec->discovery);

	if (r < 0)
		return r;
	if (o->session.cgroup)
		return discovery_follow_cgroup(rec->discovery, o->session.cgroup);
	if (o->session.is_system_wide)
		return discovery_add_all(rec->discovery);
	if (o->command)
		return discovery_add_command(rec->discovery, o->pids->items[0], o->command);
	for (size_t i = 0; i < o->pids->len && r >= 0; i++)
		r = o->session.follow_children
			    ? aim_at_family(rec, o->pids->items[i])
			    : discovery_add_target(rec->discovery, o->pids->items[i]);
	return r;
}

int recorder_clear(struct recorder *rec)
{
	int r = profile_reset(rec->profile);

	return r < 0 ? r : pipeline_forget_ids(rec->pipeline);
}

static int begin_first(struct recorder *rec, uint64_t start_ns)
{
	const struct pipeline_opts opts = { .start_ns = start_ns,
					    .interval_ns = session_interval_ns(rec->session),
					    .modes = rec->opts.session.modes,
					    .has_opcodes = rec->opts.session.has_opcodes,
					    .has_native = rec->opts.session.has_native,
					    .has_async = rec->opts.session.has_async,
					    .keeps_loop = rec->opts.keeps_loop,
					    .has_sources = rec->opts.has_sources,
					    .has_filter = session_has_filter(rec->session),
					    .labels = rec->opts.session.labels };

	return pipeline_new(rec->session, rec->discovery, rec->profile, &opts, &rec->pipeline);
}

static int begin_next(struct recorder *rec, uint64_t start_ns)
{
	pipeline_set_start(rec->pipeline, start_ns);
	return recorder_clear(rec);
}

bool recorder_awaits_python(const struct recorder *rec)
{
	return rec->awaits_python && !pipeline_stats(rec->pipeline)->processes;
}

int recorder_begin(struct recorder *rec)
{
	struct recording *m = profile_recording(rec->profile);
	uint64_t now = monotonic_ns();
	uint64_t start_ns = rec->pipeline ? m->start_monotonic_ns + m->duration_ns : now;

	m->start_realtime_ns = clock_ns(CLOCK_REALTIME) - (now - start_ns);
	m->start_monotonic_ns = start_ns;
	m->duration_ns = 0;
	m->has_ended = 0;
	rec->last_settle_ns = start_ns;
	return rec->pipeline ? begin_next(rec, start_ns) : begin_first(rec, start_ns);
}

int recorder_start(struct recorder *rec)
{
	int r = session_start(rec->session);

	if (!r)
		priority_keep(&rec->priority, monotonic_ns());
	return r;
}

static int list_thread(const struct thread_times_event *e, void *arg)
{
	int r = times_list_thread(arg, e);

	return r == -EBADMSG ? 0 : r;
}

/*
 * What the threads' times are worth to the samples that wait for them. After the list: who has a
 * sample from before it then, has it in the ring. now_ns: the part's end, where it is that.
 */
static int settle_times(struct recorder *rec, uint64_t now_ns, enum times_depth depth)
{
	struct times *t = pipeline_times(rec->pipeline);
	int r;

	times_begin_list(t, monotonic_ns());
	if ((r = session_list_thread_times(rec->session, list_thread, t)) < 0 ||
	    (r = session_consume(rec->session, 0, pipeline_record, rec->pipeline)) < 0)
		return r;
	return times_settle(t, now_ns, depth);
}

static int end_times(struct recorder *rec, uint64_t now_ns)
{
	return pipeline_times(rec->pipeline) ? settle_times(rec, now_ns, TIMES_REST) : 0;
}

static int wait(const struct recorder *rec, int fd, int max_ms)
{
	struct pollfd fds[] = {
		{ .fd = session_poll_fd(rec->session), .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	if (poll(fds, 2, max_ms) < 0 && errno != EINTR)
		return err_set(-errno, "poll: %s", strerror(errno));
	return 0;
}

static int look_into_cgroup(struct recorder *rec, uint64_t now)
{
	const struct cgroup *c = rec->opts.session.cgroup;

	if (!c || c->is_v2 || now - rec->last_look_ns < LOOK_NS)
		return 0;
	rec->last_look_ns = now;
	return discovery_follow_cgroup(rec->discovery, c);
}

static int settle(struct recorder *rec, uint64_t now, enum pipeline_wait wait)
{
	rec->last_settle_ns = now;
	return pipeline_settle(rec->pipeline, now, wait);
}

static int settle_all(struct recorder *rec, enum pipeline_wait wait)
{
	uint64_t now = monotonic_ns();
	int r = pipeline_times(rec->pipeline) ? settle_times(rec, now, TIMES_ALL) : 0;

	return r < 0 ? r : settle(rec, now, wait);
}

int recorder_settle(struct recorder *rec)
{
	return settle_all(rec, PIPELINE_WAITS);
}

int recorder_settle_to_write(struct recorder *rec)
{
	return settle_all(rec, PIPELINE_WRITES);
}

static int step_times(struct recorder *rec, uint64_t now)
{
	const struct times *t = pipeline_times(rec->pipeline);

	if (!t || !times_is_due(t, now))
		return 0;
	return settle_times(rec, now, times_is_full(t) ? TIMES_ALL : TIMES_GROUPS);
}

int recorder_step(struct recorder *rec, int fd, int max_ms)
{
	uint64_t now;
	int r;

	max_ms = pipeline_patience(rec->pipeline, session_patience(rec->session, max_ms));
	if ((r = wait(rec, fd, max_ms)) < 0 ||
	    (r = session_consume(rec->session, 0, pipeline_record, rec->pipeline)) < 0 ||
	    (r = pipeline_step(rec->pipeline)) < 0)
		return r;
	now = monotonic_ns();
	priority_keep(&rec->priority, now);
	if ((r = look_into_cgroup(rec, now)) < 0 || (r = step_times(rec, now)) < 0 ||
	    (r = session_visit_threads(rec->session)) < 0 || now - rec->last_settle_ns < SETTLE_NS)
		return r;
	r = settle(rec, now, PIPELINE_WAITS);
	return r < 0 ? r : 1;
}

int recorder_follow_cpus(struct recorder *rec)
{
	return session_follow_cpus(rec->session);
}

int recorder_set_stride(struct recorder *rec, uint32_t stride)
{
	return session_set_stride(rec->session, stride);
}

static int end_part(struct recorder *rec, uint64_t now)
{
	struct recording *m = profile_recording(rec->profile);
	struct counters c;
	int r = counters_read(rec->session, rec->pipeline, &c);

	if (r < 0 || (r = counters_store(&c, &rec->since, rec->profile)) < 0)
		return r;
	rec->since = c;
	m->duration_ns = now - m->start_monotonic_ns;
	m->has_ended = 1;
	return 0;
}

/* What threads wait for now, up to now. As many samples as threads: the ring may not hold them. */
static int close_spans(struct recorder *rec, uint64_t now)
{
	int left = 1, r = 0;

	for (int i = 0; i < CLOSING_PASSES && left > 0 && r >= 0; i++) {
		left = session_close_spans(rec->session, now);
		r = session_consume(rec->session, 0, pipeline_record, rec->pipeline);
	}
	return left < 0 ? left : r;
}

int recorder_catch_up(struct recorder *rec)
{
	int r = pipeline_times(rec->pipeline) ? close_spans(rec, monotonic_ns()) : 0;

	return r < 0 ? r : recorder_settle(rec);
}

int recorder_cut(struct recorder *rec)
{
	uint64_t now = monotonic_ns();
	int r;

	pipeline_set_end(rec->pipeline, now);
	if ((r = close_spans(rec, now)) < 0 || (r = end_times(rec, now)) < 0 ||
	    (r = pipeline_settle(rec->pipeline, now, PIPELINE_ENDS_PART)) < 0)
		return r;
	return end_part(rec, now);
}

/*
 * Spans are closed twice: who comes back while that is done the first time is still seen to; what
 * is left to the second time is as short as the stop took. So it all ends where nothing runs any
 * more, and nothing is later.
 */
int recorder_finish(struct recorder *rec)
{
	int r = close_spans(rec, monotonic_ns());
	uint64_t now;

	if (r < 0)
		return r;
	now = session_stop(rec->session);
	if ((r = close_spans(rec, now)) < 0 ||
	    (r = session_drain(rec->session, pipeline_record, rec->pipeline)) < 0)
		return r;
	priority_give_back(&rec->priority);
	if ((r = end_times(rec, now)) < 0 ||
	    (r = pipeline_settle(rec->pipeline, now, PIPELINE_ENDS)) < 0)
		return r;
	return end_part(rec, now);
}

struct profile *recorder_profile(const struct recorder *rec)
{
	return rec->profile;
}

struct profile *recorder_take_profile(struct recorder *rec)
{
	return take_ptr(rec->profile);
}

int recorder_store_counters(struct recorder *rec)
{
	struct counters c;
	int r = counters_read(rec->session, rec->pipeline, &c);

	return r < 0 ? r : counters_store(&c, &rec->since, rec->profile);
}

int recorder_store_total(const struct recorder *rec, struct profile *to)
{
	static const struct counters none;

	return counters_store(&rec->since, &none, to);
}

uint64_t recorder_target_events(const struct recorder *rec)
{
	return counters_of_targets(&rec->since);
}

int recorder_list_processes(struct recorder *rec, struct pids *out)
{
	return session_list_recorded(rec->session, out);
}

bool recorder_find_interpreter(const struct recorder *rec, uint32_t number,
			       struct interpreter_text *out)
{
	bool is_there = rec->discovery && discovery_layout(rec->discovery, number);

	if (is_there)
		discovery_describe(rec->discovery, number, out);
	return is_there;
}

int recorder_find_python(struct recorder *rec, pid_t *python)
{
	_cleanup_(pids_releasep) struct pids pids = VEC_INIT;
	int r = session_list_recorded(rec->session, &pids);
	struct proc_row row;

	*python = 0;
	for (size_t i = 0; i < pids.len && r >= 0 && !*python; i++)
		if (!session_find_process(rec->session, pids.items[i], &row) &&
		    row.layout < LAYOUT_UNSURE)
			*python = pids.items[i];
	return r < 0 ? r : pids.len > 0;
}

int recorder_read_cost(struct recorder *rec, uint64_t *ns)
{
	return counters_read_cost(rec->session, ns);
}

bool recorder_has_met_label(const struct recorder *rec, size_t number)
{
	return pipeline_has_met_label(rec->pipeline, number);
}

const struct task_stacks_stats *recorder_tasks(const struct recorder *rec)
{
	return pipeline_tasks(rec->pipeline);
}

const struct times_sum *recorder_times(const struct recorder *rec)
{
	const struct times *t = pipeline_times(rec->pipeline);

	return t ? times_sum(t) : NULL;
}

const struct pipeline_stats *recorder_stats(const struct recorder *rec)
{
	return pipeline_stats(rec->pipeline);
}

int recorder_usage(struct recorder *rec, struct usage maps[SESSION_USAGES],
		   struct usage tables[PIPELINE_USAGES])
{
	int r = session_usage(rec->session, maps);

	if (r >= 0)
		pipeline_usage(rec->pipeline, tables);
	return r;
}
