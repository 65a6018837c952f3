/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/libraries.h"
#include "base/apart.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/process_limit.h"

#define OUTCOMES_MAX 16
#define ALIVE_NS 60000000000ULL
#define METRIC_UNITS (UNIT_COUNT + 1)

/* Upper bounds of a histogram, seconds; Pyroscope answers after 0.5. */
static const double push_bounds[] = { 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30 };
#define PUSH_BOUNDS (sizeof(push_bounds) / sizeof(push_bounds[0]))

struct metrics_output {
	struct metrics *all;
	char *name; /* NULL: of the only one, that has none */
	struct spool *spool;
	struct spool_stats now;                        /* of the spool, while they are printed */
	uint64_t spool_lost_samples[SPOOL_LOSS_COUNT]; /* of those before it */
	uint64_t pushes[OUTCOMES_MAX];                 /* as verdict_outcomes[] */
	uint64_t push_times[PUSH_BOUNDS + 1];          /* up to each bound, and above */
	uint64_t push_ns, pushed_bytes, stored_samples, dropped_samples, in_flight;
	uint64_t last_stored_ns; /* CLOCK_REALTIME; at first when it was first heard of */
};

struct counters {
	struct counter *items; /* a VEC; names owned */
	size_t len;
	size_t cap;
};

static void counters_release(struct counters *c)
{
	for (size_t i = 0; i < c->len; i++)
		free(c->items[i].name);
	vec_release(c);
}

struct metrics {
	pthread_mutex_t lock;
	VEC(struct metrics_output *) outputs;
	uint64_t windows, samples, excluded, services, merged, encoded_bytes;
	uint64_t reloads, bad_reloads;
	uint64_t refreshes, bad_refreshes, pods;
	struct governor governor;
	uint64_t rate_hz, rate_changes;
	struct counters counters;
	struct counters kinds[METRIC_UNITS]; /* sums of values, by enum sample_unit */
	struct usage maps[SESSION_USAGES], tables[METRICS_TABLES]; /* no names: not known yet */
	uint64_t last_beat_ns;                                     /* CLOCK_MONOTONIC */
	uint64_t start_ns;                                         /* CLOCK_REALTIME */
	bool is_ready;
};

int metrics_new(struct metrics **out)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	m->last_beat_ns = monotonic_ns();
	m->start_ns = clock_ns(CLOCK_REALTIME);
	*out = m;
	return 0;
}

static void output_free(struct metrics_output *o)
{
	if (o)
		free(o->name);
	free(o);
}
DEFINE_CLEANUP(struct metrics_output *, output_free)

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	counters_release(&m->counters);
	for (size_t i = 0; i < METRIC_UNITS; i++)
		counters_release(&m->kinds[i]);
	for (size_t i = 0; i < m->outputs.len; i++)
		output_free(m->outputs.items[i]);
	vec_release(&m->outputs);
	free(m);
}

static int counters_add(struct counters *counters, const char *name, uint64_t value)
{
	struct counter added = { .value = value };

	for (size_t i = 0; i < counters->len; i++) {
		if (!strcmp(counters->items[i].name, name)) {
			counters->items[i].value += value;
			return 0;
		}
	}
	added.name = strdup(name);
	if (!added.name || vec_push(counters, added) < 0) {
		free(added.name);
		return -ENOMEM;
	}
	return 0;
}

/* What the values of a kind sum up to, in its unit: of ticks of known length that is CPU time. */
static int add_kind(struct metrics *m, const struct profile *p, size_t kind, uint64_t value)
{
	uint64_t interval_ns = profile_recording(p)->interval_ns;
	const struct sample_kind *k = kind == KIND_TICKS ? NULL : &p->kinds.items[kind - 1];
	uint64_t period = k ? k->period : interval_ns;

	if (!value || !period)
		return 0;
	return counters_add(&m->kinds[k ? k->unit : UNIT_NS],
			    k ? strtab_get(p->strings, k->name) : "cpu", value * period);
}

static int add_kinds(struct metrics *m, const struct profile *p)
{
	_cleanup_(freep) uint64_t *values = calloc(p->kinds.len + 1, sizeof(*values));
	int r = values ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->samples.len && !r; i++)
		values[p->samples.items[i].kind] += p->samples.items[i].value;
	for (size_t kind = 0; kind <= p->kinds.len && !r; kind++)
		r = add_kind(m, p, kind, values[kind]);
	return r;
}

