/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/output.h"
#include "agent/profiler.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "collect/modes.h"

#define POLL_MS 50
#define BEAT_NS NS_PER_SECOND

/* A configuration, and how many parts of the agent run by it: what has not changed stays as it is.
 */
struct edition {
	struct config config;
	unsigned int users;
};

struct agent {
	const char *config_path;
	struct config_stamp tried; /* of the file that was last read, right or wrong */
	struct metrics *metrics;
	struct edition *current, *profiler_by, *output_by;
	struct profiler *profiler;
	struct output *output;
	struct metrics_server *server;
	int signal_fd;
	uint64_t last_beat_ns;
	bool should_stop;
};

static struct edition *edition_use(struct edition *e)
{
	e->users++;
	return e;
}

static void edition_drop(struct edition *e)
{
	if (!e || --e->users)
		return;
	config_release(&e->config);
	free(e);
}
DEFINE_CLEANUP(struct edition *, edition_drop)

/* Takes the place of what was there. */
static void edition_set(struct edition **place, struct edition *e)
{
	edition_use(e);
	edition_drop(*place);
	*place = e;
}

static int edition_read(const char *path, struct edition **out)
{
	_cleanup_(edition_dropp) struct edition *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->users = 1;
	r = config_read(path, &e->config);
	if (r < 0)
		return r;
	*out = take_ptr(e);
	return 0;
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

static void say_what_is_risky(const struct config *c)
{
	_cleanup_(strbuf_releasep) struct strbuf risks = STRBUF_INIT;

	config_list_risks(c, &risks);
	log_lines(LOG_LEVEL_WARNING, strbuf_str(&risks), CONFIG_RISKS_MAX);
}

static void apply_log(const struct config *c)
{
	log_set_json(c->log_format == LOG_JSON);
}

static void say_what_is_recorded(const struct config *c)
{
	_cleanup_(strbuf_releasep) struct strbuf places = STRBUF_INIT, modes = STRBUF_INIT;

	for (size_t i = 0; i < c->outputs.len; i++)
		strbuf_appendf(&places, "%s%s", i ? ", " : "",
			       c->outputs.items[i].url ?: c->outputs.items[i].directory);
	modes_put((unsigned int)c->modes, &modes);
	for (size_t i = 0; i < c->events.len; i++)
		strbuf_appendf(&modes, ", %s", c->events.items[i]);
	log_note("recording %s at %s Hz, windows of %s, to %s", strbuf_str(&modes),
		 units_hz(c->rate_hz).s, units_ns(c->window_ns).s, strbuf_str(&places));
}

static int end_window(struct agent *a)
{
	int r = profiler_end_window(a->profiler);

	if (r < 0 || (r = output_take(a->output, profiler_profile(a->profiler))) < 0)
		return r;
	return profiler_next_window(a->profiler, &a->current->config);
}

static int end_last_window(struct agent *a)
{
	int r = profiler_finish(a->profiler);

	return r < 0 ? r : output_take(a->output, profiler_profile(a->profiler));
}

/* --- Another configuration: all that it needs is there before anything of the old one ends ------
 */

/* What is ready to take over; NULL: that part stays. */
struct successor {
	struct edition *by;
	struct profiler *profiler;
	struct output *output;
	unsigned int parts; /* enum config_part: that change */
};

static void successor_release(struct successor *s)
{
	output_free(s->output);
	profiler_free(s->profiler);
	edition_drop(s->by);
}

/*
 * The port: a new one is opened first. Of the same port, which one server alone can have, the old
 * server ends before, and is there again if the new one cannot be.
 */
static int change_server(struct agent *a, const struct config *c)
{
	const struct config *old = &a->current->config;
	struct metrics_server *server = NULL;
	int r = 0;

	if (c->listen_port == old->listen_port) {
		metrics_close(a->server);
		a->server = NULL;
	}
	if (c->listen_port)
		r = metrics_serve(a->metrics, c, &server);
	if (r < 0) {
		if (!a->server && old->listen_port &&
		    metrics_serve(a->metrics, old, &a->server) < 0)
			log_error("http: cannot listen on the previous port again; /metrics is no "
				  "longer served");
		return r;
	}
	metrics_close(a->server);
	a->server = server;
	return 0;
}

/* The server is the last: what follows cannot fail for what the configuration says. */
static int prepare(struct agent *a, struct successor *s)
{
	const struct config *c = &s->by->config;
	int r = config_check_files(c);

	s->parts = config_changes(&a->current->config, c);
	if (!r && s->parts & CONFIG_OUTPUT)
		r = output_new(c, a->metrics, a->output, &s->output);
	if (!r && s->parts & CONFIG_RECORDER)
		r = profiler_new(c, a->metrics, &s->profiler);
	if (!r && s->parts & CONFIG_HTTP)
		r = change_server(a, c);
	return r;
}

static void handle_signals(struct agent *a, bool *should_reload)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		*should_reload |= info.ssi_signo == SIGHUP;
		a->should_stop |= info.ssi_signo != SIGHUP;
	}
}

