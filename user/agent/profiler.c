/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/profiler.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "agent/governor.h"
#include "collect/privilege.h"
#include "base/apart.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "collect/event_links.h"
#include "collect/events.h"
#include "collect/recorder.h"
#include "target/cgroup.h"
#include "target/pid_namespace.h"

#define FOLLOW_NS NS_PER_SECOND
#define GOVERN_NS 30000000000ULL /* windows may be long */
#define RING_BYTES (8u << 20)
#define PROFILE_BYTES_MAX (24u << 20) /* a window that grows beyond ends early */

struct profiler {
	struct metrics *metrics;
	struct cgroup cgroup;
	struct pid_namespace pid_namespace;
	struct event_list events;         /* the recorder has them, too, */
	struct context_label_list labels; /* and these */
	struct recorder *recorder;
	struct governor governor;
	uint64_t rate_hz;               /* of ticks */
	uint64_t governed_ns, spent_ns; /* when last, and the cost until then */
	uint64_t window_ns, last_follow_ns;
	bool is_raised; /* what maps need stays in effect */
};

static int describe(const struct profiler *p, const struct config *c)
{
	struct recording *m = profile_recording(recorder_profile(p->recorder));
	char host[CONFIG_NODE_BYTES];
	int r;

	config_node_name(c, host);
	if ((r = recording_set_text(&m->host, host)) < 0 ||
	    (r = recording_set_text(&m->command, "pyebpf agent")) < 0)
		return r;
	return recording_set_text(&m->target, c->cgroup ?: c->pid_namespace ?: "all processes");
}

/* Windows of all hosts are not to end at once: each is longer or shorter by chance. */
static void draw_window(struct profiler *p, const struct config *c)
{
	uint64_t spread = c->window_ns / 100 * c->jitter_percent;
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = monotonic_ns();
	p->window_ns = c->window_ns - spread + random % (2 * spread + 1);
}

/* CPU time of the agent and of the sampler so far. */
static int read_cost(struct profiler *p, uint64_t *ns)
{
	uint64_t sampler_ns;
	int r = recorder_read_cost(p->recorder, &sampler_ns);

	if (r < 0)
		return r;
	*ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + apart_cpu_ns() + sampler_ns;
	return 0;
}

