/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/kubernetes.h"
#include "agent/origins.h"
#include "agent/sender.h"
#include "agent/spool.h"
#include "agent/window.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"

/* For spool_body(). */
struct window_of {
	const struct lane *lane;
	uint64_t time_ns; /* its start, CLOCK_REALTIME */
};

/* One of them: what waits for it and who sends that. It shares nothing with the others. */
struct lane {
	const struct config_output *config;
	struct metrics_output *metrics;
	/* NULL, both of them, where windows go to files, which keep what /proc says as it is: */
	struct spool *spool;
	struct sender *sender;
	struct spool_stats said; /* what was lost so far */
	bool has_borrowed;       /* the spool is that of one before */
};

struct output {
	const struct config *config;
	struct metrics *metrics;
	struct lane *lanes; /* as config->outputs */
	size_t count;
	struct origins *origins;       /* NULL where all windows go to files, as is */
	struct services *services;     /* this */
	struct kubernetes *kubernetes; /* NULL too where nobody is to be asked */
};

static int check_directory(const char *directory)
{
	int r = file_make_directory(directory, 0755);

	if (!r && faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) < 0)
		r = err_set(-errno, "%s: %s", directory, strerror(errno));
	return r;
}

static struct spool_opts spool_opts(const struct config *c, const struct config_output *o)
{
	return (struct spool_opts){ .directory = o->spool,
				    .engine = engine_name(o->engine),
				    .bytes_max = c->spool_bytes,
				    .age_max_ns = c->spool_age_ns };
}

/* The lane that has this folder, or NULL. */
static struct lane *find_spool(const struct output *o, const char *directory)
{
	for (size_t i = 0; o && i < o->count; i++)
		if (o->lanes[i].spool && !strcmp(o->lanes[i].config->spool, directory))
			return &o->lanes[i];
	return NULL;
}

static int get_spool(const struct config *c, struct lane *l, const struct output *before)
{
	struct spool_opts opts = spool_opts(c, l->config);
	struct lane *found = find_spool(before, opts.directory);

	if (!found)
		return spool_open(&opts, &l->spool);
	l->spool = found->spool;
	l->has_borrowed = true;
	return 0;
}

static int open_lane(struct output *o, struct lane *l, const struct config_output *c,
		     const struct output *before)
{
	int r = metrics_get_output(o->metrics, c->name, &l->metrics);

	l->config = c;
	if (r < 0)
		return r;
	if (c->engine == ENGINE_FILES)
		return check_directory(c->directory);
	r = get_spool(o->config, l, before);
	return r < 0 ? r : sender_new(c, o->config->spool_age_ns, l->spool, l->metrics, &l->sender);
}

static int open_lanes(struct output *o, const struct output *before)
{
	const struct config *c = o->config;
	int r = 0;

	o->lanes = calloc(c->outputs.len, sizeof(o->lanes[0]));
	if (!o->lanes)
		return -ENOMEM;
	o->count = c->outputs.len;
	for (size_t i = 0; i < o->count && !r; i++)
		r = open_lane(o, &o->lanes[i], &c->outputs.items[i], before);
	return r;
}

static bool has_spools(const struct output *o)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->lanes[i].spool)
			return true;
	return false;
}

int output_new(const struct config *c, struct metrics *m, struct output *before,
	       struct output **out)
{
	_cleanup_(output_freep) struct output *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->config = c;
	o->metrics = m;
	r = open_lanes(o, before);
	if (!r && has_spools(o)) {
		r = kubernetes_new(c, m, &o->kubernetes);
		if (!r)
			r = origins_new(c, o->kubernetes, &o->origins);
		if (!r)
			r = services_new(c->services_max, &o->services);
	}
	if (r < 0)
		return r;
	*out = take_ptr(o);
	return 0;
}

/* The spools of `before` that go on are ours from here. */
static void take_spools(struct output *o, struct output *before)
{
	for (size_t i = 0; i < o->count; i++) {
		struct lane *l = &o->lanes[i];

		metrics_set_spool(l->metrics, l->spool);
		if (l->has_borrowed)
			find_spool(before, l->config->spool)->spool = NULL;
		l->has_borrowed = false;
	}
}

/* What waits in spools that nobody goes on with. */
static void say_what_stays(const struct output *before)
{
	struct spool_stats stats;

	for (size_t i = 0; before && i < before->count; i++) {
		const struct lane *l = &before->lanes[i];

		if (!l->spool)
			continue;
		spool_stats(l->spool, &stats);
		if (stats.entries)
			log_warning("%s: %" PRIu64
				    " samples remain unsent: no output uses this spool any more",
				    l->config->spool, stats.samples);
	}
}

