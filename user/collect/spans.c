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

#define PASS_NS (3 * NS_PER_SECOND / 2) /* 60,000 threads, if their pages are there */
#define SILENT_NS NS_PER_SECOND         /* of one visit: the page that it waits for does not come */
#define AHEAD_EVERY_NS \
	(NS_PER_SECOND / 10) /* a pass looks ahead, at spans that have lasted that long */
/* And more often for a while after a process has begun, which may be short. */
#define AHEAD_YOUNG_MS 20
#define AHEAD_YOUNG_NS (NS_PER_SECOND / 1000 * AHEAD_YOUNG_MS)
#define YOUNG_NS NS_PER_SECOND
#define AHEAD_REST \
	100 /* between two passes: at least so many times the CPU time of the one before */
#define AHEAD_CPU_NS \
	(NS_PER_SECOND / 40) /* for the samples of a pass: who is left is the next time */
#define STEP_NS                                                                           \
	(NS_PER_SECOND / 200) /* that a step waits for its pass: a pass takes 1 ms mostly \
			       */
#define OPENS_MAX \
	8 /* processes of which one pass each opens the spans; of more one pass over all */

DEFINE_CLEANUP(struct bpf_link *, bpf_link__destroy)

struct spans {
	struct pyebpf *skel;
	struct workers *workers;

	pthread_mutex_t lock; /* of what is to be opened, which any thread may ask for */
	uint32_t opens[OPENS_MAX];
	size_t opens_len;  /* more than OPENS_MAX: all */
	uint64_t opens_ns; /* when the first of them was asked for */

	/* The rest is the recorder's. */
	struct pass *running; /* NULL: none; one at a time */
	uint32_t busy;     /* REMOTE_SCRATCHES: bit n: a pass that was left behind has the n-th */
	uint32_t silent;   /* entries of the BPF program's list that were ever filled */
	bool is_cut_short; /* the last pass was left behind: others have to see the rest */
	bool has_given_up; /* no work space is left, which was said */
	uint64_t cut_ns;   /* when spans were last closed; 0: not yet */
	uint64_t ahead_ns; /* the last pass that looked ahead has ended, and its rest is over */
	uint64_t begun;    /* processes, so far, */
	uint64_t young_ns; /* and until then one of them is young */
};

