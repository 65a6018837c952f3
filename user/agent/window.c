/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/window.h"

#include <endian.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/push.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "export/export.h"
#include "export/value_type.h"

#define OTHER_SERVICES "other"
#define UNKNOWN_SERVICE "unknown_service" /* OpenTelemetry's name for it */
#define LABELS_SENT_MAX 29                /* Pyroscope takes 30, __name__ among them */
#define ENDED_OWNER 2                     /* of all processes that have ended; others are odd */
#define NO_GROUP UINT32_MAX
#define EXCLUDED (UINT32_MAX - 1)

struct window {
	const struct config *config;
	enum engine engine;
	const struct origins *origins;
	struct services *services;
	uint64_t now_ns; /* CLOCK_MONOTONIC: when the window began */
	struct profile *p;
	window_body_fn fn;
	void *arg;
	struct window_stats stats;
	VEC(struct labels) groups;
	uint32_t other_group; /* NO_GROUP: not yet */
	uint32_t *group_of;   /* by process */
	uint32_t *counts; /* of samples, by kind but ticks and stack; zeros between the groups */
};

/* Bytes as they are written. Ends in memory_release(). */
struct memory {
	FILE *stream;
	char *bytes;
	size_t len;
};

static void memory_release(struct memory *m)
{
	if (m->stream)
		fclose(m->stream);
	free(m->bytes);
}

static int memory_open(struct memory *m)
{
	*m = (struct memory){ 0 };
	m->stream = open_memstream(&m->bytes, &m->len);
	return m->stream ? 0 : -ENOMEM;
}

static int memory_end(struct memory *m)
{
	int r = fclose(m->stream);

	m->stream = NULL;
	return r ? -ENOMEM : 0;
}

static void window_release(struct window *w)
{
	for (size_t i = 0; i < w->groups.len; i++)
		labels_release(&w->groups.items[i]);
	vec_release(&w->groups);
	free(w->group_of);
	free(w->counts);
}

static int describe_pod(const struct window *w, const struct origin *o, struct labels *out)
{
	char key[CONFIG_POD_LABEL_NAME_BYTES];
	struct pod_names names;
	int r;

	if (!origins_names(w->origins, o, &names))
		return 0;
	if ((r = labels_set(out, "namespace", names.space)) < 0 ||
	    (r = labels_set(out, "pod", names.pod)) < 0 ||
	    (r = labels_set(out, "container", names.container)) < 0 ||
	    (r = labels_set(out, "workload", names.workload)) < 0 ||
	    (r = labels_set(out, "workload_kind", names.kind)) < 0)
		return r;
	for (size_t i = 0; i < w->config->pod_labels.len && !r; i++) {
		config_pod_label_name(w->config->pod_labels.items[i], key);
		r = labels_set(out, key, names.labels[i]);
	}
	return r;
}

/* The labels of a service, as rules see them: by the names that Pyroscope has for them. */
static int describe_service(const struct window *w, const struct origin *o, struct labels *out)
{
	const struct export_attribute known[] = {
		{ "service_name", o->service },
		{ "container_id", o->container },
		{ "pod_uid", o->pod },
		{ "service_version", o->version },
		{ "deployment_environment", o->environment },
		{ "host", profile_recording(w->p)->host },
	};
	int r = describe_pod(w, o, out);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !r; i++)
		r = labels_set(out, known[i].key, known[i].value ?: "");
	for (size_t i = 0; i < w->config->labels.len && !r; i++)
		r = labels_set(out, w->config->labels.items[i].name,
			       w->config->labels.items[i].value);
	return r;
}

/* What rules may look at and is not sent. */
static int describe_process(const struct window *w, uint32_t index, struct labels *out)
{
	const struct process *p = &w->p->processes.items[index];
	const struct strtab *s = w->p->strings;
	int r;

	if (!w->config->relabel.list.len)
		return 0;
	if ((r = labels_set(out, "__process_name", strtab_get(s, p->name))) < 0 ||
	    (r = labels_set(out, "__command_line", strtab_get(s, p->command_line))) < 0 ||
	    (r = labels_set(out, "__cgroup", origins_cgroup(w->origins, index))) < 0 ||
	    (r = labels_set(out, "__executable", strtab_get(s, p->executable))) < 0)
		return r;
	return labels_set(out, "__python_version", strtab_get(s, p->python_version));
}

