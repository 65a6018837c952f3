/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/units.h"
#include "cmd/stopped.h"
#include "cmd/top.h"
#include "collect/modes.h"
#include "profile/loss.h"

#define STEP_MS 100              /* keys and a ring that fills come between */
#define SAMPLES_MAX 65536        /* are taken at once */
#define REFRESH_NS NS_PER_SECOND /* what is shown is so old at most */
#define REFRESH_MAX_NS (10 * NS_PER_SECOND)
#define COST_PART 500 /* of a CPU is what looking at waiting threads and summing up may take */

static struct recorder *recorder_of(const struct top *t)
{
	return t->run.recorder;
}

static uint64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + apart_cpu_ns();
}

/* --- what comes in ---------------------------------------------------------------------------- */

/* Of the part so far; but for samples and cost, which are of all parts. */
static int read_counts(struct top *t, struct top_counts *c)
{
	const struct profile *p = recorder_profile(recorder_of(t));
	int r = recorder_read_cost(recorder_of(t), &c->sampler_ns);

	c->samples = recorder_stats(recorder_of(t))->samples;
	c->lost = loss_sum(p, loss_ticks);
	c->lost_wait_ns = loss_sum(p, loss_spans);
	c->ticks = profile_counter(p, "ticks");
	c->idle_ticks = profile_counter(p, "idle");
	c->python_ticks = profile_counter(p, "weight");
	c->own_ns = own_cpu_ns();
	return r == -EPERM ? 0 : r;
}

static int new_counts(struct top *t, struct top_counts *new)
{
	struct top_counts c = { 0 }, *told = &t->told;
	int r = read_counts(t, &c);

	*new = (struct top_counts){ .samples = difference(c.samples, told->samples),
				    .lost = difference(c.lost, told->lost),
				    .lost_wait_ns = difference(c.lost_wait_ns, told->lost_wait_ns),
				    .ticks = difference(c.ticks, told->ticks),
				    .idle_ticks = difference(c.idle_ticks, told->idle_ticks),
				    .python_ticks = difference(c.python_ticks, told->python_ticks),
				    .own_ns = difference(c.own_ns, told->own_ns),
				    .sampler_ns = difference(c.sampler_ns, told->sampler_ns) };
	*told = c;
	return r;
}

static void show_forgotten_ids(struct top *t)
{
	if (t->generation == top_model_generation(t->model))
		return;
	t->generation = top_model_generation(t->model);
	top_view_forget_ids(&t->view);
}

/* What the recorder's profile holds goes into the model and the recording. */
static int take(struct top *t)
{
	struct top_counts counts;
	int r = new_counts(t, &counts);

	if (r < 0 ||
	    (r = top_model_add(t->model, recorder_profile(recorder_of(t)), monotonic_ns(),
			       &counts)) < 0 ||
	    (r = top_keep_take(&t->keep)) < 0)
		return r;
	if (r)
		top_model_forget_ids(t->model);
	show_forgotten_ids(t);
	return 0;
}

/* The recording ends, what it has still being shown, and another one begins. */
static int begin_anew(struct top *t)
{
	int r = recorder_cut(recorder_of(t));

	if (r < 0 || (r = take(t)) < 0 || (r = recorder_begin(recorder_of(t))) < 0)
		return r;
	t->told = (struct top_counts){ .samples = t->told.samples,
				       .own_ns = t->told.own_ns,
				       .sampler_ns = t->told.sampler_ns };
	top_model_forget_ids(t->model);
	return top_keep_begin(&t->keep, recorder_of(t));
}

static void say(struct top *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct top *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strbuf_truncate(&t->view.message, 0);
	strbuf_puts(&t->view.message, text);
}

static int catch_up(struct top *t)
{
	int r;

	if ((r = recorder_catch_up(recorder_of(t))) < 0 ||
	    (r = recorder_store_counters(recorder_of(t))) < 0 || (r = take(t)) < 0 ||
	    !top_keep_is_full(&t->keep))
		return r;
	say(t, "the recording for key s reached its size limit and was restarted");
	return begin_anew(t);
}

/* --- what is shown ---------------------------------------------------------------------------- */

static int sum_up(struct top *t)
{
	int r = top_model_sum(t->model, t->view.span, t->view.table, t->view.sort, &t->view.scope,
			      &t->sums);

	if (r < 0)
		return r;
	top_view_arrange(&t->view, &t->sums);
	if (t->view.function == TOP_NONE)
		return 0;
	return top_model_look(t->model, t->view.function, &t->detail);
}