/* Waits for something to do, and does it. */
static int wait(struct agent *a, bool *should_reload)
{
	int r = profiler_step(a->profiler, a->signal_fd, POLL_MS);

	handle_signals(a, should_reload);
	return r;
}

static int change_profiler(struct agent *a, struct successor *s)
{
	int r = end_last_window(a);

	if (r < 0)
		return r;
	profiler_free(a->profiler);
	a->profiler = take_ptr(s->profiler);
	edition_set(&a->profiler_by, s->by);
	return profiler_start(a->profiler, &s->by->config);
}

/* What the old one still has to send goes on its way while the recorder records. */
static int change_output(struct agent *a, struct successor *s)
{
	bool should_reload = false; /* that is under way */
	int r = s->profiler ? 0 : end_window(a);

	output_stop(a->output);
	while (!r && !a->should_stop && !output_has_ended(a->output)) {
		r = wait(a, &should_reload);
		metrics_beat(a->metrics);
	}
	if (r < 0 || a->should_stop)
		return r;
	r = output_start(s->output, a->output);
	a->output = take_ptr(s->output);
	edition_set(&a->output_by, s->by);
	return r;
}

/* From here on a failure is the end. */
static int change(struct agent *a, struct successor *s)
{
	const struct config *c = &s->by->config;
	bool is_profiler = s->profiler;
	int r = 0;

	if (is_profiler)
		r = change_profiler(a, s);
	if (!r && s->output)
		r = change_output(a, s);
	if (r < 0)
		return r;
	edition_set(&a->current, s->by);
	if (s->parts & CONFIG_BUDGET && !is_profiler)
		r = profiler_set_budget(a->profiler, c);
	apply_log(c);
	say_what_is_risky(c);
	say_what_is_recorded(c);
	return r;
}

static int reload(struct agent *a)
{
	_cleanup_(successor_release) struct successor s = { 0 };
	int r;

	config_stamp_get(a->config_path, &a->tried);
	r = edition_read(a->config_path, &s.by);
	if (!r)
		r = prepare(a, &s);
	metrics_add_reload(a->metrics, r >= 0);
	if (r < 0) {
		log_error("reload failed: %s; keeping the previous configuration", err_message(r));
		err_clear();
		return 0;
	}
	return change(a, &s);
}

/* A file that is away may be on its way back. */
static bool has_file_changed(const struct agent *a)
{
	struct config_stamp now;

	config_stamp_get(a->config_path, &now);
	return now.inode && !config_stamp_equal(&now, &a->tried);
}

/* --- The loop --------------------------------------------------------------------------------- */

static int step(struct agent *a)
{
	bool should_reload = false;
	int r = wait(a, &should_reload);

	if (!r && monotonic_ns() - a->last_beat_ns >= BEAT_NS) {
		a->last_beat_ns = monotonic_ns();
		metrics_beat(a->metrics);
		should_reload |= has_file_changed(a);
	}
	if (!r)
		r = output_look(a->output, profiler_profile(a->profiler));
	if (!r && profiler_is_window_over(a->profiler))
		r = end_window(a);
	return !r && should_reload && !a->should_stop ? reload(a) : r;
}

static int start(struct agent *a)
{
	const struct config *c = &a->current->config;
	int r;

	apply_log(c);
	say_what_is_risky(c);
	if ((r = watch_signals(a)) < 0 ||
	    (c->listen_port && (r = metrics_serve(a->metrics, c, &a->server)) < 0) ||
	    (r = output_new(c, a->metrics, NULL, &a->output)) < 0 ||
	    (r = profiler_new(c, a->metrics, &a->profiler)) < 0 ||
	    (r = output_start(a->output, NULL)) < 0)
		return r;
	edition_set(&a->output_by, a->current);
	edition_set(&a->profiler_by, a->current);
	return profiler_start(a->profiler, c);
}

static int record(struct agent *a)
{
	int r = start(a), r_end;

	if (r < 0)
		return r;
	metrics_set_ready(a->metrics, true);
	say_what_is_recorded(&a->current->config);
	while (!r && !a->should_stop)
		r = step(a);
	metrics_set_ready(a->metrics, false);
	r_end = end_last_window(a);
	output_stop(a->output);
	return r < 0 ? r : r_end;
}

static void agent_release(struct agent *a)
{
	profiler_free(a->profiler);
	output_free(a->output);
	metrics_close(a->server);
	edition_drop(a->profiler_by);
	edition_drop(a->output_by);
	edition_drop(a->current);
	closep(&a->signal_fd);
}

int agent_run(const char *config_path, struct metrics *m)
{
	struct agent a = { .config_path = config_path, .metrics = m, .signal_fd = -1 };
	int r = edition_read(config_path, &a.current);

	if (!r) {
		a.tried = a.current->config.stamp;
		r = record(&a);
	}
	agent_release(&a);
	return r;
}