static int start_lane(const struct config *c, struct lane *l)
{
	struct spool_opts opts;

	if (!l->spool)
		return 0;
	opts = spool_opts(c, l->config);
	spool_configure(l->spool, &opts);
	spool_stats(l->spool, &l->said);
	if (l->said.foreign)
		log_warning("%s: %" PRIu64 " profiles were made for another engine: kept until "
			    "spool.max_age, not sent",
			    opts.directory, l->said.foreign);
	return sender_start(l->sender);
}

int output_start(struct output *o, struct output *before)
{
	int r = 0;

	take_spools(o, before);
	if (before && before->services && o->services)
		services_take(o->services, before->services);
	say_what_stays(before);
	output_free(before);
	for (size_t i = 0; i < o->count && !r; i++)
		r = start_lane(o->config, &o->lanes[i]);
	return r;
}

void output_stop(struct output *o)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->lanes[i].sender)
			sender_stop(o->lanes[i].sender);
}

bool output_has_ended(struct output *o)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->lanes[i].sender && !sender_has_ended(o->lanes[i].sender))
			return false;
	return true;
}

static void lane_release(struct lane *l)
{
	sender_free(l->sender);
	if (!l->spool || l->has_borrowed)
		return;
	metrics_forget_spool(l->metrics, l->spool);
	spool_free(l->spool);
}

void output_free(struct output *o)
{
	if (!o)
		return;
	output_stop(o); /* all of them at once */
	for (size_t i = 0; i < o->count; i++)
		lane_release(&o->lanes[i]);
	free(o->lanes);
	services_free(o->services);
	origins_free(o->origins);
	kubernetes_free(o->kubernetes);
	free(o);
}

int output_look(struct output *o, const struct profile *p)
{
	return o->origins ? origins_look(o->origins, p) : 0;
}

/* One line a window for what the spool has thrown away, whoever saw it there. */
static void say_what_was_lost(struct lane *l)
{
	static const char *const losses[] = {
#define X(id, name) [id] = name,
		SPOOL_LOSSES(X)
#undef X
	};
	struct spool_stats now;

	spool_stats(l->spool, &now);
	for (size_t i = 0; i < SPOOL_LOSS_COUNT; i++)
		if (now.lost_samples[i] > l->said.lost_samples[i])
			log_warning("spool%s: %s: %" PRIu64 " samples lost since the last window",
				    config_output_label(l->config).s, losses[i],
				    now.lost_samples[i] - l->said.lost_samples[i]);
	l->said = now;
}

static int spool_body(void *arg, uint64_t samples, const void *body, size_t len)
{
	const struct window_of *w = arg;
	int r = spool_add(w->lane->spool, w->time_ns, samples, body, len);

	if (r < 0)
		log_error("spool%s: %s: %" PRIu64 " samples lost",
			  config_output_label(w->lane->config).s, err_message(r), samples);
	return r == -ENOMEM ? r : 0; /* a full disk may have room again */
}

static int send_window(struct output *o, struct lane *l, struct profile *p,
		       struct window_stats *stats)
{
	struct window_of w = { l, profile_recording(p)->start_realtime_ns };
	uint64_t bytes = stats->bytes;
	int r = window_encode(o->config, l->config->engine, o->origins, o->services, p, spool_body,
			      &w, stats);

	stats->bytes += bytes;
	say_what_was_lost(l);
	sender_wake(l->sender);
	return r;
}

/* The samples come out in another order, which files mind: they are written before. */
static int send_windows(struct output *o, struct profile *p, struct window_stats *stats)
{
	int r = origins_look(o->origins, p);

	for (size_t i = 0; i < o->count && !r; i++)
		if (o->lanes[i].spool)
			r = send_window(o, &o->lanes[i], p, stats);
	return r < 0 ? r : origins_next_window(o->origins);
}

static uint64_t count_samples(const struct profile *p)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < p->samples.len; i++)
		samples += window_samples_of(&p->samples.items[i]);
	return samples;
}

static int write_file(const struct lane *l, const struct profile *p, struct window_stats *stats)
{
	int r;

	stats->samples = count_samples(p);
	if (!stats->samples)
		return 0;
	r = files_write(l->config, p);
	if (r >= 0 || r == -ENOMEM)
		return r;
	log_error("%s: %" PRIu64 " samples lost", err_message(r), stats->samples);
	return 0; /* a full disk may have room again */
}

int output_take(struct output *o, struct profile *p)
{
	struct window_stats stats = { 0 };
	int r = 0;

	for (size_t i = 0; i < o->count && !r; i++)
		if (!o->lanes[i].spool)
			r = write_file(&o->lanes[i], p, &stats);
	if (!r && o->origins)
		r = send_windows(o, p, &stats);
	if (r < 0)
		return r;
	log_note("window: %s, %" PRIu64 " samples, %" PRIu64 " services, %s",
		 units_ns(profile_recording(p)->duration_ns).s, stats.samples, stats.services,
		 units_bytes(stats.bytes).s);
	return metrics_add_window(o->metrics, p, &stats);
}
