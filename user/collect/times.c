/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/vec.h"
#include "collect/sample.h"
#include "collect/wait_words.h"
#include "profile/idmap.h"

#define GROUP_SAMPLES 16
#define GROUP_NS (8 * NS_PER_SECOND) /* a group that is older is worth what it is worth */
#define LIST_NS (2 * NS_PER_SECOND)
#define MISSES_MAX 2            /* lists without a thread until it has ended */
#define ENDED_MAX 256           /* entries of ended threads, before they are thrown out */
#define WEIGHT_MAX (1ULL << 44) /* of one that is scaled: all that wait sum up in 64 bits */

/* What a thread's time is told apart by. */
enum share {
	SHARE_CPU,
	SHARE_SHORT,
	SHARE_LONG = SHARE_SHORT + CLASS_COUNT_,
	SHARE_UNSEEN = SHARE_LONG + CLASS_COUNT_,
	SHARE_COUNT_
};

struct thread_clock {
	uint32_t tid, pid;
	uint64_t process;
	uint64_t since_ns; /* 0: nothing is known of its times */
	uint64_t now_ns;   /* all up to then is known; CLOCK_MONOTONIC */
	uint64_t told_ns;  /* so far `<not sampled>` was told */
	uint64_t exact[SHARE_COUNT_], told[SHARE_COUNT_]; /* ns, told <= exact */
	uint64_t episodes;
	VEC(uint64_t) held; /* sample records, 8-byte aligned, one behind the other */
	size_t open;        /* of them: its span has begun and not ended; NOT_OPEN: none */
	uint32_t list;      /* the last one that it was in */
	bool has_ended;
	char comm[COMM_BYTES];
};

#define NOT_OPEN SIZE_MAX

struct times {
	struct times_opts opts;
	VEC(struct thread_clock) threads;
	struct idmap ids; /* by tid */
	size_t ended;     /* how many of them are */
	uint32_t list;
	uint64_t listed_ns;
	size_t held_bytes;
	struct times_sum sum;
};

int times_new(const struct times_opts *opts, struct times **out)
{
	struct times *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->opts = *opts;
	*out = t;
	return 0;
}

void times_free(struct times *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->threads.len; i++)
		vec_release(&t->threads.items[i].held);
	vec_release(&t->threads);
	idmap_release(&t->ids);
	free(t);
}

/* --- threads ---------------------------------------------------------------------------------- */

static uint64_t tid_hash(uint32_t tid)
{
	return hash_combine(0, tid);
}

/* NULL: there is none that has not ended. Valid until the next clock_get(). */
static struct thread_clock *clock_find(const struct times *t, uint32_t tid)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&t->ids, tid_hash(tid), &at)) != IDMAP_NONE)
		if (t->threads.items[i].tid == tid && !t->threads.items[i].has_ended)
			return &t->threads.items[i];
	return NULL;
}

/* Their tids are free for others. */
static int throw_out_ended(struct times *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->threads.len; i++)
		if (!t->threads.items[i].has_ended)
			t->threads.items[kept++] = t->threads.items[i];
	t->threads.len = kept;
	t->ended = 0;
	idmap_release(&t->ids);
	for (size_t i = 0; i < kept; i++) {
		int r = idmap_reserve(&t->ids);

		if (r < 0)
			return r;
		idmap_insert(&t->ids, tid_hash(t->threads.items[i].tid), i);
	}
	return 0;
}

static int clock_get(struct times *t, uint32_t tid, struct thread_clock **out)
{
	struct thread_clock new = { .tid = tid, .list = t->list, .open = NOT_OPEN };
	int r;

	*out = clock_find(t, tid);
	if (*out)
		return 0;
	if (t->ended > ENDED_MAX && t->ended > t->threads.len / 2 && (r = throw_out_ended(t)) < 0)
		return r;
	if ((r = idmap_reserve(&t->ids)) < 0 || (r = vec_push(&t->threads, new)) < 0)
		return r;
	idmap_insert(&t->ids, tid_hash(tid), t->threads.len - 1);
	*out = &t->threads.items[t->threads.len - 1];
	return 0;
}