static void put_clock(char text[16])
{
	time_t now = time(NULL);
	struct tm local;

	localtime_r(&now, &local);
	strftime(text, 16, "%H:%M:%S", &local);
}

static int paint(struct top *t)
{
	char clock[16];
	const char *warning = top_terminal_warning(t->terminal);
	const struct top_facts facts = { .target = strbuf_str(&t->target),
					 .mode = strbuf_str(&t->mode),
					 .clock = clock,
					 .warning = t->warning = warning ? warning : t->warning,
					 .freq_hz = t->run.o->freq_hz,
					 .is_system_wide = t->run.o->all };
	size_t width, height;
	int r;

	put_clock(clock);
	top_terminal_size(t->terminal, &width, &height);
	r = top_screen_paint(&t->screen, width, height, &t->view, &facts, &t->sums, &t->detail,
			     top_model_profile(t->model));
	if (r >= 0)
		top_terminal_draw(t->terminal, &t->screen);
	return r;
}

/* Takes as much of the time as it costs: of many threads, or a long list, it is seldom. */
static int refresh(struct top *t)
{
	uint64_t before_ns = own_cpu_ns(), wait_ns;
	int r;

	if ((r = catch_up(t)) < 0 || (!t->view.is_paused && (r = sum_up(t)) < 0) ||
	    (r = paint(t)) < 0)
		return r;
	wait_ns = (own_cpu_ns() - before_ns) * COST_PART;
	if (wait_ns < REFRESH_NS)
		wait_ns = REFRESH_NS;
	if (wait_ns > REFRESH_MAX_NS)
		wait_ns = REFRESH_MAX_NS;
	t->next_ns = monotonic_ns() + wait_ns;
	return 0;
}

/* --- what keys do ----------------------------------------------------------------------------- */

/* The words of the selection as they are told, and what s proposes. */
static int apply_filter(struct top *t, const char *text)
{
	struct top_filter filter = { 0 };
	int r = top_filter_read(&filter, text);

	if (r < 0) {
		top_filter_release(&filter);
		return r;
	}
	top_model_select(t->model, &filter.query);
	top_filter_release(&t->filter);
	t->filter = filter;
	strbuf_truncate(&t->view.filter, 0);
	return select_put_query(&t->filter.query, &t->view.filter);
}

static int propose_name(struct top *t)
{
	time_t now = time(NULL);
	char text[64];
	struct tm utc;

	gmtime_r(&now, &utc);
	strftime(text, sizeof(text), "top-%Y%m%dT%H%M%SZ.pyebpf", &utc);
	strbuf_truncate(&t->view.save_as, 0);
	return strbuf_puts(&t->view.save_as, text);
}

static int save(struct top *t)
{
	const char *path = strbuf_str(&t->view.input);
	int r = catch_up(t);

	if (r < 0)
		return r;
	r = top_keep_save(&t->keep, path);
	if (r < 0)
		say(t, "not saved: %s", err_message(r));
	else
		say(t, "saved: %s", path);
	err_clear(); /* it is told */
	return 0;
}

static int reset(struct top *t)
{
	int r = begin_anew(t);

	if (r < 0 || (r = top_model_reset(t->model, monotonic_ns())) < 0)
		return r;
	show_forgotten_ids(t);
	say(t, "counters reset");
	return sum_up(t);
}

/* What has come meanwhile is shown at once. */
static void hold(struct top *t)
{
	if (t->is_held && !t->view.is_paused)
		t->next_ns = 0;
	t->is_held = t->view.is_paused;
	top_model_hold(t->model, t->is_held);
}

static int act(struct top *t, enum top_action action)
{
	int r = 0;

	switch (action) {
	case TOP_DO_SUM:
		hold(t);
		r = sum_up(t);
		break;
	case TOP_DO_FILTER:
		r = apply_filter(t, strbuf_str(&t->view.input));
		if (r == -EINVAL || r == -ERANGE)
			say(t, "filter: %s", err_message(r));
		else if (r < 0)
			return r;
		err_clear();
		r = sum_up(t);
		break;
	case TOP_DO_SAVE:
		r = save(t);
		break;
	case TOP_DO_RESET:
		r = reset(t);
		break;
	case TOP_DO_REDRAW:
		top_terminal_forget(t->terminal);
		break;
	case TOP_DO_QUIT:
		t->should_quit = true;
		break;
	default:
		break;
	}
	return r;
}