int metrics_add_window(struct metrics *m, const struct profile *p, const struct window_stats *w)
{
	const struct recording *window = profile_recording(p);
	int r = 0;

	pthread_mutex_lock(&m->lock);
	m->windows++;
	m->samples += w->samples;
	m->services = w->services;
	m->merged += w->merged;
	m->excluded += w->excluded;
	m->encoded_bytes += w->bytes;
	for (size_t i = 0; i < window->counters.len && !r; i++)
		r = counters_add(&m->counters, window->counters.items[i].name,
				 window->counters.items[i].value);
	if (!r)
		r = add_kinds(m, p);
	pthread_mutex_unlock(&m->lock);
	return r;
}

static int add_output(struct metrics *m, const char *name, struct metrics_output **out)
{
	_cleanup_(output_freep) struct metrics_output *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->all = m;
	o->last_stored_ns = m->outputs.len ? clock_ns(CLOCK_REALTIME) : m->start_ns;
	o->name = name ? strdup(name) : NULL;
	if (name && !o->name)
		return -ENOMEM;
	if ((r = vec_push(&m->outputs, o)) < 0)
		return r;
	*out = take_ptr(o);
	return 0;
}

static struct metrics_output *find_output(const struct metrics *m, const char *name)
{
	for (size_t i = 0; i < m->outputs.len; i++) {
		const char *known = m->outputs.items[i]->name;

		if (name && known ? !strcmp(name, known) : name == known)
			return m->outputs.items[i];
	}
	return NULL;
}

int metrics_get_output(struct metrics *m, const char *name, struct metrics_output **out)
{
	struct metrics_output *found;
	int r = 0;

	pthread_mutex_lock(&m->lock);
	found = find_output(m, name);
	if (!found)
		r = add_output(m, name, &found);
	pthread_mutex_unlock(&m->lock);
	if (!r)
		*out = found;
	return r;
}

void metrics_add_push(struct metrics_output *o, const struct push_result *r, size_t bytes,
		      const struct push_samples *samples)
{
	size_t bound = 0;

	while (bound < PUSH_BOUNDS && (double)r->took_ns / 1e9 > push_bounds[bound])
		bound++;
	pthread_mutex_lock(&o->all->lock);
	for (int i = 0; verdict_outcomes[i]; i++)
		o->pushes[i] += r->verdict.outcome == verdict_outcomes[i];
	o->push_times[bound]++;
	o->push_ns += r->took_ns;
	o->pushed_bytes += bytes;
	o->stored_samples += samples->stored;
	o->dropped_samples += samples->dropped;
	if (samples->stored)
		o->last_stored_ns = clock_ns(CLOCK_REALTIME);
	pthread_mutex_unlock(&o->all->lock);
}

void metrics_set_in_flight(struct metrics_output *o, size_t requests)
{
	pthread_mutex_lock(&o->all->lock);
	o->in_flight = requests;
	pthread_mutex_unlock(&o->all->lock);
}

void metrics_set_governor(struct metrics *m, uint64_t rate_hz, const struct governor *g,
			  bool has_changed)
{
	pthread_mutex_lock(&m->lock);
	m->governor = *g;
	m->rate_hz = rate_hz;
	m->rate_changes += has_changed;
	pthread_mutex_unlock(&m->lock);
}

void metrics_add_reload(struct metrics *m, bool is_good)
{
	pthread_mutex_lock(&m->lock);
	m->reloads += is_good;
	m->bad_reloads += !is_good;
	pthread_mutex_unlock(&m->lock);
}

void metrics_add_refresh(struct metrics *m, bool is_good)
{
	pthread_mutex_lock(&m->lock);
	m->refreshes += is_good;
	m->bad_refreshes += !is_good;
	pthread_mutex_unlock(&m->lock);
}

void metrics_set_pods(struct metrics *m, size_t pods)
{
	pthread_mutex_lock(&m->lock);
	m->pods = pods;
	pthread_mutex_unlock(&m->lock);
}

void metrics_set_usage(struct metrics *m, const struct usage maps[SESSION_USAGES],
		       const struct usage tables[METRICS_TABLES])
{
	pthread_mutex_lock(&m->lock);
	memcpy(m->maps, maps, sizeof(m->maps));
	memcpy(m->tables, tables, sizeof(m->tables));
	pthread_mutex_unlock(&m->lock);
}

static void replace_spool(struct metrics_output *o, struct spool *s)
{
	struct spool_stats stats = { 0 };

	if (o->spool && o->spool != s)
		spool_stats(o->spool, &stats);
	for (size_t i = 0; i < SPOOL_LOSS_COUNT; i++)
		o->spool_lost_samples[i] += stats.lost_samples[i];
	o->spool = s;
}