/* --- what waits ------------------------------------------------------------------------------- */

static struct sample_event *held_at(const struct thread_clock *th, size_t at)
{
	return (struct sample_event *)&th->held.items[at];
}

static size_t words_of(const struct sample_event *e)
{
	return sample_size(e) / sizeof(uint64_t);
}

static enum wait_class class_of(unsigned int wait)
{
	static const uint8_t classes[WAIT_COUNT_] = {
#define X(reason, class) [reason] = class,
		WAIT_REASONS(X)
#undef X
	};

	return classes[wait];
}

static enum share share_of(const struct sample_event *e)
{
	if (e->source == SOURCE_TICKS)
		return SHARE_CPU;
	return (e->flags & SAMPLE_SHORT ? SHARE_SHORT : SHARE_LONG) + class_of(e->wait);
}

static void drop_held(struct times *t, struct thread_clock *th, size_t at)
{
	size_t words = words_of(held_at(th, at));

	memmove(&th->held.items[at], &th->held.items[at + words],
		(th->held.len - at - words) * sizeof(uint64_t));
	th->held.len -= words;
	t->held_bytes -= words * sizeof(uint64_t);
}

/* The end of the span before was lost: nothing is known of it. */
static void drop_open(struct times *t, struct thread_clock *th)
{
	if (th->open != NOT_OPEN)
		drop_held(t, th, th->open);
	th->open = NOT_OPEN;
}

int times_add_sample(struct times *t, const struct sample_event *e)
{
	struct thread_clock *th;
	int r = clock_get(t, e->tid, &th);

	if (r < 0)
		return r;
	if (e->flags & SAMPLE_OPEN) {
		drop_open(t, th);
		th->open = th->held.len;
	}
	r = vec_append(&th->held, (const uint64_t *)e, words_of(e));
	if (r < 0)
		return r;
	t->held_bytes += words_of(e) * sizeof(uint64_t);
	return 0;
}

int times_end_span(struct times *t, const struct span_end_event *e)
{
	struct thread_clock *th = clock_find(t, e->tid);
	struct sample_event *s;

	if ((e->value && !e->wait) || e->wait >= WAIT_COUNT_ || e->ktime_ns < e->begin_ns)
		return -EBADMSG;
	if (!th || th->open == NOT_OPEN)
		return 0; /* the sample was lost */
	s = held_at(th, th->open);
	if (s->ktime_ns != e->begin_ns || s->process != e->process)
		return 0;
	s->value = e->value;
	s->duration_ns = e->ktime_ns - e->begin_ns;
	s->ktime_ns = e->ktime_ns;
	s->blocked_ns = s->flags & SAMPLE_HOLDS_GIL ? e->blocked_ns : 0; /* told of any thread */
	s->wait = e->wait;
	s->syscall = e->syscall;
	s->flags = (s->flags | e->flags) & ~(uint32_t)SAMPLE_OPEN;
	if (!e->value)
		drop_held(t, th, th->open);
	th->open = NOT_OPEN;
	return 0;
}

/* --- worth ------------------------------------------------------------------------------------ */

/* Of a thread and a share, the samples that are there. */
struct group {
	uint64_t count, sum; /* of the values that they came with */
	uint64_t oldest_ns;
	uint64_t budget_ns; /* they are worth together; 0: they wait on */
	uint64_t seen, given_ns;
};

static uint64_t scale(uint64_t value, uint64_t by, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)value * by / whole);
}

/* Its part of its group. A span of more than hours is hardly one that was kept by chance. */
static uint64_t weight_of(const struct sample_event *e)
{
	return e->value < WEIGHT_MAX ? e->value : WEIGHT_MAX;
}

/* Up to then all is known of its thread, it has come to its end, and began in this part. */
static bool is_ready(const struct thread_clock *th, const struct sample_event *e, uint64_t now_ns)
{
	return e->ktime_ns <= th->now_ns && e->ktime_ns - e->duration_ns <= now_ns &&
	       !(e->flags & SAMPLE_OPEN);
}

