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
	uint64_t thread;    /* of its last sample; 0: not known */
	uint64_t gil;       /* that it takes */
	uint64_t waited_ns; /* of exact, what is among contentions */
	VEC(uint64_t) held; /* sample records, 8-byte aligned, one behind the other */
	size_t open;        /* of them: its span has begun and not ended; NOT_OPEN: none */
	uint32_t list;      /* the last one that it was in */
	bool has_ended;     /* it waits for times_settle(), which knows what others waited */
	char comm[COMM_BYTES];
};

#define NOT_OPEN SIZE_MAX

/*
 * How long the threads of a process waited for a GIL in this part, and how long samples tell of who
 * held it meanwhile. They tell how many were seen to wait at that moment, of whom some had been
 * woken: so it may be more than was waited, and is told as a part of that.
 */
struct contention {
	uint64_t process, gil;
	uint64_t waited_ns, told_ns; /* told <= waited */
	uint64_t due_ns, left_ns;    /* of samples here, and for them, as times_settle() begins */
};

struct times {
	struct times_opts opts;
	VEC(struct thread_clock) threads;
	struct idmap ids; /* by tid */
	VEC(struct contention) contentions;
	struct idmap contention_ids; /* by process and GIL */
	size_t ended;                /* how many threads are */
	uint32_t list;
	uint64_t listed_ns;
	size_t held_bytes; /* of samples, and of threads that have ended */
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
	vec_release(&t->contentions);
	idmap_release(&t->contention_ids);
	free(t);
}

/* --- who held the GIL ------------------------------------------------------------------------- */

/* NULL: none of its threads waited for that. Valid until the next contention_add(). */
static struct contention *contention_find(const struct times *t, uint64_t process, uint64_t gil)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&t->contention_ids, hash_combine(process, gil), &at)) != IDMAP_NONE)
		if (t->contentions.items[i].process == process &&
		    t->contentions.items[i].gil == gil)
			return &t->contentions.items[i];
	return NULL;
}

static int contention_add(struct times *t, uint64_t process, uint64_t gil, uint64_t waited_ns)
{
	struct contention new = { .process = process, .gil = gil, .waited_ns = waited_ns },
			  *c = contention_find(t, process, gil);

	if (c) {
		c->waited_ns += waited_ns;
		return 0;
	}
	if (idmap_reserve(&t->contention_ids) < 0 || vec_push(&t->contentions, new) < 0)
		return -ENOMEM;
	idmap_insert(&t->contention_ids, hash_combine(process, gil),
		     (uint32_t)t->contentions.len - 1);
	return 0;
}

/* A part of the recording begins. */
static void contention_restart(struct times *t)
{
	vec_release(&t->contentions);
	idmap_release(&t->contention_ids);
}

/* --- threads ---------------------------------------------------------------------------------- */

static uint64_t tid_hash(uint32_t tid)
{
	return hash_combine(0, tid);
}

/* The one that began at since_ns, or else the one that has not ended. NULL: there is none. Valid
 * until the next clock_new(). */
static struct thread_clock *clock_find(const struct times *t, uint32_t tid, uint64_t since_ns)
{
	struct thread_clock *found = NULL;
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&t->ids, tid_hash(tid), &at)) != IDMAP_NONE) {
		struct thread_clock *th = &t->threads.items[i];

		if (th->tid != tid)
			continue;
		if (since_ns && th->since_ns == since_ns)
			return th;
		if (!th->has_ended)
			found = th;
	}
	return found;
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

static int clock_new(struct times *t, uint32_t tid, struct thread_clock **out)
{
	struct thread_clock new = { .tid = tid, .list = t->list, .open = NOT_OPEN };
	int r;

	if ((r = idmap_reserve(&t->ids)) < 0 || (r = vec_push(&t->threads, new)) < 0)
		return r;
	idmap_insert(&t->ids, tid_hash(tid), t->threads.len - 1);
	*out = &t->threads.items[t->threads.len - 1];
	return 0;
}

static int clock_get(struct times *t, uint32_t tid, uint64_t since_ns, struct thread_clock **out)
{
	*out = clock_find(t, tid, since_ns);
	return *out ? 0 : clock_new(t, tid, out);
}

static void end_thread(struct times *t, struct thread_clock *th)
{
	if (th->has_ended)
		return;
	th->has_ended = true;
	t->ended++;
	t->held_bytes += sizeof(*th);
}

/* The last one of those that have ended, or NULL. */
static struct thread_clock *clock_find_ended(const struct times *t, uint32_t tid)
{
	uint32_t i, last = IDMAP_NONE;
	size_t at = IDMAP_START;

	while ((i = idmap_next(&t->ids, tid_hash(tid), &at)) != IDMAP_NONE)
		if (t->threads.items[i].tid == tid && t->threads.items[i].has_ended &&
		    (last == IDMAP_NONE || i > last))
			last = i;
	return last == IDMAP_NONE ? NULL : &t->threads.items[last];
}

/*
 * The one that had the number then. NULL: it is not known. The list of threads, which is read
 * before the ring, may know of the next one already; and what a thread is to sample before it
 * returns to user code comes behind the end of the program, if that is an exec.
 */