void metrics_set_spool(struct metrics_output *o, struct spool *s)
{
	pthread_mutex_lock(&o->all->lock);
	replace_spool(o, s);
	pthread_mutex_unlock(&o->all->lock);
}

void metrics_forget_spool(struct metrics_output *o, const struct spool *s)
{
	pthread_mutex_lock(&o->all->lock);
	if (o->spool == s)
		replace_spool(o, NULL);
	pthread_mutex_unlock(&o->all->lock);
}

void metrics_beat(struct metrics *m)
{
	pthread_mutex_lock(&m->lock);
	m->last_beat_ns = monotonic_ns();
	pthread_mutex_unlock(&m->lock);
}

void metrics_set_ready(struct metrics *m, bool is_ready)
{
	pthread_mutex_lock(&m->lock);
	m->is_ready = is_ready;
	pthread_mutex_unlock(&m->lock);
}

bool metrics_is_alive(struct metrics *m)
{
	bool is_alive;

	pthread_mutex_lock(&m->lock);
	is_alive = monotonic_ns() - m->last_beat_ns < ALIVE_NS;
	pthread_mutex_unlock(&m->lock);
	return is_alive;
}

bool metrics_is_ready(struct metrics *m)
{
	bool is_ready;

	pthread_mutex_lock(&m->lock);
	is_ready = m->is_ready;
	pthread_mutex_unlock(&m->lock);
	return is_ready;
}

static void put_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
	strbuf_appendf(out, "# HELP pyebpf_%s %s\n# TYPE pyebpf_%s %s\n", name, help, name, type);
}

static void put(struct strbuf *out, const char *name, const char *type, const char *help,
		double value)
{
	put_head(out, name, type, help);
	strbuf_appendf(out, "pyebpf_%s %.17g\n", name, value);
}

static void put_governor(const struct metrics *m, struct strbuf *out)
{
	const struct governor *g = &m->governor;

	if (!g->stride)
		return; /* not started yet */
	put(out, "rate_hertz", "gauge", "Samples a second on each CPU, as cpu_budget allows.",
	    (double)m->rate_hz / g->stride);
	put(out, "rate_changes_total", "counter", "How often cpu_budget has changed it.",
	    (double)m->rate_changes);
	put(out, "cost_ratio", "gauge",
	    "CPU time of the agent and the sampler over that of all CPUs, when last measured.",
	    (double)g->cost_ppm / 1e6);
	put(out, "cpu_budget_ratio", "gauge", "The share of all CPUs that it may be.",
	    (double)g->budget_ppm / 1e6);
}

