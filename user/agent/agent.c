/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/governor.h"
#include "agent/kubernetes.h"
#include "agent/origins.h"
#include "agent/privilege.h"
#include "agent/sender.h"
#include "agent/spool.h"
#include "agent/window.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "collect/counters.h"
#include "collect/discover.h"
#include "collect/pipeline.h"
#include "collect/session.h"
#include "profile/profile.h"
#include "target/cgroup.h"
#include "target/pid_namespace.h"

#define POLL_MS 50
#define LOOK_NS 250000000ULL /* who is in a version 1 cgroup is asked this often */
#define SETTLE_NS 1000000000ULL
#define GOVERN_NS 30000000000ULL /* windows may be long */
#define RING_BYTES (8u << 20)
#define PROFILE_BYTES_MAX (24u << 20) /* a window that grows beyond ends early */

struct agent {
	const char *config_path;
	struct config *config;
	struct config fresh;       /* to go on with, if should_reload */
	struct config_stamp tried; /* of the file that was last read, right or wrong */
	struct metrics *metrics;
	struct cgroup cgroup;
	struct pid_namespace pid_namespace;
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct pipeline *pipeline;
	struct spool *spool;
	struct sender *sender;
	struct kubernetes *kubernetes; /* NULL: not asked for */
	struct origins *origins;       /* NULL: to files, which keep what /proc says as it is */
	int signal_fd;
	struct counters since; /* what the windows before this one have counted */
	struct governor governor;
	uint64_t governed_ns, spent_ns; /* when last, and the cost until then */
	uint64_t window_start_ns, window_ns, last_look_ns, last_settle_ns;
	bool should_stop, should_reload;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

int agent_block_signals(void)
{
	sigset_t set;

	signal_set(&set);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int watch_signals(struct agent *a)
{
	sigset_t set;

	signal_set(&set);
	a->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signal_fd < 0 ? err_set(-errno, "signalfd: %s", strerror(errno)) : 0;
}

static int describe(struct agent *a)
{
	struct metadata *m = &a->profile->meta;
	char host[CONFIG_NODE_BYTES];
	struct utsname u;
	int r;

	m->rate_hz = a->config->rate_hz;
	m->interval_ns = 1000000000ULL / a->config->rate_hz;
	m->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	config_node_name(a->config, host);
	uname(&u);
	if ((r = profile_set_text(&m->host, host)) < 0 ||
	    (r = profile_set_text(&m->kernel, u.release)) < 0 ||
	    (r = profile_set_text(&m->machine, u.machine)) < 0 ||
	    (r = profile_set_text(&m->version, PYEBPF_VERSION)) < 0 ||
	    (r = profile_set_text(&m->command, "pyebpf agent")) < 0 ||
	    (r = profile_set_text(&m->mode, "cpu")) < 0 ||
	    (r = profile_set_text(&m->event, "cpu-clock")) < 0)
		return r;
	return profile_set_text(&m->target, a->config->cgroup ?: a->config->pid_namespace ?: "all processes");
}

/* Windows of all hosts are not to end at once: each is longer or shorter by chance. */
static void begin_window(struct agent *a, uint64_t start_ns)
{
	struct metadata *m = &a->profile->meta;
	uint64_t spread = a->config->window_ns / 100 * a->config->jitter_percent;
	struct timespec t;
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = start_ns;
	clock_gettime(CLOCK_REALTIME, &t);
	m->start_realtime_ns = t.tv_sec * 1000000000ULL + t.tv_nsec - (now_ns() - start_ns);
	m->start_monotonic_ns = start_ns;
	m->duration_ns = 0;
	m->has_ended = 0;
	a->window_start_ns = start_ns;
	a->window_ns = a->config->window_ns - spread + random % (2 * spread + 1);
}

static int open_output(struct agent *a)
{
	struct spool_opts o = { .directory = a->config->spool_directory,
				.engine = engine_name(a->config->engine),
				.bytes_max = a->config->spool_bytes,
				.age_max_ns = a->config->spool_age_ns };
	int r;

	if (a->config->engine == ENGINE_FILES)
		return 0;
	if ((r = spool_open(&o, &a->spool)) < 0 ||
	    (r = kubernetes_new(a->config, a->metrics, &a->kubernetes)) < 0 ||
	    (r = origins_new(a->config, a->kubernetes, &a->origins)) < 0)
		return r;
	metrics_set_spool(a->metrics, a->spool);
	return sender_new(a->config, a->spool, a->metrics, &a->sender);
}

static int add_targets(struct agent *a)
{
	return a->config->cgroup ? discovery_follow_cgroup(a->discovery, &a->cgroup)
				 : discovery_add_all(a->discovery);
}

/* CPU time of the agent and of the sampler so far. */
static int read_cost(struct agent *a, uint64_t *ns)
{
	struct counters c;
	struct timespec own;
	int r = counters_read(a->session, a->pipeline, &c);

	if (r < 0)
		return r;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	*ns = own.tv_sec * 1000000000ULL + own.tv_nsec + counters_sampler_ns(&c);
	return 0;
}

/* Takes up the cost since the last call, and changes the rate if it is not within the budget. */
static int govern(struct agent *a, uint64_t now)
{
	uint64_t elapsed_ns = now - a->governed_ns, spent_ns;
	struct governor *g = &a->governor;
	uint32_t before = g->stride;
	bool has_changed;
	int r = read_cost(a, &spent_ns);

	if (r < 0)
		return r;
	has_changed = governor_update(g, spent_ns - a->spent_ns,
				      elapsed_ns * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	a->governed_ns = now;
	a->spent_ns = spent_ns;
	metrics_set_governor(a->metrics, a->config->rate_hz, g, has_changed);
	if (!has_changed)
		return 0;
	log_warning("cost %s of the CPUs, cpu_budget %s: a sample every %" PRIu32
		    " ticks, was %" PRIu32 " (%.3g Hz)",
		    units_share(g->cost_ppm).s, units_share(g->budget_ppm).s, g->stride, before,
		    (double)a->config->rate_hz / g->stride);
	return session_set_stride(a->session, g->stride);
}

/* What it took to start is not held against the windows. */
static int start_governor(struct agent *a, uint64_t now)
{
	const struct config *c = a->config;

	governor_init(&a->governor, c->cpu_budget_ppm, c->rate_hz, c->rate_min_hz);
	metrics_set_governor(a->metrics, c->rate_hz, &a->governor, false);
	a->governed_ns = now;
	return read_cost(a, &a->spent_ns);
}

/*
 * Linux before 6.0 asks for CAP_BPF at each use of a map where others may not use bpf(2) at all
 * (kernel.unprivileged_bpf_disabled).
 */
static int keep_what_maps_need(struct agent *a)
{
	uint64_t stats[STAT_COUNT_];
	int r = session_stats(a->session, stats);

	if (r != -EPERM)
		return r;
	err_clear();
	log_note("this kernel asks for CAP_BPF at each use of a map: it stays in effect");
	return privilege_raise();
}

static int attach(struct agent *a, const struct session_opts *o)
{
	int r;

	if ((r = session_open(o, &a->session)) < 0 ||
	    (r = discovery_new(a->session, &a->discovery)) < 0 || (r = add_targets(a)) < 0)
		return r;
	return session_attach(a->session);
}

/* With the capabilities that this needs, which all that follows does without. */
static int attach_raised(struct agent *a, const struct session_opts *o)
{
	int r = privilege_raise(), r_lower;

	if (r < 0)
		return r;
	r = attach(a, o);
	if (r < 0)
		return r;
	r_lower = privilege_lower();
	return r_lower < 0 ? r_lower : keep_what_maps_need(a);
}

static int start(struct agent *a)
{
	struct session_opts o = { .freq_hz = (uint32_t)a->config->rate_hz,
				  .is_system_wide = !a->config->cgroup,
				  .cgroup = a->config->cgroup ? &a->cgroup : NULL,
				  .follow_children = true,
				  .ring_bytes = RING_BYTES };
	uint64_t start_ns;
	int r;

	if ((r = watch_signals(a)) < 0 ||
	    (a->config->cgroup && (r = cgroup_open(a->config->cgroup, &a->cgroup)) < 0))
		return r;
	if (a->config->pid_namespace) {
		r = pid_namespace_open(a->config->pid_namespace, &a->pid_namespace);
		if (r < 0)
			return err_wrap(r, "pid_namespace");
		o.pid_namespace = &a->pid_namespace;
	}
	if ((r = open_output(a)) < 0 || (r = attach_raised(a, &o)) < 0 ||
	    (r = profile_new(&a->profile)) < 0 || (r = describe(a)) < 0)
		return r;
	start_ns = now_ns();
	if ((r = pipeline_new(a->session, a->discovery, a->profile, start_ns, &a->pipeline)) < 0)
		return r;
	begin_window(a, start_ns);
	r = start_governor(a, start_ns);
	return r < 0 ? r : session_start(a->session);
}

static int spool_body(void *arg, uint64_t samples, const void *body, size_t len)
{
	struct agent *a = arg;
	int r = spool_add(a->spool, a->profile->meta.start_realtime_ns, samples, body, len);

	if (r < 0)
		log_error("spool: %s: %" PRIu64 " samples lost", err_message(r), samples);
	return r == -ENOMEM ? r : 0; /* a full disk may have room again */
}

static uint64_t count_samples(const struct profile *p)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < p->samples.len; i++)
		ticks += p->samples.items[i].weight;
	return ticks;
}

/* What the window holds goes its way. */
static int hand_on(struct agent *a)
{
	struct window_stats stats = { .samples = count_samples(a->profile) };
	int r = 0;

	if (a->sender) {
		r = origins_look(a->origins, a->profile);
		if (!r)
			r = window_encode(a->config, a->origins, a->profile, spool_body, a, &stats);
		if (!r)
			r = origins_next_window(a->origins);
		sender_wake(a->sender);
	} else if (stats.samples && (r = files_write(a->config, a->profile)) < 0 && r != -ENOMEM) {
		log_error("%s: %" PRIu64 " samples lost", err_message(r), stats.samples);
		r = 0; /* a full disk may have room again */
	}
	if (r < 0)
		return r;
	log_note("window: %s, %" PRIu64 " samples, %" PRIu64 " services, %s",
		 units_ns(a->profile->meta.duration_ns).s, stats.samples, stats.services,
		 units_bytes(stats.bytes).s);
	return metrics_add_window(a->metrics, a->profile, &stats);
}

/* What a window took goes back to the system: one that was large is not paid for ever after. */
static void trim_heap(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

static int measure(struct agent *a)
{
	struct usage maps[SESSION_USAGES], tables[METRICS_TABLES];
	int r = session_usage(a->session, maps);

	if (r < 0)
		return r;
	pipeline_usage(a->pipeline, tables);
	tables[PIPELINE_USAGES] =
		(struct usage){ "window", profile_bytes(a->profile), PROFILE_BYTES_MAX };
	metrics_set_usage(a->metrics, maps, tables);
	return 0;
}

static int end_window(struct agent *a, bool is_last)
{
	uint64_t now = now_ns();
	struct counters c;
	int r;

	r = is_last ? session_drain(a->session, pipeline_record, a->pipeline)
		    : session_consume(a->session, 0, pipeline_record, a->pipeline);
	if (r < 0 || (r = pipeline_settle(a->pipeline, now, is_last)) < 0 ||
	    (r = counters_read(a->session, a->pipeline, &c)) < 0 ||
	    (r = counters_store(&c, &a->since, a->profile)) < 0)
		return r;
	a->since = c;
	a->profile->meta.duration_ns = now - a->window_start_ns;
	a->profile->meta.has_ended = 1;
	if ((r = measure(a)) < 0 || (r = hand_on(a)) < 0 || (r = profile_reset(a->profile)) < 0)
		return r;
	pipeline_set_start(a->pipeline, now);
	begin_window(a, now);
	r = pipeline_forget_ids(a->pipeline);
	trim_heap();
	return r;
}

static void reload(struct agent *a)
{
	struct config fresh;
	int r;

	config_stamp_get(a->config_path, &a->tried);
	r = config_read(a->config_path, &fresh);
	metrics_add_reload(a->metrics, r >= 0);
	if (r < 0) {
		log_error("reload: %s; the old configuration stays", err_message(r));
		return;
	}
	config_release(&a->fresh);
	a->fresh = fresh;
	a->should_reload = true;
}

/* A file that is away may be on its way back. */
static void reload_if_changed(struct agent *a)
{
	struct config_stamp now;

	config_stamp_get(a->config_path, &now);
	if (now.inode && !config_stamp_equal(&now, &a->tried))
		reload(a);
}

static void handle_signals(struct agent *a)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(a);
		else
			a->should_stop = true;
	}
}