static int on_key(struct top *t, int key)
{
	enum top_action action;

	if (key == 's' && !t->view.prompt)
		propose_name(t);
	action = top_view_key(&t->view, key, &t->sums, top_model_profile(t->model));
	if (t->warning && !action)
		action = TOP_DO_PAINT;
	t->warning = NULL;
	return act(t, action);
}

/* All that has come, painted once. */
static int handle_events(struct top *t)
{
	enum top_event event;
	bool is_new = false;
	int key, r = 0;

	while (r >= 0 && !t->should_quit &&
	       (event = top_terminal_event(t->terminal, &key)) != TOP_EVENT_NONE) {
		is_new = true;
		if (event == TOP_EVENT_KEY)
			r = on_key(t, key);
		else if (event == TOP_EVENT_QUIT)
			t->should_quit = true;
		else if (event == TOP_EVENT_CHILD)
			r = launch_reap(&t->run.targets.launch, false);
	}
	return r < 0 || !is_new || t->should_quit ? r : paint(t);
}

/* --- from start to end ------------------------------------------------------------------------ */

/* Said once; what was seen of them last stays on the screen. */
static int notice_end(struct top *t)
{
	pid_t rest;
	int r;

	if (t->targets_are_gone || (r = record_run_has_ended(&t->run, &rest)) == 0)
		return 0;
	if (r < 0)
		return r;
	t->targets_are_gone = true;
	if (record_targets_has_command(&t->run.targets) &&
	    launch_reap(&t->run.targets.launch, true) >= 0)
		say(t, "%s exited with status %d; press q to quit",
		    t->run.targets.command->items[0], launch_exit_code(&t->run.targets.launch));
	else
		say(t, "all processes that were watched have ended; q quits");
	if (t->view.is_paused)
		return paint(t);
	r = refresh(t);
	t->view.is_paused = true;
	hold(t);
	return r < 0 ? r : paint(t);
}

int top_start(struct top *t)
{
	int r;

	if ((r = top_terminal_new(&t->terminal)) < 0 || (r = record_run_aim(&t->run)) < 0 ||
	    (r = record_targets_put(&t->run.targets, &t->target)) < 0 ||
	    (r = modes_put(t->run.o->modes, &t->mode)) < 0 ||
	    (r = top_keep_begin(&t->keep, recorder_of(t))) < 0 ||
	    (r = top_terminal_open(t->terminal)) < 0 || (r = record_run_go(&t->run)) < 0)
		return r;
	if (!(t->run.o->modes & MODE_OFF_CPU) && t->run.o->can_do_without_waits)
		say(t, "waits are not shown on this kernel: see row sched_switch of pyebpf doctor");
	if (recorder_awaits_python(recorder_of(t)))
		say(t, "no Python runtime yet: waiting for a child process that runs Python");
	new_counts(t, &(struct top_counts){ 0 });
	return refresh(t);
}

static int tell_of_stopped(struct top *t)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	pid_t pid = stopped_step(&t->run, monotonic_ns());

	if (pid <= 0)
		return pid;
	if (stopped_put_note(pid, t->run.o->modes, &text) < 0)
		return -ENOMEM;
	say(t, "%s", strbuf_str(&text));
	return paint(t);
}

int top_loop(struct top *t)
{
	int r;

	while (!t->should_quit) {
		uint64_t now_ns;

		r = recorder_step(recorder_of(t), top_terminal_fd(t->terminal), STEP_MS);
		if (r < 0 || (r = handle_events(t)) < 0 ||
		    (r = recorder_follow_cpus(recorder_of(t))) < 0 || (r = tell_of_stopped(t)) < 0)
			return r;
		if ((r = notice_end(t)) < 0)
			return r;
		now_ns = monotonic_ns();
		if (now_ns >= t->next_ns)
			r = refresh(t);
		else if (recorder_profile(recorder_of(t))->samples.len >= SAMPLES_MAX)
			r = take(t);
		if (r < 0)
			return r;
	}
	return 0;
}

void top_release(struct top *t)
{
	top_terminal_free(t->terminal);
	top_keep_release(&t->keep);
	top_model_free(t->model);
	top_view_release(&t->view);
	top_filter_release(&t->filter);
	top_screen_release(&t->screen);
	top_sums_release(&t->sums);
	top_detail_release(&t->detail);
	strbuf_release(&t->target);
	strbuf_release(&t->mode);
	record_run_release(&t->run);
}
