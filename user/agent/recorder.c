/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "agent/governor.h"
#include "agent/privilege.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "collect/counters.h"
#include "collect/discover.h"
#include "collect/pipeline.h"
#include "collect/session.h"
#include "target/cgroup.h"
#include "target/pid_namespace.h"

#define LOOK_NS 250000000ULL /* who is in a version 1 cgroup is asked this often */
#define SETTLE_NS NS_PER_SECOND
#define GOVERN_NS 30000000000ULL /* windows may be long */
#define RING_BYTES (8u << 20)
#define PROFILE_BYTES_MAX (24u << 20) /* a window that grows beyond ends early */

struct recorder {
	struct metrics *metrics;
	struct cgroup cgroup;
	struct pid_namespace pid_namespace;
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct pipeline *pipeline;
	struct counters since; /* what the windows before this one have counted */
	struct governor governor;
	uint64_t rate_hz;               /* of ticks */
	uint64_t governed_ns, spent_ns; /* when last, and the cost until then */
	uint64_t window_start_ns, window_ns, last_look_ns, last_settle_ns;
	bool has_cgroup;
	bool is_raised; /* what maps need stays in effect */
};

static int describe(struct recorder *rec, const struct config *c)
{
	struct recording *m = profile_recording(rec->profile);
	char host[CONFIG_NODE_BYTES];
	struct utsname u;
	int r;

	m->rate_hz = rec->rate_hz;
	m->interval_ns = NS_PER_SECOND / rec->rate_hz;
	m->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	config_node_name(c, host);
	uname(&u);
	if ((r = recording_set_text(&m->host, host)) < 0 ||
	    (r = recording_set_text(&m->kernel, u.release)) < 0 ||
	    (r = recording_set_text(&m->machine, u.machine)) < 0 ||
	    (r = recording_set_text(&m->version, PYEBPF_VERSION)) < 0 ||
	    (r = recording_set_text(&m->command, "pyebpf agent")) < 0 ||
	    (r = recording_set_text(&m->mode, "cpu")) < 0 ||
	    (r = recording_set_text(&m->event, "cpu-clock")) < 0)
		return r;
	return recording_set_text(&m->target, c->cgroup ?: c->pid_namespace ?: "all processes");
}

/* Windows of all hosts are not to end at once: each is longer or shorter by chance. */
static void begin_window(struct recorder *rec, const struct config *c, uint64_t start_ns)
{
	struct recording *m = profile_recording(rec->profile);
	uint64_t spread = c->window_ns / 100 * c->jitter_percent;
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = start_ns;
	m->start_realtime_ns = clock_ns(CLOCK_REALTIME) - (monotonic_ns() - start_ns);
	m->start_monotonic_ns = start_ns;
	m->duration_ns = 0;
	m->has_ended = 0;
	rec->window_start_ns = start_ns;
	rec->window_ns = c->window_ns - spread + random % (2 * spread + 1);
}

static int add_targets(struct recorder *rec)
{
	return rec->has_cgroup ? discovery_follow_cgroup(rec->discovery, &rec->cgroup)
			       : discovery_add_all(rec->discovery);
}

/* CPU time of the agent and of the sampler so far. */
static int read_cost(struct recorder *rec, uint64_t *ns)
{
	uint64_t sampler_ns;
	int r = counters_read_cost(rec->session, &sampler_ns);

	if (r < 0)
		return r;
	*ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + sampler_ns;
	return 0;
}