static bool is_window_over(const struct agent *a, uint64_t now)
{
	return now - a->window_start_ns >= a->window_ns ||
	       profile_bytes(a->profile) > PROFILE_BYTES_MAX;
}

static int step(struct agent *a)
{
	uint64_t now = now_ns();
	int r = 0;

	if (a->config->cgroup && !a->cgroup.is_v2 && now - a->last_look_ns >= LOOK_NS) {
		a->last_look_ns = now;
		r = discovery_follow_cgroup(a->discovery, &a->cgroup);
	}
	if (!r && now - a->last_settle_ns >= SETTLE_NS) {
		a->last_settle_ns = now;
		metrics_beat(a->metrics);
		reload_if_changed(a);
		r = pipeline_settle(a->pipeline, now, false);
	}
	if (!r && a->origins)
		r = origins_look(a->origins, a->profile);
	if (!r && is_window_over(a, now)) {
		r = end_window(a, false);
		return r < 0 ? r : govern(a, now_ns());
	}
	return !r && now - a->governed_ns >= GOVERN_NS ? govern(a, now) : r;
}

static int loop(struct agent *a)
{
	struct pollfd fds[] = {
		{ .fd = session_poll_fd(a->session), .events = POLLIN },
		{ .fd = a->signal_fd, .events = POLLIN },
	};
	int r;

	while (!a->should_stop && !a->should_reload) {
		if (poll(fds, 2, discovery_timeout_ms(a->discovery, POLL_MS)) < 0 && errno != EINTR)
			return err_set(-errno, "poll: %s", strerror(errno));
		if ((r = session_consume(a->session, 0, pipeline_record, a->pipeline)) < 0 ||
		    (r = discovery_step(a->discovery)) < 0 || (r = step(a)) < 0)
			return r;
		handle_signals(a);
	}
	return 0;
}