static struct thread_clock *clock_at(const struct times *t, uint32_t tid, uint64_t process,
				     uint64_t at_ns)
{
	struct thread_clock *th = clock_find(t, tid, 0);
	struct thread_clock *ended = t->ended ? clock_find_ended(t, tid) : NULL;

	if (ended && ended->process == process && at_ns <= ended->now_ns)
		return ended;
	return th && th->process != process && th->since_ns >= at_ns ? ended : th;
}

static int clock_get_at(struct times *t, const struct sample_event *e, struct thread_clock **out)
{
	bool has_ended = clock_find(t, e->tid, 0);
	int r;

	*out = clock_at(t, e->tid, e->process, e->ktime_ns);
	if (*out)
		return 0;
	r = clock_new(t, e->tid, out);
	if (!r && has_ended)
		end_thread(t, *out);
	return r;
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

static int hold(struct thread_clock *th, const struct sample_event *e)
{
	th->thread = e->thread;
	return vec_append(&th->held, (const uint64_t *)e, words_of(e));
}

int times_add_sample(struct times *t, const struct sample_event *e)
{
	struct thread_clock *th;
	int r = clock_get_at(t, e, &th);

	if (r < 0)
		return r;
	if (e->flags & SAMPLE_OPEN) {
		drop_open(t, th);
		th->open = th->held.len;
	}
	r = hold(th, e);
	if (r < 0)
		return r;
	t->held_bytes += words_of(e) * sizeof(uint64_t);
	return 0;
}

int times_end_span(struct times *t, const struct span_end_event *e)
{
	struct thread_clock *th = clock_at(t, e->tid, e->process, e->begin_ns);
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

/* Moves the record to the end of the *kept words of records that stay. */
static void keep_held(struct thread_clock *th, size_t at, size_t *kept)
{
	size_t words = words_of(held_at(th, at));

	if (th->open == at)
		th->open = *kept;
	memmove(&th->held.items[*kept], held_at(th, at), words * sizeof(uint64_t));
	*kept += words;
}

/* Since since_ns the number is another thread's, or another program's: later samples are of that.
 */
static int renew(struct times *t, uint64_t since_ns, struct thread_clock **th)
{
	size_t index = *th - t->threads.items, kept = 0, words;
	struct thread_clock *before;
	int r;

	end_thread(t, *th);
	r = clock_new(t, (*th)->tid, th);
	before = &t->threads.items[index];
	for (size_t at = 0; at < before->held.len && !r; at += words) {
		const struct sample_event *e = held_at(before, at);

		words = words_of(e);
		if (e->ktime_ns <= since_ns) {
			keep_held(before, at, &kept);
			continue;
		}
		if (before->open == at) {
			before->open = NOT_OPEN;
			(*th)->open = (*th)->held.len;
		}
		r = hold(*th, e);
	}
	before->held.len = kept;
	return r;
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

/* Adds what a thread has waited since the last call, for the GILs that its samples say, as far as
 * there are any. 0 or -ENOMEM. */
static int contention_learn(struct times *t, struct thread_clock *th)
{
	uint64_t waited_ns = th->exact[SHARE_SHORT + CLASS_GIL] + th->exact[SHARE_LONG + CLASS_GIL];
	uint64_t left = waited_ns - th->waited_ns, whole = 0;
	int r = 0;

	for (size_t at = 0; left && at < th->held.len; at += words_of(held_at(th, at)))
		if (held_at(th, at)->wait == WAIT_GIL)
			whole += weight_of(held_at(th, at));
	for (size_t at = 0; whole && at < th->held.len && !r; at += words_of(held_at(th, at))) {
		const struct sample_event *e = held_at(th, at);
		uint64_t weight = e->wait == WAIT_GIL ? weight_of(e) : 0;
		uint64_t ns = weight ? scale(left, weight, whole) : 0;

		whole -= weight;
		left -= ns;
		r = ns ? contention_add(t, e->process, e->gil, ns) : 0;
	}
	th->waited_ns = waited_ns;
	return r || !left ? r : contention_add(t, th->process, th->gil, left);
}

/* Before samples are told: what they say is due, and what of that may be told. 0 or -ENOMEM. */
static int survey_contention(struct times *t, uint64_t now_ns)
{
	int r = 0;

	for (size_t i = 0; i < t->threads.len && !r; i++)
		r = contention_learn(t, &t->threads.items[i]);
	for (size_t i = 0; i < t->contentions.len; i++) {
		struct contention *c = &t->contentions.items[i];

		c->due_ns = 0;
		c->left_ns = c->waited_ns - c->told_ns;
	}
	for (size_t i = 0; t->contentions.len && i < t->threads.len; i++) {
		const struct thread_clock *th = &t->threads.items[i];

		for (size_t at = 0; at < th->held.len; at += words_of(held_at(th, at))) {
			const struct sample_event *e = held_at(th, at);
			bool is_due = th->has_ended || is_ready(th, e, now_ns);
			struct contention *c = is_due && e->blocked_ns
						       ? contention_find(t, e->process, e->gil)
						       : NULL;

			if (c && __builtin_add_overflow(c->due_ns, e->blocked_ns, &c->due_ns))
				c->due_ns = UINT64_MAX;
		}
	}
	return r;
}

/* How much of ns may be told, by who held the GIL. */
static uint64_t contended(struct times *t, const struct sample_event *e, uint64_t ns)
{
	struct contention *c = contention_find(t, e->process, e->gil);

	if (!c)
		return 0;
	if (c->due_ns > c->left_ns)
		ns = scale(ns, c->left_ns, c->due_ns);
	if (ns > c->waited_ns - c->told_ns)
		ns = c->waited_ns - c->told_ns;
	c->told_ns += ns;
	return ns;
}

static int tell(struct times *t, const struct thread_clock *th, const struct sample_event *e,
		uint64_t value)
{
	struct timed_sample s = { .event = e, .value = value, .comm = th->comm };

	if (!value)
		return 0; /* its time was told as not sampled before it came */
	if (e->blocked_ns && own_worth(t, e))
		s.blocked_ns = contended(t, e, scale(e->blocked_ns, value, own_worth(t, e)));
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
		keep_held(th, at, &kept);
		r = 0;
	}
	if (r < 0)
		return r;
	th->held.len = kept;
	for (int i = 0; i < SHARE_COUNT_; i++)
		th->told[i] += groups[i].given_ns;
	return 0;
}

/* Nobody will know what these samples are worth: it is what they came with. */
static int hand_on_untimed(struct times *t, struct thread_clock *th)
{
	int r = 0;

	for (size_t at = 0; at < th->held.len && r >= 0; at += words_of(held_at(th, at)))
		r = tell(t, th, held_at(th, at), own_worth(t, held_at(th, at)));
	return r;
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
			  .tid = th->tid,
			  .thread = th->thread,
			  .gil = th->gil },
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

/* Settles a thread that has ended: nothing more will be known of it. */
static int settle_ended(struct times *t, struct thread_clock *th)
{
	int r;

	drop_open(t, th); /* its end was lost */
	r = settle(t, th, th->now_ns, TIMES_REST);
	if (r >= 0)
		r = hand_on_untimed(t, th);
	t->held_bytes -= sizeof(*th) + th->held.len * sizeof(uint64_t);
	vec_release(&th->held);
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

/* The thread ended before another one was listed: samples of it may be there. */
static int clock_get_ended(struct times *t, uint32_t tid, struct thread_clock **out)
{
	struct thread_clock *th = clock_find_ended(t, tid);

	if (!th || th->since_ns)
		return clock_new(t, tid, out);
	*out = th;
	return 0;
}

static int learn(struct times *t, const struct thread_times_event *e, struct thread_clock **out)
{
	struct thread_clock *th;
	int r;

	if (!e->since_ns || e->since_ns > e->ktime_ns)
		return -EBADMSG;
	r = clock_get(t, e->tid, e->since_ns, &th);
	if (!r && th->since_ns && th->since_ns < e->since_ns)
		r = renew(t, e->since_ns, &th);
	else if (!r && th->since_ns > e->since_ns)
		r = clock_get_ended(t, e->tid, &th);
	if (r < 0)
		return r;
	if (!th->since_ns) {
		th->since_ns = th->told_ns = e->since_ns;
		t->sum.threads++;
	}
	th->pid = e->pid;
	th->process = e->process;
	th->gil = e->gil;
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

	if (!r)
		end_thread(t, th);
	return r;
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

/* Without times one is here as long as its samples are. */
static void end_missing(struct times *t)
{
	for (size_t i = 0; i < t->threads.len; i++) {
		struct thread_clock *th = &t->threads.items[i];

		if (t->list - th->list >= MISSES_MAX && (th->since_ns || !th->held.len))
			end_thread(t, th);
	}
}

int times_settle(struct times *t, uint64_t now_ns, enum times_depth depth)
{
	int r;

	end_missing(t);
	r = survey_contention(t, now_ns);
	for (size_t i = 0; i < t->threads.len && !r; i++) {
		struct thread_clock *th = &t->threads.items[i];

		r = th->has_ended ? settle_ended(t, th) : settle(t, th, now_ns, depth);
	}
	if (!r && t->ended)
		r = throw_out_ended(t);
	if (depth == TIMES_REST)
		contention_restart(t);
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

		if (th->since_ns)
			fn(arg, th->process); /* it may have nothing but time in the end */
		for (size_t at = 0; at < th->held.len; at += words_of(held_at(th, at)))
			fn(arg, held_at(th, at)->process);
	}
}

size_t times_bytes(const struct times *t)
{
	size_t bytes = t->threads.cap * sizeof(t->threads.items[0]) + idmap_bytes(&t->ids) +
		       t->contentions.cap * sizeof(t->contentions.items[0]) +
		       idmap_bytes(&t->contention_ids);

	for (size_t i = 0; i < t->threads.len; i++)
		bytes += t->threads.items[i].held.cap * sizeof(uint64_t);
	return bytes;
}