/* Takes up the cost since the last call, and changes the rate if it is not within the budget. */
static int govern(struct profiler *p, uint64_t now)
{
	uint64_t elapsed_ns = now - p->governed_ns, spent_ns;
	struct governor *g = &p->governor;
	uint32_t before = g->stride;
	bool has_changed;
	int r = read_cost(p, &spent_ns);

	if (r < 0)
		return r;
	has_changed = governor_update(g, spent_ns - p->spent_ns, elapsed_ns,
				      (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	p->governed_ns = now;
	p->spent_ns = spent_ns;
	metrics_set_governor(p->metrics, p->rate_hz, g, has_changed);
	if (!has_changed)
		return 0;
	log_warning("using %s of all CPUs, cpu_budget is %s: now taking 1 sample in %" PRIu32
		    ", was 1 in %" PRIu32 " (%.3g Hz)",
		    units_share(g->cost_ppm).s, units_share(g->budget_ppm).s, g->stride, before,
		    (double)p->rate_hz / g->stride);
	return recorder_set_stride(p->recorder, g->stride);
}

/* What it took to start is not held against the windows. */
static int start_governor(struct profiler *p, const struct config *c, uint64_t now)
{
	governor_init(&p->governor, c->cpu_budget_ppm, c->rate_hz, c->rate_min_hz);
	metrics_set_governor(p->metrics, c->rate_hz, &p->governor, false);
	p->governed_ns = now;
	return read_cost(p, &p->spent_ns);
}

/*
 * Linux before 6.0 asks for CAP_BPF at each use of a map where others may not use bpf(2) at all
 * (kernel.unprivileged_bpf_disabled).
 */
static int keep_what_maps_need(struct profiler *p)
{
	uint64_t ns;
	int r = recorder_read_cost(p->recorder, &ns);

	if (r != -EPERM)
		return r;
	err_clear();
	log_note("this kernel asks for CAP_BPF at each use of a map: it stays in effect");
	p->is_raised = true;
	return privilege_raise();
}

static int open_events(struct profiler *p, const struct recorder_opts *o)
{
	int r = events_resolve(&p->events);

	if (r < 0 || (r = recorder_open(o, &p->recorder)) < 0)
		return r;
	return recorder_attach(p->recorder);
}

/*
 * With the capabilities that this needs, which all that follows does without, and so do threads
 * that it starts.
 */
static int open_raised(struct profiler *p, const struct recorder_opts *o)
{
	int r = privilege_raise(), r_lower;

	if (r < 0)
		return r;
	r = open_events(p, o);
	r_lower = privilege_lower();
	if (r < 0)
		return r;
	return r_lower < 0 ? r_lower : keep_what_maps_need(p);
}

/* What a window took goes back to the system: one that was large is not paid for ever after. */
static void trim_heap(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

static int measure(struct profiler *p)
{
	struct usage maps[SESSION_USAGES], tables[METRICS_TABLES];
	int r = recorder_usage(p->recorder, maps, tables);

	if (r < 0)
		return r;
	tables[PIPELINE_USAGES] =
		(struct usage){ "window", profile_bytes(recorder_profile(p->recorder)),
				PROFILE_BYTES_MAX };
	metrics_set_usage(p->metrics, maps, tables);
	return 0;
}

static int open_places(struct profiler *p, const struct config *c)
{
	int r;

	if (c->cgroup && (r = cgroup_open(c->cgroup, &p->cgroup)) < 0)
		return r;
	if (!c->pid_namespace)
		return 0;
	r = pid_namespace_open(c->pid_namespace, &p->pid_namespace);
	return r < 0 ? err_wrap(r, "pid_namespace") : 0;
}

int profiler_new(const struct config *c, struct metrics *m, struct profiler **out)
{
	_cleanup_(profiler_freep) struct profiler *p = calloc(1, sizeof(*p));
	struct recorder_opts o = { .session = { .modes = (unsigned int)c->modes,
						.freq_hz = (uint32_t)c->rate_hz,
						.is_system_wide = !c->cgroup,
						.follow_children = true,
						.old_kernel = c->old_kernel == CHOICE_YES,
						.btf = c->btf,
						.ring_bytes = RING_BYTES } };
	int r;

	if (!p)
		return -ENOMEM;
	*p = (struct profiler){ .metrics = m,
				.cgroup = CGROUP_INIT,
				.pid_namespace = PID_NAMESPACE_INIT,
				.rate_hz = c->rate_hz };
	o.session.cgroup = c->cgroup ? &p->cgroup : NULL;
	o.session.pid_namespace = c->pid_namespace ? &p->pid_namespace : NULL;
	o.session.events = &p->events;
	o.session.labels = &p->labels;
	p->labels.no_resources = true; /* they are in the origin */
	if (c->events.len)
		o.session.modes |= MODE_EVENTS;
	if ((r = config_list_events(c, &p->events)) < 0 ||
	    (r = config_list_labels(c, &p->labels)) < 0 || (r = open_places(p, c)) < 0 ||
	    (r = open_raised(p, &o)) < 0 || (r = recorder_aim(p->recorder)) < 0 ||
	    (r = describe(p, c)) < 0)
		return r;
	*out = take_ptr(p);
	return 0;
}

void profiler_free(struct profiler *p)
{
	if (!p)
		return;
	recorder_free(p->recorder);
	events_release(&p->events);
	context_labels_release(&p->labels);
	cgroup_release(&p->cgroup);
	pid_namespace_release(&p->pid_namespace);
	free(p);
}

int profiler_start(struct profiler *p, const struct config *c)
{
	int r = recorder_begin(p->recorder);

	if (r < 0)
		return r;
	draw_window(p, c);
	r = start_governor(p, c, monotonic_ns());
	return r < 0 ? r : recorder_start(p->recorder);
}

struct profile *profiler_profile(struct profiler *p)
{
	return recorder_profile(p->recorder);
}

bool profiler_is_window_over(const struct profiler *p)
{
	const struct profile *window = recorder_profile(p->recorder);

	return monotonic_ns() - profile_recording(window)->start_monotonic_ns >= p->window_ns ||
	       profile_bytes(window) > PROFILE_BYTES_MAX;
}

int profiler_end_window(struct profiler *p)
{
	int r = recorder_cut(p->recorder);

	return r < 0 ? r : measure(p);
}

int profiler_next_window(struct profiler *p, const struct config *c)
{
	int r = recorder_begin(p->recorder);

	trim_heap();
	if (r < 0)
		return r;
	draw_window(p, c);
	return govern(p, monotonic_ns());
}

int profiler_finish(struct profiler *p)
{
	int r = recorder_finish(p->recorder);

	return r < 0 ? r : measure(p);
}

int profiler_set_budget(struct profiler *p, const struct config *c)
{
	int r = start_governor(p, c, monotonic_ns());

	return r < 0 ? r : recorder_set_stride(p->recorder, p->governor.stride);
}

/* The event of a CPU that has come online needs what the others needed. */
static int follow_cpus(struct profiler *p)
{
	int r = privilege_raise(), r_lower;

	if (r < 0)
		return r;
	r = recorder_follow_cpus(p->recorder);
	r_lower = p->is_raised ? 0 : privilege_lower();
	return r < 0 ? r : r_lower;
}

int profiler_step(struct profiler *p, int fd, int max_ms)
{
	int r = recorder_step(p->recorder, fd, max_ms);
	uint64_t now = monotonic_ns();

	if (r >= 0 && now - p->last_follow_ns >= FOLLOW_NS) {
		p->last_follow_ns = now;
		r = follow_cpus(p);
	}
	if (r >= 0 && now - p->governed_ns >= GOVERN_NS)
		r = govern(p, now);
	return r < 0 ? r : 0;
}