static void survey(const struct thread_clock *th, uint64_t now_ns,
		   struct group groups[SHARE_COUNT_])
{
	for (size_t at = 0; at < th->held.len; at += words_of(held_at(th, at))) {
		const struct sample_event *e = held_at(th, at);
		struct group *g = &groups[share_of(e)];

		if (!is_ready(th, e, now_ns))
			continue;
		if (!g->count++ || e->ktime_ns < g->oldest_ns)
			g->oldest_ns = e->ktime_ns;
		g->sum += weight_of(e);
	}
}

/* A long span is worth what it lasted as soon as it is known that the thread had that time. */
static bool is_long(enum share share)
{
	return share >= SHARE_LONG;
}

static void set_budgets(const struct thread_clock *th, uint64_t now_ns, enum times_depth depth,
			struct group groups[SHARE_COUNT_])
{
	for (int i = 0; i < SHARE_COUNT_; i++) {
		struct group *g = &groups[i];
		uint64_t credit = th->exact[i] - th->told[i];
		bool is_due = is_long(i) || depth > TIMES_GROUPS || g->count >= GROUP_SAMPLES ||
			      g->oldest_ns + GROUP_NS <= now_ns;

		if (is_due && (is_long(i) || depth == TIMES_REST || credit >= g->count))
			g->budget_ns = credit;
	}
}

static uint64_t worth_of(const struct sample_event *e, struct group *g)
{
	uint64_t left = g->budget_ns - g->given_ns;

	if (is_long(share_of(e)))
		return e->value < left ? e->value : left;
	g->seen += weight_of(e);
	return scale(g->budget_ns, g->seen, g->sum) - g->given_ns;
}

/* What it came with, in ns. */
static uint64_t own_worth(const struct times *t, const struct sample_event *e)
{
	return e->source == SOURCE_TICKS ? e->value * t->opts.interval_ns : e->value;
}

static int tell(struct times *t, const struct thread_clock *th, const struct sample_event *e,
		uint64_t value)
{
	struct timed_sample s = { .event = e, .value = value, .comm = th->comm };

	if (!value)
		return 0; /* its time was told as not sampled before it came */
	if (e->blocked_ns && own_worth(t, e))
		s.blocked_ns = scale(e->blocked_ns, value, own_worth(t, e));
	t->sum.blocked_ns += s.blocked_ns;
	if (e->wait == WAIT_STOPPED)
		t->sum.stopped_ns += value;
	return t->opts.fn(t->opts.arg, &s);
}

/*
 * What a sample is worth now; -EAGAIN: it waits on. Where nobody knows the times of its thread, or
 * ticks are not of all of its CPU time, what it came with; a thread may be listed yet for a while.
 */
static int judge(const struct times *t, const struct thread_clock *th, const struct sample_event *e,
		 struct group *g, uint64_t now_ns, enum times_depth depth, uint64_t *value)
{
	bool is_tick = e->source == SOURCE_TICKS;

	if (e->flags & SAMPLE_OPEN)
		return -EAGAIN;
	*value = own_worth(t, e);
	if (is_tick && !t->opts.has_all_ticks)
		return 0;
	if (!th->since_ns)
		return depth > TIMES_GROUPS || e->ktime_ns + GROUP_NS <= now_ns ? 0 : -EAGAIN;
	if (!is_ready(th, e, now_ns))
		return -EAGAIN;
	*value = 0;
	if (!g->budget_ns)
		return depth == TIMES_REST ? 0 : -EAGAIN;
	*value = worth_of(e, g);
	if (is_long(share_of(e)) && *value < e->value && depth < TIMES_REST)
		return -EAGAIN; /* its end is not in the thread's times yet */
	g->given_ns += *value;
	return 0;
}