static void agent_release(struct agent *a)
{
	metrics_set_ready(a->metrics, false);
	pipeline_free(a->pipeline);
	profile_free(a->profile);
	discovery_free(a->discovery);
	session_free(a->session);
	cgroup_release(&a->cgroup);
	pid_namespace_release(&a->pid_namespace);
	origins_free(a->origins);
	kubernetes_free(a->kubernetes);
	sender_free(a->sender);
	metrics_set_spool(a->metrics, NULL);
	spool_free(a->spool);
	closep(&a->signal_fd);
}

static int record(struct agent *a)
{
	int r = start(a), r_end;

	if (r < 0)
		return r;
	metrics_set_ready(a->metrics, true);
	log_note("recording at %s Hz, windows of %s, to %s", units_hz(a->config->rate_hz).s,
		 units_ns(a->config->window_ns).s, a->config->url ?: a->config->directory);
	r = loop(a);
	session_stop(a->session);
	r_end = end_window(a, true);
	if (a->sender)
		sender_stop(a->sender, a->should_stop ? SENDER_DRAIN : SENDER_FINISH);
	return r < 0 ? r : r_end;
}

int agent_run(const char *config_path, struct config *config, struct metrics *m)
{
	struct agent a = { .config_path = config_path,
			   .config = config,
			   .tried = config->stamp,
			   .metrics = m,
			   .cgroup = CGROUP_INIT,
			   .pid_namespace = PID_NAMESPACE_INIT,
			   .signal_fd = -1 };
	int r = record(&a);

	agent_release(&a);
	if (r < 0 || !a.should_reload) {
		config_release(&a.fresh);
		return r < 0 ? r : AGENT_STOPPED;
	}
	config_release(config);
	*config = a.fresh;
	return AGENT_RELOAD;
}
