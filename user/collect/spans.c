/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/spans.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/workers.h"
#include "bpf/events.h"
#include "pyebpf.skel.h"

#define PASS_NS (2 * NS_PER_SECOND) /* 80,000 threads, if their pages are there */
#define AHEAD_EVERY_NS \
	(NS_PER_SECOND / 10) /* a pass looks ahead, at spans that have lasted that long */
#define AHEAD_REST \
	100 /* between two passes: at least so many times the CPU time of the one before */
#define AHEAD_NS                                                                        \
	(NS_PER_SECOND / 40) /* for the samples of a pass: who is left is the next time \
			      */

DEFINE_CLEANUP(struct bpf_link *, bpf_link__destroy)

struct spans {
	struct pyebpf *skel;
	struct workers *workers;
	pthread_mutex_t lock; /* one pass at a time: they share a work space */
	bool is_late;         /* one has not come back */
	uint64_t cut_ns;      /* when spans were last closed; 0: not yet */
	uint64_t ahead_ns;    /* not before then is looked ahead */
	uint64_t cpu_ns;      /* of the last pass */
};

/* One reading of the iterator. */
struct pass {
	struct work work;
	int fd;
	int result;
	uint64_t cpu_ns;
};

/* Of one that writes nothing. */
static int read_through(int fd)
{
	ssize_t n;
	char none;

	do
		n = read(fd, &none, sizeof(none));
	while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? -errno : 0;
}

static void pass_run(struct work *w, void *context)
{
	struct pass *p = (struct pass *)w;

	(void)context;
	p->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	p->result = read_through(p->fd);
	p->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - p->cpu_ns;
}

static void pass_free(struct work *w)
{
	struct pass *p = (struct pass *)w;

	if (!p)
		return;
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

int spans_new(struct pyebpf *skel, struct spans **out)
{
	const struct workers_kind kind = { .files = APART_ONE_FILE };
	struct spans *sp = calloc(1, sizeof(*sp));
	int r;

	if (!sp)
		return -ENOMEM;
	r = workers_new(&kind, &sp->workers);
	if (r < 0) {
		free(sp);
		return r;
	}
	sp->skel = skel;
	pthread_mutex_init(&sp->lock, NULL);
	*out = sp;
	return 0;
}

void spans_free(struct spans *sp)
{
	if (!sp)
		return;
	workers_free(sp->workers);
	pthread_mutex_destroy(&sp->lock);
	free(sp);
}

/*
 * Over the threads of a process (before Linux 6.1: over all), 0: over all. libbpf wants the padding
 * of the options to be zero, too.
 */
static int iterate(const struct bpf_program *prog, uint32_t pid)
{
	union bpf_iter_link_info one = { .task = { .pid = pid } };
	_cleanup_(bpf_link__destroyp) struct bpf_link *link = NULL;
	struct bpf_iter_attach_opts opts;
	int fd;

	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	if (pid) {
		opts.link_info = &one;
		opts.link_info_len = sizeof(one);
	}
	link = bpf_program__attach_iter(prog, &opts);
	fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	return fd < 0 ? -errno : fd;
}

/* A pass that was late has come back: there can be others again. */
static bool is_free(struct spans *sp)
{
	struct work *w = sp->is_late ? workers_next(sp->workers) : NULL;

	if (w) {
		pass_free(w);
		sp->is_late = false;
	}
	return !sp->is_late;
}

static int run_pass(struct spans *sp, uint32_t pid)
{
	struct pass *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	*p = (struct pass){ .work = { .run = pass_run, .free = pass_free } };
	p->fd = p->work.fd = iterate(sp->skel->progs.visit_thread, pid);
	if (p->fd < 0)
		r = p->fd == -ESRCH ? 0 : p->fd; /* it is gone */
	else if (!(r = workers_run(sp->workers, &p->work, PASS_NS)))
		r = p->result;
	if (r == -EINPROGRESS) {
		sp->is_late = true;
		log_at(LOG_LEVEL_WARNING, "the memory of a thread that waits cannot be read for "
					  "seconds: threads that do not switch are left out");
		return 0;
	}
	sp->cpu_ns = p->cpu_ns;
	pass_free(&p->work);
	return r < 0 ? err_set(r, "look at threads that wait: %s", strerror(-r)) : 0;
}

/* This one waits for nothing. */
static int note_waited(struct spans *sp, uint32_t pid)
{
	_cleanup_(closep) int fd = iterate(sp->skel->progs.note_waited, pid);
	int r = fd == -ESRCH ? 0 : fd < 0 ? fd : read_through(fd);

	return r < 0 ? err_set(r, "look at threads that wait: %s", strerror(-r)) : 0;
}

static int visit(struct spans *sp, uint32_t pid, uint64_t opened_ns, uint64_t closed_ns,
		 uint64_t lasting_ns)
{
	int r;

	if (!is_free(sp))
		return 0;
	if (closed_ns && (r = note_waited(sp, pid)) < 0)
		return r;
	sp->skel->bss->opened_ns = opened_ns;
	sp->skel->bss->closed_ns = closed_ns;
	sp->skel->bss->lasting_ns = lasting_ns;
	sp->skel->bss->lasting_until_ns = monotonic_ns() + AHEAD_NS;
	sp->skel->bss->spans_left = 0;
	r = run_pass(sp, pid);
	if (!r && !closed_ns && !lasting_ns)
		r = note_waited(sp, pid);
	return r < 0 ? r : sp->skel->bss->spans_left > 0;
}

int spans_open(struct spans *sp, uint32_t pid)
{
	int r;

	pthread_mutex_lock(&sp->lock);
	r = visit(sp, pid, pid ? 0 : sp->skel->bss->started_ns, 0, 0);
	pthread_mutex_unlock(&sp->lock);
	return r < 0 ? r : 0;
}

int spans_close(struct spans *sp, uint64_t at_ns)
{
	int r;

	pthread_mutex_lock(&sp->lock);
	if (at_ns != sp->cut_ns)
		sp->skel->bss->cut_from_ns = sp->cut_ns ? sp->cut_ns : sp->skel->bss->started_ns;
	r = visit(sp, 0, 0, at_ns, 0);
	sp->skel->bss->cut_from_ns = 0;
	sp->cut_ns = at_ns;
	pthread_mutex_unlock(&sp->lock);
	return r;
}

int spans_look_ahead(struct spans *sp, uint64_t now)
{
	int r;

	if (now < sp->ahead_ns || pthread_mutex_trylock(&sp->lock))
		return 0;
	r = visit(sp, 0, 0, 0, AHEAD_EVERY_NS);
	sp->ahead_ns = now + AHEAD_EVERY_NS + AHEAD_REST * sp->cpu_ns;
	pthread_mutex_unlock(&sp->lock);
	return r < 0 ? r : 0;
}