/* Hands on the samples of a thread that are worth something by now, and keeps the others. */
static int hand_on(struct times *t, struct thread_clock *th, uint64_t now_ns,
		   enum times_depth depth)
{
	struct group groups[SHARE_COUNT_] = { 0 };
	size_t kept = 0, words;
	int r = 0;

	survey(th, now_ns, groups);
	set_budgets(th, now_ns, depth, groups);
	for (size_t at = 0; at < th->held.len && r >= 0; at += words) {
		const struct sample_event *e = held_at(th, at);
		enum share share = share_of(e);
		uint64_t value = 0;

		words = words_of(e);
		r = judge(t, th, e, &groups[share], now_ns, depth, &value);
		if (!r) {
			r = tell(t, th, e, value);
			t->held_bytes -= words * sizeof(uint64_t);
			continue;
		}
		if (th->open == at)
			th->open = kept;
		memmove(&th->held.items[kept], e, words * sizeof(uint64_t));
		kept += words;
		r = 0;
	}
	if (r < 0)
		return r;
	th->held.len = kept;
	for (int i = 0; i < SHARE_COUNT_; i++)
		th->told[i] += groups[i].given_ns;
	return 0;
}

/* --- what no sample stands for ---------------------------------------------------------------- */

/* Up to until_ns: what the thread's times know of the moments behind that has no time of its own.
 */
static int tell_rest(struct times *t, struct thread_clock *th, enum share share, uint64_t until_ns)
{
	uint64_t left = th->exact[share] - th->told[share];
	struct {
		struct sample_event head;
		struct sample_part part;
	} rest = {
		.head = { .kind = EVENT_SAMPLE,
			  .source = share == SHARE_CPU ? SOURCE_TICKS : SOURCE_SWITCHES,
			  .ktime_ns = until_ns,
			  .process = th->process,
			  .value = left,
			  .pid = th->pid,
			  .tid = th->tid },
		.part = { .kind = PART_PYTHON,
			  .status = UNWIND_NOT_SAMPLED,
			  .opcode = OPCODE_NONE },
	};

	if (!left || (share == SHARE_CPU && !t->opts.has_all_ticks))
		return 0;
	th->told[share] += left;
	if (share == SHARE_CPU) {
		t->sum.not_sampled_cpu_ns += left;
		return tell(t, th, &rest.head, left);
	}
	t->sum.not_sampled_wait_ns += left;
	rest.head.duration_ns = until_ns - th->told_ns;
	if (share != SHARE_UNSEEN)
		rest.head.wait =
			WAIT_OF_CLASS((share - (is_long(share) ? SHARE_LONG : SHARE_SHORT)));
	return tell(t, th, &rest.head, left);
}

static int settle(struct times *t, struct thread_clock *th, uint64_t now_ns, enum times_depth depth)
{
	uint64_t until_ns = th->now_ns < now_ns ? th->now_ns : now_ns;
	int r = hand_on(t, th, now_ns, depth);

	if (r < 0 || depth < TIMES_REST || !th->since_ns)
		return r;
	if (until_ns < th->told_ns) /* it began since */
		until_ns = th->told_ns;
	for (int i = 0; i < SHARE_COUNT_ && r >= 0; i++)
		r = tell_rest(t, th, i, until_ns);
	th->told_ns = until_ns;
	return r;
}

static int end_thread(struct times *t, struct thread_clock *th)
{
	int r;

	drop_open(t, th);
	r = settle(t, th, th->now_ns, TIMES_REST);
	th->since_ns = 0; /* what came later is worth what it came with: its end was lost */
	if (r >= 0)
		r = hand_on(t, th, th->now_ns, TIMES_REST);
	t->held_bytes -= th->held.len * sizeof(uint64_t);
	vec_release(&th->held);
	th->has_ended = true;
	t->ended++;
	return r;
}

/* --- what is known of threads ----------------------------------------------------------------- */

static void learn_share(struct thread_clock *th, enum share share, uint64_t exact, uint64_t *sum)
{
	if (exact <= th->exact[share])
		return; /* torn, as it was read while it was written: the next time */
	*sum += exact - th->exact[share];
	th->exact[share] = exact;
}