/* After the rules: without what is not sent, within what engines take, and with a service. */
static int finish_labels(struct labels *l)
{
	int r = 0;

	for (size_t i = l->list.len; i-- > 0;)
		if (!strncmp(l->list.items[i].name, "__", 2))
			labels_remove_at(l, i);
	if (!*labels_get(l, "service_name"))
		r = labels_set(l, "service_name", UNKNOWN_SERVICE);
	for (size_t i = l->list.len; l->list.len > LABELS_SENT_MAX && i-- > 0;)
		if (strcmp(l->list.items[i].name, "service_name") != 0)
			labels_remove_at(l, i);
	return r;
}

/* Takes l over. */
static int add_group(struct window *w, struct labels *l, uint32_t *group)
{
	int r = vec_push(&w->groups, *l);

	if (r < 0)
		return r;
	*l = (struct labels){ 0 };
	*group = (uint32_t)w->groups.len - 1;
	return 0;
}

/* The service that those without a place of their own become. */
static int find_other_group(struct window *w, uint32_t *group)
{
	_cleanup_(labels_release) struct labels l = { 0 };
	const struct origin other = { .service = OTHER_SERVICES };
	int r = 0;

	w->stats.merged++;
	if (w->other_group == NO_GROUP) {
		r = describe_service(w, &other, &l);
		if (!r)
			r = add_group(w, &l, &w->other_group);
	}
	*group = w->other_group;
	return r;
}

static uint64_t responsible_for(const struct origin *o)
{
	if (o->owner.is_root)
		return SERVICES_NO_OWNER;
	return o->owner.id ?: ENDED_OWNER;
}

static uint64_t identity_of(const struct labels *l)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < l->list.len; i++)
		hash = hash_string(l->list.items[i].value,
				   hash_string(l->list.items[i].name, hash));
	return hash;
}

/* Those with the same labels are one group. Takes l over, or leaves it. */
static int find_group(struct window *w, const struct origin *o, struct labels *l, uint32_t *group)
{
	for (size_t i = 0; i < w->groups.len; i++) {
		if (labels_equal(&w->groups.items[i], l)) {
			*group = (uint32_t)i;
			return 0;
		}
	}
	if (!services_admit(w->services, identity_of(l), responsible_for(o), w->now_ns))
		return find_other_group(w, group);
	return add_group(w, l, group);
}

static bool matches(const struct config_list *patterns, const char *service)
{
	for (size_t i = 0; i < patterns->len; i++)
		if (!fnmatch(patterns->items[i], service, 0))
			return true;
	return false;
}

static bool is_wanted(const struct config *c, const struct origin *o)
{
	return (!c->include.len || matches(&c->include, o->service)) &&
	       !matches(&c->exclude, o->service);
}

static int group_process(struct window *w, uint32_t index)
{
	_cleanup_(labels_release) struct labels l = { 0 };
	struct origin o;
	int r;

	if (w->group_of[index] != NO_GROUP)
		return 0;
	w->group_of[index] = EXCLUDED;
	origins_get(w->origins, index, &o);
	if (!is_wanted(w->config, &o))
		return 0;
	if ((r = describe_service(w, &o, &l)) < 0 || (r = describe_process(w, index, &l)) < 0 ||
	    (r = relabel_apply(&w->config->relabel, &l)) <= 0)
		return r;
	r = finish_labels(&l);
	return r < 0 ? r : find_group(w, &o, &l, &w->group_of[index]);
}

static uint32_t group_of_sample(const struct window *w, const struct sample *s)
{
	return w->group_of[w->p->threads.items[s->thread].process];
}

static int compare_samples(const void *a, const void *b, void *arg)
{
	uint32_t x = group_of_sample(arg, a), y = group_of_sample(arg, b);

	return x < y ? -1 : x > y;
}