static void put_own_cost(struct strbuf *out)
{
	_cleanup_(freep) char *statm = NULL;
	unsigned long long pages = 0;
	struct rusage u;
	size_t len;

	getrusage(RUSAGE_SELF, &u);
	put(out, "agent_cpu_seconds_total", "counter",
	    "CPU time of the agent, without the sampler.",
	    (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6 +
		    (double)apart_cpu_ns() / 1e9);
	if (file_read("/proc/self/statm", 4096, &statm, &len) < 0 ||
	    sscanf(statm, "%*u %llu", &pages) != 1)
		return;
	put(out, "agent_resident_bytes", "gauge", "Memory of the agent.",
	    (double)pages * (double)sysconf(_SC_PAGESIZE));
}

/* What is counted of an output, a value each. */
struct output_metric {
	const char *name, *type, *help;
	double (*value)(const struct metrics_output *o);
};

static double spool_entries(const struct metrics_output *o)
{
	return (double)o->now.entries;
}

static double spool_samples(const struct metrics_output *o)
{
	return (double)o->now.samples;
}

static double spool_bytes(const struct metrics_output *o)
{
	return (double)o->now.bytes;
}

static double spool_age_s(const struct metrics_output *o)
{
	uint64_t now_ns = clock_ns(CLOCK_REALTIME);

	return o->now.entries && now_ns > o->now.oldest_ns
		       ? (double)(now_ns - o->now.oldest_ns) / 1e9
		       : 0;
}

static double in_flight(const struct metrics_output *o)
{
	return (double)o->in_flight;
}

static double pushed_bytes(const struct metrics_output *o)
{
	return (double)o->pushed_bytes;
}

static double stored_samples(const struct metrics_output *o)
{
	return (double)o->stored_samples;
}

static double dropped_samples(const struct metrics_output *o)
{
	return (double)o->dropped_samples;
}

static double last_stored_s(const struct metrics_output *o)
{
	return (double)o->last_stored_ns / 1e9;
}

/* clang-format off */
static const struct output_metric output_metrics[] = {
	{ "spool_entries", "gauge", "Profiles that wait to be sent.", spool_entries },
	{ "spool_samples", "gauge", "Samples in them.", spool_samples },
	{ "spool_bytes", "gauge", "Bytes they take on disk.", spool_bytes },
	{ "spool_oldest_age_seconds", "gauge",
	  "How long the oldest of them has waited since its window began; 0: none waits.", spool_age_s },
	{ "pushes_in_flight", "gauge", "Requests that wait for an answer.", in_flight },
	{ "push_bytes_total", "counter", "Bytes of their bodies.", pushed_bytes },
	{ "push_stored_samples_total", "counter", "Samples the engine has taken.", stored_samples },
	{ "push_dropped_samples_total", "counter", "Samples the engine would not take.",
	  dropped_samples },
	{ "last_stored_timestamp_seconds", "gauge",
	  "When the engine last stored a profile; before it did, when the agent started.", last_stored_s },
};
/* clang-format on */

/* key="value", and output="NAME" of one that has a name, in braces. key NULL: the name alone. */
static void put_labels(const struct metrics_output *o, const char *key, const char *value,
		       struct strbuf *out)
{
	if (!o->name && !key)
		return;
	strbuf_putc(out, '{');
	if (o->name)
		strbuf_appendf(out, "output=\"%s\"%s", o->name, key ? "," : "");
	if (key)
		strbuf_appendf(out, "%s=\"%s\"", key, value);
	strbuf_putc(out, '}');
}

static void put_count(const struct metrics_output *o, const char *name, const char *key,
		      const char *value, uint64_t count, struct strbuf *out)
{
	strbuf_appendf(out, "pyebpf_%s", name);
	put_labels(o, key, value, out);
	strbuf_appendf(out, " %" PRIu64 "\n", count);
}

static void put_losses(const struct metrics_output *o, struct strbuf *out)
{
	static const char *const losses[] = {
#define X(id, name) [id] = name,
		SPOOL_LOSSES(X)
#undef X
	};

	for (size_t i = 0; i < SPOOL_LOSS_COUNT; i++)
		put_count(o, "spool_lost_samples_total", "reason", losses[i],
			  o->spool_lost_samples[i] + o->now.lost_samples[i], out);
}

static void put_outcomes(const struct metrics_output *o, struct strbuf *out)
{
	for (int i = 0; verdict_outcomes[i]; i++)
		put_count(o, "pushes_total", "outcome", verdict_outcomes[i], o->pushes[i], out);
}

static void put_push_times(const struct metrics_output *o, struct strbuf *out)
{
	uint64_t count = 0;
	char bound[16];

	for (size_t i = 0; i < PUSH_BOUNDS; i++) {
		snprintf(bound, sizeof(bound), "%g", push_bounds[i]);
		put_count(o, "push_duration_seconds_bucket", "le", bound, count += o->push_times[i],
			  out);
	}
	count += o->push_times[PUSH_BOUNDS];
	put_count(o, "push_duration_seconds_bucket", "le", "+Inf", count, out);
	strbuf_puts(out, "pyebpf_push_duration_seconds_sum");
	put_labels(o, NULL, NULL, out);
	strbuf_appendf(out, " %.17g\n", (double)o->push_ns / 1e9);
	put_count(o, "push_duration_seconds_count", NULL, NULL, count, out);
}

static void put_each(const struct metrics *m,
		     void (*put_one)(const struct metrics_output *o, struct strbuf *out),
		     struct strbuf *out)
{
	for (size_t i = 0; i < m->outputs.len; i++)
		put_one(m->outputs.items[i], out);
}

static void put_output_metric(const struct metrics *m, const struct output_metric *metric,
			      struct strbuf *out)
{
	put_head(out, metric->name, metric->type, metric->help);
	for (size_t i = 0; i < m->outputs.len; i++) {
		strbuf_appendf(out, "pyebpf_%s", metric->name);
		put_labels(m->outputs.items[i], NULL, NULL, out);
		strbuf_appendf(out, " %.17g\n", metric->value(m->outputs.items[i]));
	}
}

static void put_outputs(const struct metrics *m, struct strbuf *out)
{
	for (size_t i = 0; i < m->outputs.len; i++) {
		struct metrics_output *o = m->outputs.items[i];

		o->now = (struct spool_stats){ 0 };
		if (o->spool)
			spool_stats(o->spool, &o->now);
	}
	for (size_t i = 0; i < sizeof(output_metrics) / sizeof(output_metrics[0]); i++)
		put_output_metric(m, &output_metrics[i], out);
	put_head(out, "spool_lost_samples_total", "counter",
		 "Samples that left the spool without being sent, by reason.");
	put_each(m, put_losses, out);
	put_head(out, "pushes_total", "counter", "Requests to the engine, by outcome.");
	put_each(m, put_outcomes, out);
	put_head(out, "push_duration_seconds", "histogram", "Time that requests took.");
	put_each(m, put_push_times, out);
}

static void put_pods(const struct metrics *m, struct strbuf *out)
{
	put(out, "kubernetes_pods", "gauge", "Pods of this node whose names are known.",
	    (double)m->pods);
	put(out, "kubernetes_refreshes_total", "counter", "Lists of pods taken over.",
	    (double)m->refreshes);
	put(out, "kubernetes_refresh_failures_total", "counter", "Lists of pods not to be had.",
	    (double)m->bad_refreshes);
}

/* One metric of several things, and another of their bounds. */
struct usage_metric {
	const char *name, *help, *max_name, *max_help;
	const char *label;
};

static void put_usages(const struct usage_metric *metric, const struct usage *u, size_t count,
		       struct strbuf *out)
{
	if (!u->name)
		return; /* no window is over yet */
	put_head(out, metric->name, "gauge", metric->help);
	for (size_t i = 0; i < count; i++)
		strbuf_appendf(out, "pyebpf_%s{%s=\"%s\"} %" PRIu64 "\n", metric->name,
			       metric->label, u[i].name, u[i].used);
	put_head(out, metric->max_name, "gauge", metric->max_help);
	for (size_t i = 0; i < count; i++)
		if (u[i].max)
			strbuf_appendf(out, "pyebpf_%s{%s=\"%s\"} %" PRIu64 "\n", metric->max_name,
				       metric->label, u[i].name, u[i].max);
}

static void put_memory(const struct metrics *m, struct strbuf *out)
{
	static const struct usage_metric
		maps = { "bpf_map_entries",
			 "Entries of BPF maps and caches at the end of the last window; of "
			 "`events` "
			 "the most bytes that waited in it.",
			 "bpf_map_max_entries", "What they have room for.", "map" },
		tables = { "table_bytes",
			   "Memory of the agent's tables, as the last window left them; of "
			   "`questions` about processes the most that waited at once.",
			   "table_max_bytes", "What they may grow to.", "table" };

	put_usages(&maps, m->maps, SESSION_USAGES, out);
	put_usages(&tables, m->tables, METRICS_TABLES, out);
}

/* Names are of our own tables: letters, digits, underscores. */
static void put_ticks(const struct metrics *m, struct strbuf *out)
{
	put_head(out, "recorder_total", "counter",
		 "What became of ticks, and what was met: the counters of `pyebpf record`.");
	for (size_t i = 0; i < m->counters.len; i++)
		strbuf_appendf(out, "pyebpf_recorder_total{counter=\"%s\"} %" PRIu64 "\n",
			       m->counters.items[i].name, m->counters.items[i].value);
}

/* Of all processes, also of services that are left out. */
static void put_kinds(const struct metrics *m, struct strbuf *out)
{
	static const struct {
		const char *name, *help;
		double scale;
	} units[METRIC_UNITS] = {
		[UNIT_NS] = { "recorded_seconds_total",
			      "Time in samples, by kind: cpu (running), off-cpu (waiting), "
			      "gil-contention (others waiting for the GIL).",
			      1e-9 },
		[UNIT_BYTES] = { "recorded_bytes_total", "The same of what is bytes.", 1 },
		[UNIT_COUNT] = { "recorded_events_total", "The same of events.", 1 },
	};

	for (size_t unit = 0; unit < METRIC_UNITS; unit++) {
		if (m->kinds[unit].len)
			put_head(out, units[unit].name, "counter", units[unit].help);
		for (size_t i = 0; i < m->kinds[unit].len; i++)
			strbuf_appendf(out, "pyebpf_%s{kind=\"%s\"} %.15g\n", units[unit].name,
				       m->kinds[unit].items[i].name,
				       (double)m->kinds[unit].items[i].value * units[unit].scale);
	}
}

int metrics_print(struct metrics *m, struct strbuf *out)
{
	pthread_mutex_lock(&m->lock);
	put_head(out, "build_info", "gauge", "1; its label is the version.");
	strbuf_puts(out, "pyebpf_build_info{version=\"" PYEBPF_VERSION "\"} 1\n");
	put(out, "start_time_seconds", "gauge", "When the agent started.",
	    (double)m->start_ns / 1e9);
	put(out, "windows_total", "counter", "Windows recorded.", (double)m->windows);
	put(out, "samples_total", "counter", "Samples recorded of the services that are wanted.",
	    (double)m->samples);
	put_kinds(m, out);
	put(out, "excluded_samples_total", "counter",
	    "Samples of services that are left out, by services.include and exclude.",
	    (double)m->excluded);
	put(out, "services", "gauge", "Services in the last window.", (double)m->services);
	put(out, "services_merged_total", "counter",
	    "Services without a place of their own (services.max), counted as `other`.",
	    (double)m->merged);
	put(out, "encoded_bytes_total", "counter", "Bytes of request bodies made.",
	    (double)m->encoded_bytes);
	put(out, "reloads_total", "counter", "Configurations taken over.", (double)m->reloads);
	put(out, "reload_failures_total", "counter", "Configurations refused.",
	    (double)m->bad_reloads);
	put_pods(m, out);
	put_ticks(m, out);
	put_outputs(m, out);
	put_governor(m, out);
	put_memory(m, out);
	put_own_cost(out);
	pthread_mutex_unlock(&m->lock);
	return strbuf_error(out);
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status,
			      const char *type, const char *text)
{
	struct MHD_Response *r = libmicrohttpd.create_response_from_buffer(
		strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;

	if (!r)
		return MHD_NO;
	libmicrohttpd.add_response_header(r, "Content-Type", type);
	result = libmicrohttpd.queue_response(connection, status, r);
	libmicrohttpd.destroy_response(r);
	return result;
}

static enum MHD_Result answer_probe(struct MHD_Connection *connection, bool is_good)
{
	return answer(connection, is_good ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
		      "text/plain; charset=utf-8", is_good ? "ok\n" : "no\n");
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_len, void **state)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	struct metrics *m = arg;

	(void)version, (void)upload, (void)state;
	if ((strcmp(method, "GET") && strcmp(method, "HEAD")) || *upload_len)
		return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "GET only\n");
	if (!strcmp(url, "/healthz"))
		return answer_probe(connection, metrics_is_alive(m));
	if (!strcmp(url, "/readyz"))
		return answer_probe(connection, metrics_is_ready(m));
	if (strcmp(url, "/metrics"))
		return answer(connection, MHD_HTTP_NOT_FOUND, "text/plain",
			      "there are /metrics, /healthz, /readyz\n");
	if (metrics_print(m, &text) < 0)
		return MHD_NO;
	return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
		      strbuf_str(&text));
}

