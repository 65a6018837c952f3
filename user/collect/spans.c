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
#include "collect/thread_name.h"
#include "pyebpf.skel.h"

#define PASS_NS (3 * NS_PER_SECOND / 2) /* 60,000 threads, if their pages are there */
#define SILENT_NS NS_PER_SECOND         /* of one visit: the page that it waits for does not come */
#define AHEAD_EVERY_NS \
	(NS_PER_SECOND / 10) /* a pass looks ahead, at spans that have lasted that long */
/* And more often for a while at a process that has begun, which may be short. */
#define NS_PER_MS (NS_PER_SECOND / 1000)
#define AHEAD_YOUNG_MS 20
#define AHEAD_YOUNG_NS (AHEAD_YOUNG_MS * NS_PER_MS)
#define YOUNG_NS NS_PER_SECOND
#define YOUNG_MAX 8 /* of which each has its own passes; of more one pass over all */
#define AHEAD_REST \
	100 /* between two passes: at least so many times the CPU time of the one before */
#define AHEAD_CPU_NS \
	(NS_PER_SECOND / 40) /* for the samples of a pass: who is left is the next time */
#define STEP_NS                                                                           \
	(NS_PER_SECOND / 200) /* that a step waits for its pass: a pass takes 1 ms mostly \
			       */
#define OPENS_MAX \
	8 /* processes of which one pass each opens the spans; of more one pass over all */

/* A process that has just begun. */
struct young {
	uint32_t pid;
	uint64_t begun_ns;
	uint64_t next_ns; /* when a pass looks at it */
};

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
	uint64_t ahead_ns; /* when the last pass over all that looked ahead has ended */
	uint64_t rest_ns;  /* until then none looks ahead */
	uint64_t begun;    /* processes, so far: pythons_begun, */
	uint64_t missed;   /* and begun_missed */
	struct young young[YOUNG_MAX];
	size_t young_len;
	uint64_t crowd_ns; /* until then there are young ones that are not among these */
};

/* One reading of the iterator. */
struct pass {
	struct work work;
	int result;
	uint32_t pid;     /* 0: over all */
	bool opens;       /* spans */
	bool is_ahead;    /* looks at those that last */
	uint32_t scratch; /* the work space that it has */
	uint64_t begin_ns;
	uint64_t cpu_ns; /* that it took */
};

/*
 * Over the threads of a process (before Linux 6.1: over all), 0: over all. libbpf wants the padding
 * of the options to be zero, too.
 */
static int iterate(int prog_fd, uint32_t pid)
{
	union bpf_iter_link_info one = { .task = { .pid = pid } };
	struct bpf_link_create_opts opts;
	_cleanup_(closep) int link = -1;
	int fd;

	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	if (pid) {
		opts.iter_info = &one;
		opts.iter_info_len = sizeof(one);
	}
	link = bpf_link_create(prog_fd, 0, BPF_TRACE_ITER, &opts);
	fd = link < 0 ? link : bpf_iter_create(link);
	return fd < 0 ? -errno : fd;
}

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

/* A process that is gone has no threads. */
static int visit(int prog_fd, uint32_t pid)
{
	_cleanup_(closep) int fd = iterate(prog_fd, pid);

	return fd == -ESRCH ? 0 : fd < 0 ? fd : read_through(fd);
}

static void pass_run(struct work *w, void *context)
{
	struct pass *p = (struct pass *)w;

	(void)context;
	p->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	p->result = visit(p->work.fd, p->pid);
	p->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - p->cpu_ns;
}

static void pass_free(struct work *w)
{
	free(w);
}

int spans_new(struct pyebpf *skel, struct spans **out)
{
	const struct workers_kind kind = { .files = APART_ONE_FILE, .has_same_file = true };
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

/* -EBUSY: all work spaces are those of passes that were left behind. */
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
	*p = (struct pass){ .work = { .run = pass_run,
				      .free = pass_free,
				      .fd = bpf_program__fd(sp->skel->progs.visit_thread) },
			    .pid = e->pid,
			    .opens = !e->closed_ns && !e->lasting_ns,
			    .is_ahead = e->lasting_ns > 0,
			    .scratch = (uint32_t)__builtin_ctz(~sp->busy),
			    .begin_ns = monotonic_ns() };
	sp->is_cut_short = false;
	give_errand(sp, p, e);
	r = workers_start(sp->workers, &p->work);
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
	return visit(bpf_program__fd(sp->skel->progs.note_waited), pid);
}