/* Finds the groups of all samples, and puts those of one next to each other. */
static int group_samples(struct window *w)
{
	int r = 0;

	w->group_of = malloc((w->p->processes.len + 1) * sizeof(*w->group_of));
	if (!w->group_of)
		return -ENOMEM;
	memset(w->group_of, 0xff, (w->p->processes.len + 1) * sizeof(*w->group_of));
	for (size_t i = 0; i < w->p->samples.len && !r; i++)
		r = group_process(w, w->p->threads.items[w->p->samples.items[i].thread].process);
	if (!r && w->p->samples.len)
		qsort_r(w->p->samples.items, w->p->samples.len, sizeof(struct sample),
			compare_samples, w);
	return r;
}

#define OTLP_KEY_BYTES (CONFIG_POD_LABEL_BYTES + 16) /* "k8s.pod.label." */

/* Its name for the name of what a pod belongs to; NULL: it has none. */
static const char *otlp_workload(const char *kind)
{
	static const char *const names[][2] = {
		{ "Deployment", "k8s.deployment.name" },   { "ReplicaSet", "k8s.replicaset.name" },
		{ "StatefulSet", "k8s.statefulset.name" }, { "DaemonSet", "k8s.daemonset.name" },
		{ "CronJob", "k8s.cronjob.name" },         { "Job", "k8s.job.name" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i][0], kind))
			return names[i][1];
	return NULL;
}

/* OpenTelemetry's name for a label of ours; buffer is for those that are made up. */
static const char *otlp_name(const struct config *c, const struct labels *l, const char *name,
			     char buffer[OTLP_KEY_BYTES])
{
	const char *workload = otlp_workload(labels_get(l, "workload_kind"));
	static const char *const names[][2] = {
		{ "service_name", "service.name" },
		{ "container_id", "container.id" },
		{ "pod_uid", "k8s.pod.uid" },
		{ "namespace", "k8s.namespace.name" },
		{ "pod", "k8s.pod.name" },
		{ "container", "k8s.container.name" },
		{ "host", "host.name" },
		{ "service_version", "service.version" },
		{ "deployment_environment", "deployment.environment" },
	};
	char key[CONFIG_POD_LABEL_NAME_BYTES];

	if (workload && !strcmp(name, "workload"))
		return workload;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i][0], name))
			return names[i][1];
	for (size_t i = 0; i < c->pod_labels.len; i++) {
		config_pod_label_name(c->pod_labels.items[i], key);
		if (strcmp(key, name) != 0)
			continue;
		snprintf(buffer, OTLP_KEY_BYTES, "k8s.pod.label.%s", c->pod_labels.items[i]);
		return buffer;
	}
	return name;
}

/* Each engine has a name of its own for what all of them are told. */
static size_t describe_group(const struct window *w, const struct labels *l,
			     const struct value_type *type, char buffers[][OTLP_KEY_BYTES],
			     struct export_attribute *out)
{
	bool is_otlp = w->engine == ENGINE_OTLP;
	size_t n = 0;

	for (size_t i = 0; i < l->list.len; i++) {
		const struct label *label = &l->list.items[i];

		out[n] = (struct export_attribute){ label->name, label->value };
		if (is_otlp)
			out[n].key = otlp_name(w->config, l, label->name, buffers[n]);
		n++;
	}
	if (is_otlp && *labels_get(l, "pod_uid") && *labels_get(l, "host"))
		out[n++] = (struct export_attribute){ "k8s.node.name", labels_get(l, "host") };
	if (!is_otlp)
		out[n++] = (struct export_attribute){ "__name__", value_series(type) };
	if (w->engine == ENGINE_PARCA)
		out[n++] = (struct export_attribute){ "job", labels_get(l, "service_name") };
	return n;
}

/* {"series":[{"labels":LABELS,"samples":[{"rawProfile":"BASE64"}]}]}; Parca wraps its labels. */
static int write_series(const struct window *w, const struct export_attribute *labels, size_t count,
			const struct memory *profile, FILE *out)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	bool is_wrapped = w->engine == ENGINE_PARCA;
	struct json j;
	int r = base64_append(&text, profile->bytes, profile->len);

	if (r < 0)
		return r;
	json_init(&j, out);
	json_object(&j);
	json_key(&j, "series");
	json_array(&j);
	json_object(&j);
	json_key(&j, "labels");
	if (is_wrapped) {
		json_object(&j);
		json_key(&j, "labels");
	}
	json_array(&j);
	for (size_t i = 0; i < count; i++) {
		json_object(&j);
		json_key(&j, "name");
		json_string(&j, labels[i].key);
		json_key(&j, "value");
		json_string(&j, labels[i].value);
		json_end(&j);
	}
	json_end(&j);
	if (is_wrapped)
		json_end(&j);
	json_key(&j, "samples");
	json_array(&j);
	json_object(&j);
	json_key(&j, "rawProfile");
	json_string_len(&j, text.bytes, text.len);
	for (int open = 5; open; open--)
		json_end(&j);
	return json_finish(&j) < 0 ? -ENOMEM : 0;
}