struct metrics_server {
	struct MHD_Daemon *daemon;
};

#define SERVER_WORDS "http.port: start a server"

int metrics_serve(struct metrics *m, const struct config *c, struct metrics_server **out)
{
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
	struct addrinfo *address;
	struct metrics_server *s;
	int r = libmicrohttpd_load();

	if (r < 0 || (r = config_resolve_address(c, &address)) < 0)
		return r;
	s = calloc(1, sizeof(*s));
	errno = 0;
	if (s)
		s->daemon = libmicrohttpd.start_daemon(
			flags | (address->ai_family == AF_INET6 ? MHD_USE_DUAL_STACK : 0), 0, NULL,
			NULL, handle, m, MHD_OPTION_SOCK_ADDR, address->ai_addr,
			MHD_OPTION_CONNECTION_LIMIT, 16u, MHD_OPTION_CONNECTION_TIMEOUT, 10u,
			MHD_OPTION_END);
	freeaddrinfo(address);
	if (!s)
		return -ENOMEM;
	if (!s->daemon) {
		r = -errno;
		free(s);
		if (r == -EAGAIN) /* its thread was not started */
			return process_limit_say(process_limit_probe(), SERVER_WORDS);
		if (r == -ENOMEM || r == -EMFILE)
			return err_set(r, SERVER_WORDS ": %s", strerror(-r));
		return err_set(-EADDRINUSE, "http.port: cannot listen on %s port %" PRIu64,
			       c->listen_address, c->listen_port);
	}
	*out = s;
	return 0;
}

void metrics_close(struct metrics_server *s)
{
	if (s)
		libmicrohttpd.stop_daemon(s->daemon);
	free(s);
}
