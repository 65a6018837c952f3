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
	struct spool *spool;
	uint64_t time_ns; /* its start, CLOCK_REALTIME */
};

struct output {
	const struct config *config;
	struct metrics *metrics;
	/* NULL, all of them, where windows go to files, which keep what /proc says as it is: */
	struct spool *spool;
	struct sender *sender;
	struct origins *origins;
	struct kubernetes *kubernetes; /* NULL too where nobody is to be asked */
	struct spool_stats said;       /* what was lost so far */
	bool has_borrowed;             /* the spool is that of the one before */
};

static int check_directory(const char *directory)
{
	int r = file_make_directory(directory, 0755);

	if (!r && faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) < 0)
		r = err_set(-errno, "%s: %s", directory, strerror(errno));
	return r;
}

static struct spool_opts spool_opts(const struct config *c)
{
	return (struct spool_opts){ .directory = c->spool_directory,
				    .engine = engine_name(c->engine),
				    .bytes_max = c->spool_bytes,
				    .age_max_ns = c->spool_age_ns };
}

static int get_spool(struct output *o, struct output *before)
{
	struct spool_opts opts = spool_opts(o->config);

	if (!before || !before->spool ||
	    strcmp(before->config->spool_directory, opts.directory) != 0)
		return spool_open(&opts, &o->spool);
	o->spool = before->spool;
	o->has_borrowed = true;
	return 0;
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
	if (c->engine == ENGINE_FILES)
		r = check_directory(c->directory);
	else if ((r = get_spool(o, before)) < 0 || (r = kubernetes_new(c, m, &o->kubernetes)) < 0 ||
		 (r = origins_new(c, o->kubernetes, &o->origins)) < 0)
		return r;
	else
		r = sender_new(c, o->spool, m, &o->sender);
	if (r < 0)
		return r;
	*out = take_ptr(o);
	return 0;
}

int output_start(struct output *o, struct output *before)
{
	struct spool_opts opts = spool_opts(o->config);

	metrics_set_spool(o->metrics, o->spool);
	if (o->has_borrowed)
		before->spool = NULL;
	o->has_borrowed = false;
	output_free(before);
	if (!o->spool)
		return 0;
	spool_configure(o->spool, &opts);
	spool_stats(o->spool, &o->said);
	if (o->said.foreign)
		log_warning("%s: %" PRIu64 " profiles are of another engine: they wait for it "
			    "until spool.max_age",
			    opts.directory, o->said.foreign);
	return sender_start(o->sender);
}

void output_stop(struct output *o)
{
	if (o->sender)
		sender_stop(o->sender);
}

bool output_has_ended(struct output *o)
{
	return !o->sender || sender_has_ended(o->sender);
}

void output_free(struct output *o)
{
	if (!o)
		return;
	origins_free(o->origins);
	kubernetes_free(o->kubernetes);
	sender_free(o->sender);
	if (o->spool && !o->has_borrowed) {
		metrics_forget_spool(o->metrics, o->spool);
		spool_free(o->spool);
	}
	free(o);
}

int output_look(struct output *o, const struct profile *p)
{
	return o->origins ? origins_look(o->origins, p) : 0;
}

/* One line a window for what the spool has thrown away, whoever saw it there. */
static void say_what_was_lost(struct output *o)
{
	static const char *const losses[] = {
#define X(id, name) [id] = name,
		SPOOL_LOSSES(X)
#undef X
	};
	struct spool_stats now;

	spool_stats(o->spool, &now);
	for (size_t i = 0; i < SPOOL_LOSS_COUNT; i++)
		if (now.lost_samples[i] > o->said.lost_samples[i])
			log_warning("spool: %s: %" PRIu64 " samples lost since the last window",
				    losses[i], now.lost_samples[i] - o->said.lost_samples[i]);
	o->said = now;
}

static int spool_body(void *arg, uint64_t samples, const void *body, size_t len)
{
	const struct window_of *w = arg;
	int r = spool_add(w->spool, w->time_ns, samples, body, len);

	if (r < 0)
		log_error("spool: %s: %" PRIu64 " samples lost", err_message(r), samples);
	return r == -ENOMEM ? r : 0; /* a full disk may have room again */
}

static int send_window(struct output *o, struct profile *p, struct window_stats *stats)
{
	struct window_of w = { o->spool, p->meta.start_realtime_ns };
	int r = origins_look(o->origins, p);

	if (!r)
		r = window_encode(o->config, o->origins, p, spool_body, &w, stats);
	if (!r)
		r = origins_next_window(o->origins);
	say_what_was_lost(o);
	sender_wake(o->sender);
	return r;
}

static uint64_t count_samples(const struct profile *p)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < p->samples.len; i++)
		ticks += p->samples.items[i].weight;
	return ticks;
}

static int write_file(const struct output *o, const struct profile *p, struct window_stats *stats)
{
	int r;

	stats->samples = count_samples(p);
	if (!stats->samples)
		return 0;
	r = files_write(o->config, p);
	if (r >= 0 || r == -ENOMEM)
		return r;
	log_error("%s: %" PRIu64 " samples lost", err_message(r), stats->samples);
	return 0; /* a full disk may have room again */
}

int output_take(struct output *o, struct profile *p)
{
	struct window_stats stats = { 0 };
	int r = o->spool ? send_window(o, p, &stats) : write_file(o, p, &stats);

	if (r < 0)
		return r;
	log_note("window: %s, %" PRIu64 " samples, %" PRIu64 " services, %s",
		 units_ns(p->meta.duration_ns).s, stats.samples, stats.services,
		 units_bytes(stats.bytes).s);
	return metrics_add_window(o->metrics, p, &stats);
}