static int compress(const struct memory *from, struct memory *to)
{
	_cleanup_(gzip_freep) struct gzip *g = NULL;
	int r;

	if ((r = memory_open(to)) < 0 || (r = gzip_new(to->stream, &g)) < 0)
		return r;
	if (gzip_write(g, from->bytes, from->len) < 0 || gzip_finish(g) < 0)
		return -ENOMEM;
	return memory_end(to);
}

static uint32_t *count_at(const struct window *w, uint16_t kind, uint32_t stack)
{
	return &w->counts[(size_t)(kind - 1) * stacktab_count(w->p->stacks) + stack];
}

/* Those of the kinds whose values do not tell how many they are. */
static int count_samples(struct window *w, const struct sample *samples, size_t len)
{
	size_t size = w->p->kinds.len * stacktab_count(w->p->stacks);

	if (!w->counts && size)
		w->counts = calloc(size, sizeof(*w->counts));
	if (!w->counts && size)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		if (samples[i].kind != KIND_TICKS)
			++*count_at(w, samples[i].kind, samples[i].stack);
	return 0;
}

/* Takes the counts: each cell is handed over once. */
static uint64_t take_samples(const struct window *w, const struct cube *c)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < c->all.cells.len; i++) {
		const struct cube_cell *cell = &c->all.cells.items[i];
		uint16_t kind = c->tags.items[cell->tag].kind;

		if (kind == KIND_TICKS) {
			samples += cell->value;
			continue;
		}
		samples += *count_at(w, kind, cell->stack);
		*count_at(w, kind, cell->stack) = 0;
	}
	return samples;
}

static int hand_over(struct window *w, const struct cube *c, const struct memory *body)
{
	uint64_t samples = take_samples(w, c);

	w->stats.samples += samples;
	w->stats.bytes += body->len;
	return w->fn(w->arg, samples, body->bytes, body->len);
}

/* What a gzip file unpacks to, by its last four bytes (RFC 1952): good below 4 GiB. */
static size_t unpacked_bytes(const struct memory *m)
{
	uint32_t size;

	memcpy(&size, m->bytes + m->len - sizeof(size), sizeof(size));
	return le32toh(size);
}

/*
 * Labels of samples that are not sent: those that nobody asked for; and to Pyroscope a trace's id,
 * as there each value of a label but of a span's id is a series of its own.
 */
static const char *const *left_out(enum engine engine)
{
	static const char *const names[] = { PROFILE_TRACE_ID, PROFILE_WAIT,
					     PROFILE_HANDLES_EXCEPTION, PROFILE_INTERPRETER, NULL };

	return engine == ENGINE_PYROSCOPE ? names : names + 1;
}

static int encode(struct window *w, const struct labels *l, const struct cube *c,
		  struct memory *profile, struct memory *body, size_t *profile_bytes)
{
	bool is_otlp = w->engine == ENGINE_OTLP;
	struct export_attribute attributes[LABELS_MAX + 2];
	struct export_opts opts = { .resource.items = attributes,
				    .labels = w->config->sample_labels.len,
				    .left_out = left_out(w->engine) };
	_cleanup_(memory_release) struct memory series = { 0 };
	char keys[LABELS_MAX][OTLP_KEY_BYTES];
	struct value_type type;
	size_t count;
	int r;