static void note_ahead(struct spans *sp, const struct pass *p, uint64_t now)
{
	sp->rest_ns = now + AHEAD_REST * p->cpu_ns;
	if (!p->pid)
		sp->ahead_ns = now;
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
		note_ahead(sp, p, monotonic_ns());
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
	if (r == -EBUSY)
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
		if (!(r = pass_begin(sp, &e)))
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

static void add_young(struct spans *sp, uint32_t pid, uint64_t now)
{
	const struct young new = { .pid = pid, .begun_ns = now, .next_ns = now + AHEAD_YOUNG_NS };
	size_t i = 0;

	while (i < sp->young_len && sp->young[i].pid != pid)
		i++;
	if (i == YOUNG_MAX) {
		sp->crowd_ns = now + YOUNG_NS;
		return;
	}
	sp->young[i] = new;
	sp->young_len += i == sp->young_len;
}

/* Takes those that have begun, as bpf/discover.h tells of them. */
static void take_begun(struct spans *sp, uint64_t now)
{
	struct pyebpf__bss *bss = sp->skel->bss;
	uint64_t begun = __atomic_load_n(&bss->pythons_begun, __ATOMIC_ACQUIRE);
	uint64_t missed = __atomic_load_n(&bss->begun_missed, __ATOMIC_RELAXED);

	if (begun == sp->begun)
		return;
	if (missed != sp->missed)
		sp->crowd_ns = now + YOUNG_NS;
	sp->begun = begun;
	sp->missed = missed;
	for (size_t i = 0; i < BEGUN_SLOTS; i++) {
		uint32_t pid = __atomic_exchange_n(&bss->begun_pids[i], 0, __ATOMIC_RELAXED);

		if (pid)
			add_young(sp, pid, now);
	}
}

/* Returns a process that is to be looked at; NULL: none is. Removes those that are young no more.
 */
static struct young *due_young(struct spans *sp, uint64_t now)
{
	size_t i = 0;

	while (i < sp->young_len) {
		struct young *y = &sp->young[i];
		bool is_due = now >= y->next_ns;

		if (now - y->begun_ns >= YOUNG_NS ||
		    (is_due && thread_has_ended((pid_t)y->pid, (pid_t)y->pid)))
			*y = sp->young[--sp->young_len];
		else if (is_due)
			return y;
		else
			i++;
	}
	return NULL;
}

int spans_patience(struct spans *sp, int max_ms)
{
	uint64_t now = monotonic_ns(), least = now + (uint64_t)max_ms * NS_PER_MS;

	take_begun(sp, now);
	if (now < sp->crowd_ns && least > now + AHEAD_YOUNG_NS)
		least = now + AHEAD_YOUNG_NS;
	for (size_t i = 0; i < sp->young_len; i++)
		if (sp->young[i].next_ns < least)
			least = sp->young[i].next_ns;
	if (least < sp->rest_ns)
		least = sp->rest_ns;
	least = (difference(least, now) + NS_PER_MS - 1) / NS_PER_MS;
	return least < (uint64_t)max_ms ? (int)least : max_ms;
}

static bool next_ahead(struct spans *sp, uint64_t now, struct errand *e)
{
	uint64_t every_ns = now < sp->crowd_ns ? AHEAD_YOUNG_NS : AHEAD_EVERY_NS;
	struct young *y;

	if (now < sp->rest_ns)
		return false;
	*e = (struct errand){ .lasting_ns = every_ns };
	if (now >= sp->ahead_ns + every_ns)
		return true;
	y = due_young(sp, now);
	if (!y)
		return false;
	y->next_ns = now + AHEAD_YOUNG_NS;
	*e = (struct errand){ .pid = y->pid, .lasting_ns = AHEAD_YOUNG_NS };
	return true;
}

static bool next_errand(struct spans *sp, uint64_t now, bool may_look_ahead, struct errand *e)
{
	if (next_open(sp, e))
		return true;
	take_begun(sp, now);
	return may_look_ahead && next_ahead(sp, now, e);
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