/* Takes up the cost since the last call, and changes the rate if it is not within the budget. */
static int govern(struct recorder *rec, uint64_t now)
{
	uint64_t elapsed_ns = now - rec->governed_ns, spent_ns;
	struct governor *g = &rec->governor;
	uint32_t before = g->stride;
	bool has_changed;
	int r = read_cost(rec, &spent_ns);

	if (r < 0)
		return r;
	has_changed = governor_update(g, spent_ns - rec->spent_ns, elapsed_ns,
				      (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	rec->governed_ns = now;
	rec->spent_ns = spent_ns;
	metrics_set_governor(rec->metrics, rec->rate_hz, g, has_changed);
	if (!has_changed)
		return 0;
	log_warning("cost %s of the CPUs, cpu_budget %s: a sample every %" PRIu32
		    " ticks, was %" PRIu32 " (%.3g Hz)",
		    units_share(g->cost_ppm).s, units_share(g->budget_ppm).s, g->stride, before,
		    (double)rec->rate_hz / g->stride);
	return session_set_stride(rec->session, g->stride);
}

/* What it took to start is not held against the windows. */
static int start_governor(struct recorder *rec, const struct config *c, uint64_t now)
{
	governor_init(&rec->governor, c->cpu_budget_ppm, c->rate_hz, c->rate_min_hz);
	metrics_set_governor(rec->metrics, c->rate_hz, &rec->governor, false);
	rec->governed_ns = now;
	return read_cost(rec, &rec->spent_ns);
}

/*
 * Linux before 6.0 asks for CAP_BPF at each use of a map where others may not use bpf(2) at all
 * (kernel.unprivileged_bpf_disabled).
 */
static int keep_what_maps_need(struct recorder *rec)
{
	uint64_t ns;
	int r = counters_read_cost(rec->session, &ns);

	if (r != -EPERM)
		return r;
	err_clear();
	log_note("this kernel asks for CAP_BPF at each use of a map: it stays in effect");
	rec->is_raised = true;
	return privilege_raise();
}

static int attach(struct recorder *rec, const struct session_opts *o)
{
	int r = session_open(o, &rec->session);

	return r < 0 ? r : session_attach(rec->session);
}

/*
 * With the capabilities that this needs, which all that follows does without, and so do threads
 * that it starts.
 */
static int attach_raised(struct recorder *rec, const struct session_opts *o)
{
	int r = privilege_raise(), r_lower;

	if (r < 0)
		return r;
	r = attach(rec, o);
	r_lower = privilege_lower();
	if (r < 0)
		return r;
	return r_lower < 0 ? r_lower : keep_what_maps_need(rec);
}

static int open_session(struct recorder *rec, const struct session_opts *o)
{
	int r = attach_raised(rec, o);

	if (r < 0 || (r = discovery_new(rec->session, &rec->discovery)) < 0)
		return r;
	return add_targets(rec);
}

/* What a window took goes back to the system: one that was large is not paid for ever after. */
static void trim_heap(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

static int measure(struct recorder *rec)
{
	struct usage maps[SESSION_USAGES], tables[METRICS_TABLES];
	int r = session_usage(rec->session, maps);

	if (r < 0)
		return r;
	pipeline_usage(rec->pipeline, tables);
	tables[PIPELINE_USAGES] =
		(struct usage){ "window", profile_bytes(rec->profile), PROFILE_BYTES_MAX };
	metrics_set_usage(rec->metrics, maps, tables);
	return 0;
}

static int open_places(struct recorder *rec, const struct config *c)
{
	int r;

	if (c->cgroup && (r = cgroup_open(c->cgroup, &rec->cgroup)) < 0)
		return r;
	rec->has_cgroup = c->cgroup;
	if (!c->pid_namespace)
		return 0;
	r = pid_namespace_open(c->pid_namespace, &rec->pid_namespace);
	return r < 0 ? err_wrap(r, "pid_namespace") : 0;
}

int recorder_new(const struct config *c, struct metrics *m, struct recorder **out)
{
	_cleanup_(recorder_freep) struct recorder *rec = calloc(1, sizeof(*rec));
	struct session_opts o = { .freq_hz = (uint32_t)c->rate_hz,
				  .is_system_wide = !c->cgroup,
				  .follow_children = true,
				  .ring_bytes = RING_BYTES };
	int r;

	if (!rec)
		return -ENOMEM;
	*rec = (struct recorder){ .metrics = m,
				  .cgroup = CGROUP_INIT,
				  .pid_namespace = PID_NAMESPACE_INIT,
				  .rate_hz = c->rate_hz };
	o.cgroup = c->cgroup ? &rec->cgroup : NULL;
	o.pid_namespace = c->pid_namespace ? &rec->pid_namespace : NULL;
	if ((r = open_places(rec, c)) < 0 || (r = open_session(rec, &o)) < 0 ||
	    (r = profile_new(&rec->profile)) < 0 || (r = describe(rec, c)) < 0)
		return r;
	*out = take_ptr(rec);
	return 0;
}

void recorder_free(struct recorder *rec)
{
	if (!rec)
		return;
	pipeline_free(rec->pipeline);
	profile_free(rec->profile);
	discovery_free(rec->discovery);
	session_free(rec->session);
	cgroup_release(&rec->cgroup);
	pid_namespace_release(&rec->pid_namespace);
	free(rec);
}

int recorder_start(struct recorder *rec, const struct config *c)
{
	uint64_t start_ns = monotonic_ns();
	int r = pipeline_new(rec->session, rec->discovery, rec->profile, start_ns, &rec->pipeline);

	if (r < 0)
		return r;
	begin_window(rec, c, start_ns);
	r = start_governor(rec, c, start_ns);
	return r < 0 ? r : session_start(rec->session);
}

void recorder_stop(struct recorder *rec)
{
	session_stop(rec->session);
}

int recorder_poll_fd(const struct recorder *rec)
{
	return session_poll_fd(rec->session);
}

int recorder_timeout_ms(const struct recorder *rec, int max_ms)
{
	return discovery_timeout_ms(rec->discovery, max_ms);
}

struct profile *recorder_profile(struct recorder *rec)
{
	return rec->profile;
}

bool recorder_is_window_over(const struct recorder *rec)
{
	return monotonic_ns() - rec->window_start_ns >= rec->window_ns ||
	       profile_bytes(rec->profile) > PROFILE_BYTES_MAX;
}

int recorder_end_window(struct recorder *rec, bool is_last)
{
	uint64_t now = monotonic_ns();
	struct counters c;
	int r;

	r = is_last ? session_drain(rec->session, pipeline_record, rec->pipeline)
		    : session_consume(rec->session, 0, pipeline_record, rec->pipeline);
	if (r < 0 || (r = pipeline_settle(rec->pipeline, now, is_last)) < 0 ||
	    (r = counters_read(rec->session, rec->pipeline, &c)) < 0 ||
	    (r = counters_store(&c, &rec->since, rec->profile)) < 0)
		return r;
	rec->since = c;
	profile_recording(rec->profile)->duration_ns = now - rec->window_start_ns;
	profile_recording(rec->profile)->has_ended = 1;
	return measure(rec);
}

int recorder_next_window(struct recorder *rec, const struct config *c)
{
	uint64_t start_ns = rec->window_start_ns + profile_recording(rec->profile)->duration_ns;
	int r = profile_reset(rec->profile);

	if (r < 0)
		return r;
	pipeline_set_start(rec->pipeline, start_ns);
	begin_window(rec, c, start_ns);
	r = pipeline_forget_ids(rec->pipeline);
	trim_heap();
	return r < 0 ? r : govern(rec, monotonic_ns());
}

int recorder_set_budget(struct recorder *rec, const struct config *c)
{
	int r = start_governor(rec, c, monotonic_ns());

	return r < 0 ? r : session_set_stride(rec->session, rec->governor.stride);
}

/* The event of a CPU that has come online needs what the others needed. */
static int follow_cpus(struct recorder *rec)
{
	int r = privilege_raise(), r_lower;

	if (r < 0)
		return r;
	r = session_follow_cpus(rec->session);
	r_lower = rec->is_raised ? 0 : privilege_lower();
	return r < 0 ? r : r_lower;
}

static int settle(struct recorder *rec, uint64_t now)
{
	int r = pipeline_settle(rec->pipeline, now, false);

	return r < 0 ? r : follow_cpus(rec);
}

int recorder_step(struct recorder *rec)
{
	uint64_t now = monotonic_ns();
	int r;

	if ((r = session_consume(rec->session, 0, pipeline_record, rec->pipeline)) < 0 ||
	    (r = discovery_step(rec->discovery)) < 0)
		return r;
	if (rec->has_cgroup && !rec->cgroup.is_v2 && now - rec->last_look_ns >= LOOK_NS) {
		rec->last_look_ns = now;
		r = discovery_follow_cgroup(rec->discovery, &rec->cgroup);
	}
	if (!r && now - rec->last_settle_ns >= SETTLE_NS) {
		rec->last_settle_ns = now;
		r = settle(rec, now);
	}
	return !r && now - rec->governed_ns >= GOVERN_NS ? govern(rec, now) : r;
}