	opts.names = w->engine == ENGINE_PARCA ? VALUE_NAMES_PARCA : VALUE_NAMES_COMMON;
	value_type_of(w->p, c->tags.items[c->all.cells.items[0].tag].kind, opts.names, &type);
	count = describe_group(w, l, &type, keys, attributes);
	opts.resource.count = count;
	if ((r = memory_open(profile)) < 0 ||
	    (r = exporter_write(is_otlp ? &exporter_otlp : &exporter_pprof, w->p, c, &opts,
				profile->stream)) < 0 ||
	    (r = memory_end(profile)) < 0)
		return r;
	*profile_bytes = is_otlp ? profile->len : unpacked_bytes(profile);
	if (is_otlp)
		return compress(profile, body);
	if ((r = memory_open(&series)) < 0 ||
	    (r = write_series(w, attributes, count, profile, series.stream)) < 0 ||
	    (r = memory_end(&series)) < 0)
		return r;
	if (w->engine == ENGINE_PYROSCOPE)
		return compress(&series, body);
	*body = series;
	series = (struct memory){ 0 };
	return 0;
}

/* Cells of c are of one kind, one at least. */
static int encode_rows(struct window *w, const struct labels *l, struct cube c)
{
	_cleanup_(memory_release) struct memory profile = { 0 }, body = { 0 };
	struct cube first = c, rest = c;
	size_t bytes = 0;
	int r;

	if (c.all.cells.len <= PUSH_PROFILE_SAMPLES_MAX) {
		r = encode(w, l, &c, &profile, &body, &bytes);
		if (r < 0 || bytes <= PUSH_BODY_MAX || c.all.cells.len == 1)
			return r < 0 ? r : hand_over(w, &c, &body);
	}
	first.all.cells.len = c.all.cells.len / 2;
	rest.all.cells.items += first.all.cells.len;
	rest.all.cells.len -= first.all.cells.len;
	r = encode_rows(w, l, first);
	return r < 0 ? r : encode_rows(w, l, rest);
}

/* Kinds are series of their own; cells are in order of them. */
static int encode_kinds(struct window *w, const struct labels *l, const struct cube *c)
{
	int r = 0;

	for (size_t from = 0, to; from < c->all.cells.len && !r; from = to) {
		const struct cube_cell *cells = c->all.cells.items;
		struct cube part = *c;

		for (to = from + 1; to < c->all.cells.len; to++)
			if (c->tags.items[cells[to].tag].kind !=
			    c->tags.items[cells[from].tag].kind)
				break;
		part.all.cells.items += from;
		part.all.cells.len = to - from;
		r = encode_rows(w, l, part);
	}
	return r;
}

/* The samples from..to are one group's. */
static int encode_group(struct window *w, size_t from, size_t to)
{
	_cleanup_(cube_release) struct cube c = { .axes = w->config->sample_labels.len ? CUBE_LABELS
										       : 0 };
	uint32_t group = group_of_sample(w, &w->p->samples.items[from]);
	__auto_type all = w->p->samples;
	int r;

	for (size_t i = from; i < to && group == EXCLUDED; i++)
		w->stats.excluded += window_samples_of(&all.items[i]);
	if (group == EXCLUDED)
		return 0;
	w->p->samples.items += from;
	w->p->samples.len = to - from;
	r = count_samples(w, w->p->samples.items, w->p->samples.len);
	if (!r)
		r = cube_add(&c, w->p);
	w->p->samples = all;
	if (!r)
		r = cube_finish(&c, w->p);
	w->stats.services++;
	return r ? r : encode_kinds(w, &w->groups.items[group], &c);
}

int window_encode(const struct config *config, enum engine engine, const struct origins *origins,
		  struct services *services, struct profile *p, window_body_fn fn, void *arg,
		  struct window_stats *out)
{
	_cleanup_(window_release) struct window w = {
		.config = config,
		.engine = engine,
		.origins = origins,
		.services = services,
		.now_ns = profile_recording(p)->start_monotonic_ns,
		.p = p,
		.fn = fn,
		.arg = arg,
		.other_group = NO_GROUP,
	};
	size_t from = 0;
	int r = group_samples(&w);

	for (size_t i = 1; i <= p->samples.len && !r; i++) {
		if (i < p->samples.len &&
		    !compare_samples(&p->samples.items[i - 1], &p->samples.items[i], &w))
			continue;
		r = encode_group(&w, from, i);
		from = i;
	}
	*out = w.stats;
	return r;
}