static void learn_shares(struct times *t, struct thread_clock *th,
			 const struct thread_times_event *e)
{
	struct times_sum *sum = &t->sum;

	learn_share(th, SHARE_CPU, e->cpu_ns, &sum->cpu_ns);
	learn_share(th, SHARE_UNSEEN, e->unseen_ns, &sum->unseen_ns);
	for (int i = 0; i < CLASS_COUNT_; i++) {
		learn_share(th, SHARE_SHORT + i, e->short_ns[i], &sum->wait_ns[i]);
		learn_share(th, SHARE_LONG + i, e->long_ns[i], &sum->wait_ns[i]);
	}
	if (e->episodes > th->episodes) {
		sum->episodes += e->episodes - th->episodes;
		th->episodes = e->episodes;
	}
}

static int learn(struct times *t, const struct thread_times_event *e, struct thread_clock **out)
{
	struct thread_clock *th;
	int r;

	if (!e->since_ns || e->since_ns > e->ktime_ns)
		return -EBADMSG;
	r = clock_get(t, e->tid, &th);
	if (r < 0)
		return r;
	if (th->since_ns && th->since_ns != e->since_ns) { /* another one, by the same number */
		if ((r = end_thread(t, th)) < 0 || (r = clock_get(t, e->tid, &th)) < 0)
			return r;
	}
	if (!th->since_ns) {
		th->since_ns = th->told_ns = e->since_ns;
		t->sum.threads++;
	}
	th->pid = e->pid;
	th->process = e->process;
	th->now_ns = e->ktime_ns;
	th->list = t->list;
	memcpy(th->comm, e->comm, sizeof(th->comm));
	learn_shares(t, th, e);
	*out = th;
	return 0;
}

int times_end_thread(struct times *t, const struct thread_times_event *e)
{
	struct thread_clock *th;
	int r = learn(t, e, &th);

	return r < 0 ? r : end_thread(t, th);
}

void times_begin_list(struct times *t, uint64_t now_ns)
{
	t->list++;
	t->listed_ns = now_ns;
}

int times_list_thread(struct times *t, const struct thread_times_event *e)
{
	struct thread_clock *th;

	return learn(t, e, &th);
}

int times_settle(struct times *t, uint64_t now_ns, enum times_depth depth)
{
	int r = 0;

	for (size_t i = 0; i < t->threads.len && !r; i++) {
		struct thread_clock *th = &t->threads.items[i];

		if (th->has_ended)
			continue;
		r = settle(t, th, now_ns, depth);
		/* Without times: it is here as long as its samples are. */
		if (!r && t->list - th->list >= MISSES_MAX && (th->since_ns || !th->held.len))
			r = end_thread(t, th);
	}
	if (!r && t->ended)
		r = throw_out_ended(t);
	return r;
}

bool times_is_due(const struct times *t, uint64_t now_ns)
{
	return times_is_full(t) || (t->held_bytes && now_ns - t->listed_ns >= LIST_NS);
}

bool times_is_full(const struct times *t)
{
	return t->held_bytes > TIMES_BYTES_MAX;
}

const struct times_sum *times_sum(const struct times *t)
{
	return &t->sum;
}

void times_each_process(const struct times *t, void (*fn)(void *arg, uint64_t process), void *arg)
{
	for (size_t i = 0; i < t->threads.len; i++) {
		const struct thread_clock *th = &t->threads.items[i];

		if (th->since_ns && !th->has_ended)
			fn(arg, th->process); /* it may have nothing but time in the end */
		for (size_t at = 0; at < th->held.len; at += words_of(held_at(th, at)))
			fn(arg, held_at(th, at)->process);
	}
}

size_t times_bytes(const struct times *t)
{
	size_t bytes = t->threads.cap * sizeof(t->threads.items[0]) + idmap_bytes(&t->ids);

	for (size_t i = 0; i < t->threads.len; i++)
		bytes += t->threads.items[i].held.cap * sizeof(uint64_t);
	return bytes;
}