/* One reading of the iterator. */
struct pass {
	struct work work;
	int fd;
	int result;
	uint32_t pid;     /* 0: over all */
	bool opens;       /* spans */
	bool is_ahead;    /* looks at those that last */
	uint32_t scratch; /* the work space that it has */
	uint64_t begin_ns;
	uint64_t cpu_ns; /* that it took */
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

/* What a pass is to do. */
struct errand {
	uint32_t pid;                              /* whose threads are visited; 0: of all */
	uint64_t opened_ns, closed_ns, lasting_ns; /* as bpf/remote.bpf.c has them */
};

/* Passes that were left behind and have come back give their work spaces back. */
static void take_back(struct spans *sp)
{
	struct work *w;

	while ((w = workers_next(sp->workers))) {
		sp->busy &= ~(1U << ((struct pass *)w)->scratch);
		pass_free(w);
	}
}

static void give_errand(struct spans *sp, const struct pass *p, const struct errand *e)
{
	struct pyebpf__bss *bss = sp->skel->bss;

	bss->opened_ns = e->opened_ns;
	bss->closed_ns = e->closed_ns;
	bss->lasting_ns = e->lasting_ns;
	bss->lasting_cpu_ns = AHEAD_CPU_NS;
	bss->spans_left = 0;
	bss->remote_scratch = p->scratch;
}

/* -EBUSY: all work spaces are those of passes that were left behind. -ESRCH: the process is gone.
 */
static int pass_begin(struct spans *sp, const struct errand *e)
{
	struct pass *p;
	int r;

	take_back(sp);
	if (sp->busy == (1U << REMOTE_SCRATCHES) - 1) {
		if (!sp->has_given_up)
			log_warning("the memory of %u processes does not answer: threads that do "
				    "not run are lost",
				    REMOTE_SCRATCHES);
		sp->has_given_up = true;
		return -EBUSY;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct pass){ .work = { .run = pass_run, .free = pass_free },
			    .pid = e->pid,
			    .opens = !e->closed_ns && !e->lasting_ns,
			    .is_ahead = e->lasting_ns > 0,
			    .scratch = (uint32_t)__builtin_ctz(~sp->busy),
			    .begin_ns = monotonic_ns() };
	sp->is_cut_short = false;
	give_errand(sp, p, e);
	p->fd = p->work.fd = iterate(sp->skel->progs.visit_thread, e->pid);
	r = p->fd < 0 ? p->fd : workers_start(sp->workers, &p->work);
	if (r < 0)
		pass_free(&p->work);
	else
		sp->running = p;
	return r;
}

/* The process whose memory the pass reads is visited no more, if it is what the pass waits for. */
static void stop_visits(struct spans *sp)
{
	struct pyebpf__bss *bss = sp->skel->bss;
	uint64_t process = bss->visiting;

	if (!process || difference(monotonic_ns(), bss->visiting_ns) < SILENT_NS)
		return;
	bss->silent[sp->silent++ % SILENT_MAX] = process;
	log_warning("pid %u: its memory does not answer (a network mount or a FUSE server that "
		    "hangs?): what threads of this process wait for at the end is lost",
		    bss->visiting_pid);
}

/* It may never come back: the next one has another work space and another reader. */
static int pass_leave(struct spans *sp)
{
	struct pass *p = sp->running;
	int r = workers_leave(sp->workers, &p->work);

	sp->running = NULL;
	sp->is_cut_short = true;
	if (r == -EINPROGRESS) {
		sp->busy |= 1U << p->scratch;
		stop_visits(sp);
		return 0;
	}
	pass_free(&p->work);
	return r == -EAGAIN ? 0 : r; /* there is no CPU to be had for it */
}

void spans_free(struct spans *sp)
{
	if (!sp)
		return;
	if (sp->running)
		pass_leave(sp);
	workers_free(sp->workers);
	pthread_mutex_destroy(&sp->lock);
	free(sp);
}

/* This one waits for nothing. */
static int note_waited(struct spans *sp, uint32_t pid)
{
	_cleanup_(closep) int fd = iterate(sp->skel->progs.note_waited, pid);

	return fd == -ESRCH ? 0 : fd < 0 ? fd : read_through(fd);
}

/* Waits up to ns for the pass to end. */
static int pass_wait(struct spans *sp, uint64_t ns)
{
	struct pass *p = sp->running;
	int r;

	if (!workers_wait(sp->workers, &p->work, ns))
		return monotonic_ns() - p->begin_ns < PASS_NS ? 0 : pass_leave(sp);
	r = p->result;
	if (!r && p->opens)
		r = note_waited(sp, p->pid);
	sp->running = NULL;
	if (p->is_ahead)
		sp->ahead_ns = monotonic_ns() + AHEAD_REST * p->cpu_ns;
	pass_free(&p->work);
	return r;
}

static int finish(struct spans *sp)
{
	int r = 0;

	while (!r && sp->running)
		r = pass_wait(sp, PASS_NS);
	return r;
}

static int say(int r)
{
	if (r == -ESRCH || r == -EBUSY)
		return 0;
	if (r == -EAGAIN || r == -EUSERS)
		return workers_say(r);
	return r < 0 ? err_set(r, "look at threads that wait: %s", strerror(-r)) : r;
}

int spans_begin(struct spans *sp)
{
	const struct errand all = { .opened_ns = sp->skel->bss->started_ns };
	int r = pass_begin(sp, &all);

	return say(r < 0 ? r : finish(sp));
}

void spans_open(struct spans *sp, uint32_t pid)
{
	pthread_mutex_lock(&sp->lock);
	if (!sp->opens_len)
		sp->opens_ns = monotonic_ns();
	if (sp->opens_len < OPENS_MAX)
		sp->opens[sp->opens_len] = pid;
	if (sp->opens_len <= OPENS_MAX)
		sp->opens_len++;
	pthread_mutex_unlock(&sp->lock);
}

/* The next process that is to be opened. Many: one pass over all. */
static bool next_open(struct spans *sp, struct errand *e)
{
	bool is_any;

	pthread_mutex_lock(&sp->lock);
	is_any = sp->opens_len > 0;
	*e = (struct errand){ .opened_ns = sp->opens_ns };
	if (is_any && sp->opens_len <= OPENS_MAX)
		e->pid = sp->opens[--sp->opens_len];
	else
		sp->opens_len = 0;
	pthread_mutex_unlock(&sp->lock);
	return is_any;
}

/* Waits for it, and for the pass that runs. */
static int open_all(struct spans *sp)
{
	struct errand e;
	int r = finish(sp);

	while (!r && next_open(sp, &e))
		if (!(r = pass_begin(sp, &e)) || r == -ESRCH)
			r = finish(sp);
	return r;
}

int spans_close(struct spans *sp, uint64_t at_ns)
{
	const struct errand close = { .closed_ns = at_ns };
	struct pyebpf__bss *bss = sp->skel->bss;
	int r = open_all(sp);

	if (at_ns != sp->cut_ns)
		bss->cut_from_ns = sp->cut_ns ? sp->cut_ns : bss->started_ns;
	if (!r && !(r = note_waited(sp, 0)) && !(r = pass_begin(sp, &close)))
		r = finish(sp);
	bss->cut_from_ns = 0;
	sp->cut_ns = at_ns;
	return r ? say(r) : sp->is_cut_short || bss->spans_left;
}

static bool has_young(struct spans *sp, uint64_t now)
{
	uint64_t begun = __atomic_load_n(&sp->skel->bss->pythons_begun, __ATOMIC_RELAXED);

	if (begun != sp->begun)
		sp->young_ns = now + YOUNG_NS;
	sp->begun = begun;
	return now < sp->young_ns;
}

int spans_patience(struct spans *sp, int max_ms)
{
	return max_ms > AHEAD_YOUNG_MS && has_young(sp, monotonic_ns()) ? AHEAD_YOUNG_MS : max_ms;
}

static bool next_errand(struct spans *sp, uint64_t now, bool may_look_ahead, struct errand *e)
{
	if (next_open(sp, e))
		return true;
	*e = (struct errand){ .lasting_ns = has_young(sp, now) ? AHEAD_YOUNG_NS : AHEAD_EVERY_NS };
	return may_look_ahead && now >= sp->ahead_ns + e->lasting_ns;
}

int spans_step(struct spans *sp, bool may_look_ahead)
{
	struct errand e;
	int r = 0;

	for (int i = 0; i <= OPENS_MAX && !r; i++) {
		if (sp->running)
			r = pass_wait(sp, STEP_NS);
		if (r || sp->running || !next_errand(sp, monotonic_ns(), may_look_ahead, &e))
			break;
		r = pass_begin(sp, &e);
	}
	return say(r);
}
