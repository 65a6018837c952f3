/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "bpf/hash.h"
#include "collect/event_links.h"
#include "collect/programs.h"
#include "collect/spans.h"
#include "collect/ticker.h"
#include "collect/walked_tasks.h"
#include "pyebpf.skel.h"

#define NS_PER_MS 1000000ULL
#define CONSUME_NS 100000000ULL
#define SWITCH_PROGRAMS 5
#define CLOSE_NS 700000000ULL /* for the kernel to remove BPF programs */
#define ITER_BYTES 16384      /* a buffer for what iterators write */
#define RING_HEAD 8           /* BPF_RINGBUF_HDR_SZ: before each record, which is padded to 8 */

struct session {
	struct pyebpf *skel;
	struct ring_buffer *ring;
	uint32_t layouts; /* how many; read by another thread than adds them */
	struct session_opts opts;
	struct cpu_ticks *ticks;            /* of each CPU; mapped */
	const struct task_slot *task_slots; /* mapped; NULL: there is no task work */
	struct ticker *ticker;              /* NULL: not attached, or no source */
	struct event_links *events;         /* likewise */
	struct walked_tasks *walked;        /* NULL: there are iterators */
	struct spans *spans;                /* NULL: none are recorded, or not yet */
	int switches[SWITCH_PROGRAMS]; /* the programs that the scheduler runs, attached; -1: not */
	bool is_stopped;
	uint64_t cpu_time_base_ns; /* of the targets, before the session's start */
	session_record_fn fn;      /* of the running session_consume() */
	void *fn_arg;
	uint64_t consume_until_ns;
	int consumed;                 /* records, by that call */
	bool is_cut_short;            /* it ended with records left */
	size_t ring_taken, ring_most; /* bytes: by that call; by one since session_usage() */
	uint64_t emptied_ns;          /* when rows without Python were removed for want of room */
};

/* To some milliseconds: it is asked for each record. */
static uint64_t coarse_ns(void)
{
	return monotonic_coarse_ns();
}

static int on_ring_record(void *arg, void *record, size_t size)
{
	struct session *s = arg;
	int r = s->fn(s->fn_arg, record, size);

	s->ring_taken += RING_HEAD + (size + 7) / 8 * 8;
	s->consumed++;
	if (r < 0)
		return r;
	s->is_cut_short = coarse_ns() >= s->consume_until_ns;
	return s->is_cut_short ? -ECANCELED : 0;
}

static size_t array_bytes(const struct bpf_map *map)
{
	return (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
}

/* The values of an array, whose size is a multiple of 8, in memory that the programs see. */
static int map_array(const struct bpf_map *map, void **out)
{
	void *at = mmap(NULL, array_bytes(map), PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		return err_set(-errno, "map the BPF map %s: %s", bpf_map__name(map),
			       strerror(errno));
	*out = at;
	return 0;
}

static void unmap_array(const struct bpf_map *map, const void *at)
{
	if (at)
		munmap((void *)at, array_bytes(map));
}

int session_open(const struct session_opts *opts, struct session **out)
{
	_cleanup_(session_freep) struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	memset(s->switches, -1, sizeof(s->switches));
	r = programs_start(opts, &s->skel);
	if (r < 0 || (opts->btf && (r = walked_tasks_new(s->skel, opts->btf, &s->walked)) < 0))
		return r;
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.events), on_ring_record, s, NULL);
	if (!s->ring)
		return err_set(-errno, "map the ring buffer: %s", strerror(errno));
	if (s->skel->rodata->session.has_task_work &&
	    (r = map_array(s->skel->maps.task_slots, (void **)&s->task_slots)) < 0)
		return r;
	*out = take_ptr(s);
	return 0;
}

/* What sees threads leave goes first: else they would leave and never come back. */
static void switches_in_order(const struct session *s, int fds[SWITCH_PROGRAMS])
{
	for (int i = 0; i < SWITCH_PROGRAMS; i++)
		fds[i] = s->switches[SWITCH_PROGRAMS - 1 - i];
}

static void detach_switches(struct session *s)
{
	int fds[SWITCH_PROGRAMS];

	switches_in_order(s, fds);
	for (int i = 0; i < SWITCH_PROGRAMS; i++)
		closep(&fds[i]);
	memset(s->switches, -1, sizeof(s->switches));
}

/*
 * Behind what was closed of the session. The kernel removes BPF programs after all sleepable ones
 * that run have ended: for one that waits for a page of a file system that does not answer, never.
 */
static void let_go(struct apart_hold *hold, const int *first, size_t count)
{
	if (!apart_hold_end(hold, first, count, CLOSE_NS))
		log_warning("the memory of a process does not answer: the kernel removes the BPF "
			    "programs when it does, or when the process has ended");
}

void session_free(struct session *s)
{
	struct apart_hold *hold;

	if (!s)
		return;
	hold = apart_hold_begin();
	ticker_free(s->ticker);
	event_links_free(s->events);
	spans_free(s->spans);
	walked_tasks_free(s->walked);
	detach_switches(s);
	ring_buffer__free(s->ring);
	if (s->skel) {
		unmap_array(s->skel->maps.cpu_ticks, s->ticks);
		unmap_array(s->skel->maps.task_slots, s->task_slots);
	}
	pyebpf__destroy(s->skel);
	free(s);
	let_go(hold, NULL, 0);
}

/* The one of the two that is loaded. */
static int sampler_fd(const struct pyebpf *skel)
{
	int fd = bpf_program__fd(skel->progs.sample);

	return fd >= 0 ? fd : bpf_program__fd(skel->progs.sample_old);
}

static int attach_ticker(struct session *s)
{
	struct ticker_opts opts = { .freq_hz = s->opts.freq_hz,
				    .program_fd = sampler_fd(s->skel),
				    .only = s->opts.cpus,
				    .only_count = s->opts.cpu_count,
				    .cpus = libbpf_num_possible_cpus() };
	int r = map_array(s->skel->maps.cpu_ticks, (void **)&s->ticks);

	if (r < 0)
		return r;
	opts.ticks = s->ticks;
	return ticker_new(&opts, &s->ticker);
}

/* From now on the scheduler's switches are seen. */
static int attach_switches(struct session *s)
{
	const struct bpf_program *programs[SWITCH_PROGRAMS] = {
		s->skel->progs.on_free,     s->skel->progs.on_migrate, s->skel->progs.on_thread,
		s->skel->progs.on_switched, s->skel->progs.on_switch,
	};

	if (!session_has_source(s, SOURCE_SWITCHES))
		return 0;
	s->skel->bss->started_ns = monotonic_ns();
	for (int i = 0; i < SWITCH_PROGRAMS; i++) {
		int fd = bpf_program__fd(programs[i]);

		if (fd < 0)
			continue; /* not for this kernel */
		s->switches[i] = bpf_raw_tracepoint_open(NULL, fd);
		if (s->switches[i] < 0)
			return err_set(-errno, "attach the BPF programs: %s: %s",
				       bpf_program__name(programs[i]), strerror(errno));
	}
	return 0;
}

int session_attach(struct session *s)
{
	int r = session_has_source(s, SOURCE_TICKS) ? attach_ticker(s) : 0;

	if (r < 0 || !session_has_source(s, SOURCE_EVENTS))
		return r;
	return event_links_new(s->skel, s->opts.events, libbpf_num_possible_cpus(), &s->events);
}

uint64_t session_stop(struct session *s)
{
	struct apart_hold *hold = apart_hold_begin();
	int fds[SWITCH_PROGRAMS];
	uint64_t now;

	switches_in_order(s, fds);
	if (s->ticker)
		ticker_stop(s->ticker);
	detach_switches(s);
	s->skel->bss->has_events_on = 0;
	event_links_free(take_ptr(s->events));
	let_go(hold, fds, SWITCH_PROGRAMS);
	if (session_rows_refused(s))
		log_warning("the table of processes is full: %u; what is beyond it is counted as "
			    "lost; record fewer: -p PID or --cgroup PATH",
			    bpf_map__max_entries(s->skel->maps.procs));
	s->is_stopped = true;
	now = monotonic_ns();
	s->skel->bss->stopped_ns = now;
	return now;
}

int session_follow_cpus(struct session *s)
{
	int r = s->ticker ? ticker_follow_cpus(s->ticker) : 0;

	return r < 0 || !s->events ? r : event_links_follow_cpus(s->events);
}

int session_set_stride(struct session *s, uint32_t stride)
{
	int r = s->ticker ? ticker_set_stride(s->ticker, stride) : 0;

	if (!r)
		s->skel->bss->spans_stride = stride;
	return r;
}

int session_add_layout(struct session *s, const struct py_offsets *off)
{
	struct py_offsets *layouts = s->skel->bss->layouts;
	uint32_t i;

	for (i = 0; i < s->layouts; i++)
		if (!memcmp(&layouts[i], off, sizeof(*off)))
			return i;
	if (i == LAYOUTS_MAX)
		return err_set(-ENOSPC, "more than %d different Python builds", LAYOUTS_MAX);
	layouts[i] = *off;
	__atomic_store_n(&s->layouts, i + 1, __ATOMIC_RELAXED);
	return i;
}

/*
 * Keys of a hash map, all in one call; malloc()ed. A map that changes meanwhile may show one twice
 * or not at all.
 */
static int read_keys(const struct bpf_map *map, void **out, uint32_t *count)
{
	uint32_t size = bpf_map__max_entries(map), found = size, next;
	_cleanup_(freep) void *values = malloc((size_t)size * bpf_map__value_size(map));
	_cleanup_(freep) void *keys = malloc((size_t)size * bpf_map__key_size(map));

	if (!keys || !values)
		return -ENOMEM;
	if (bpf_map_lookup_batch(bpf_map__fd(map), NULL, &next, keys, values, &found, NULL) < 0 &&
	    errno != ENOENT) /* the end */
		return err_set(-errno, "read the BPF map %s: %s", bpf_map__name(map),
			       strerror(errno));
	*out = take_ptr(keys);
	*count = found;
	return 0;
}

static int empty_map(const struct bpf_map *map)
{
	_cleanup_(freep) void *keys = NULL;
	uint32_t count;
	int r = read_keys(map, &keys, &count);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++)
		bpf_map_delete_elem(bpf_map__fd(map), (char *)keys + i * bpf_map__key_size(map));
	return 0;
}

/* What is forgotten is asked about again, where it still runs. */
int session_add_binary(struct session *s, const struct binary_key *key,
		       const struct binary_row *row)
{
	int fd = bpf_map__fd(s->skel->maps.binaries), r;

	if (!bpf_map_update_elem(fd, key, row, BPF_ANY))
		return 0;
	if (errno != E2BIG)
		return -errno;
	r = empty_map(s->skel->maps.binaries);
	if (r < 0)
		return r;
	return bpf_map_update_elem(fd, key, row, BPF_ANY) < 0 ? -errno : 0;
}

int session_find_binary(struct session *s, const struct binary_key *key, struct binary_row *row)
{
	int r = bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.binaries), key, row);

	return r < 0 ? -errno : 0;
}

/* Rows that only keep a process from being looked at again. Not often: nearly all may be others. */
static int remove_rows_without_python(struct session *s)
{
	_cleanup_(pids_releasep) struct pids pids = VEC_INIT;
	uint64_t now = monotonic_ns();
	struct proc_row row;
	int r;

	if (session_has_filter(s) || now - s->emptied_ns < NS_PER_SECOND)
		return 0;
	s->emptied_ns = now;
	r = session_list_processes(s, &pids);
	for (size_t i = 0; i < pids.len && r >= 0; i++)
		if (!session_find_process(s, pids.items[i], &row) && row.layout == LAYOUT_NONE)
			session_remove_process(s, pids.items[i]);
	return r;
}

/* -E2BIG: the table is full, or the kernel has no memory at hand for the row. */
static int set_row(struct session *s, uint32_t pid, const struct proc_row *row)
{
	int fd = bpf_map__fd(s->skel->maps.procs);

	if (!bpf_map_update_elem(fd, &pid, row, BPF_ANY))
		return 0;
	return errno == ENOMEM ? -E2BIG : -errno;
}

/* Does for user space what python_begins() of bpf/discover.h does. */
static void python_begins(struct session *s, uint32_t pid)
{
	struct pyebpf__bss *bss = s->skel->bss;
	uint32_t *slot = &bss->begun_pids[pid % BEGUN_SLOTS];
	uint32_t before = __atomic_exchange_n(slot, pid, __ATOMIC_RELAXED);

	if (before && before != pid)
		__atomic_fetch_add(&bss->begun_missed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&bss->pythons_begun, 1, __ATOMIC_RELEASE);
}

int session_add_process(struct session *s, uint32_t pid, const struct proc_row *row)
{
	struct spans *sp;
	int r = set_row(s, pid, row);

	if (r == -E2BIG && !(r = remove_rows_without_python(s)))
		r = set_row(s, pid, row);
	if (r == -E2BIG) {
		if (session_has_filter(s) || row->layout != LAYOUT_NONE) /* else nobody is missed */
			__atomic_fetch_add(&s->skel->bss->rows_refused, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (r < 0)
		return r;
	if (row->layout < LAYOUT_UNSURE)
		python_begins(s, pid);
	sp = __atomic_load_n(&s->spans, __ATOMIC_ACQUIRE);
	if (sp && row->layout < LAYOUTS_MAX)
		spans_open(sp, pid);
	return 0;
}

uint64_t session_pythons_begun(const struct session *s)
{
	return __atomic_load_n(&s->skel->bss->pythons_begun, __ATOMIC_RELAXED);
}

int session_set_asyncio(struct session *s, uint32_t pid, const struct asyncio_row *row)
{
	int fd = bpf_map__fd(s->skel->maps.asyncio_rows);
	int r = row ? bpf_map_update_elem(fd, &pid, row, BPF_ANY) : bpf_map_delete_elem(fd, &pid);

	return r < 0 ? -errno : 0;
}

uint64_t session_rows_refused(const struct session *s)
{
	return __atomic_load_n(&s->skel->bss->rows_refused, __ATOMIC_RELAXED);
}

bool session_has_filter(const struct session *s)
{
	return s->skel->rodata->session.has_filter;
}

int session_set_thread_context(struct session *s, uint32_t pid,
			       const struct thread_context_row *row)
{
	int fd = bpf_map__fd(s->skel->maps.thread_contexts);

	return bpf_map_update_elem(fd, &pid, row, BPF_ANY) < 0 ? -errno : 0;
}

int session_find_process(struct session *s, uint32_t pid, struct proc_row *row)
{
	int r = bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.procs), &pid, row);

	return r < 0 ? -errno : 0;
}

void session_remove_process(struct session *s, uint32_t pid)
{
	bpf_map_delete_elem(bpf_map__fd(s->skel->maps.procs), &pid); /* it may have exited */
}

int session_list_processes(struct session *s, struct pids *out)
{
	_cleanup_(freep) void *keys = NULL;
	uint32_t count;
	int r = read_keys(s->skel->maps.procs, &keys, &count);

	return r < 0 ? r : vec_append(out, (const pid_t *)keys, count);
}

int session_list_recorded(struct session *s, struct pids *out)
{
	_cleanup_(pids_releasep) struct pids all = VEC_INIT;
	int r = session_list_processes(s, &all);
	struct proc_row row;

	for (size_t i = 0; i < all.len && r >= 0; i++)
		if (!session_find_process(s, all.items[i], &row) &&
		    (session_has_filter(s) ? row.is_target : row.layout < LAYOUT_UNSURE))
			r = vec_push(out, all.items[i]);
	return r;
}

static int count_rows(const struct bpf_map *map, const char *name, struct usage *out)
{
	_cleanup_(freep) void *keys = NULL;
	uint32_t count;
	int r = read_keys(map, &keys, &count);

	if (!r)
		*out = (struct usage){ name, count, bpf_map__max_entries(map) };
	return r;
}

/* Slots that are in use; `word` is one of them that then is not 0. */
static struct usage count_slots(const char *name, const void *slots, size_t size, size_t count,
				size_t word)
{
	struct usage u = { .name = name, .max = count };

	for (size_t i = 0; i < count; i++)
		u.used += *(const uint64_t *)((const char *)slots + i * size + word) != 0;
	return u;
}

int session_usage(struct session *s, struct usage out[SESSION_USAGES])
{
	const __typeof__(*s->skel->bss) *b = s->skel->bss;
	size_t most = s->ring_most < s->opts.ring_bytes ? s->ring_most : s->opts.ring_bytes;
	int r;

	if ((r = count_rows(s->skel->maps.procs, "procs", out)) < 0 ||
	    (r = count_rows(s->skel->maps.binaries, "binaries", out + 1)) < 0)
		return r;
#define SLOTS(name, word) \
	count_slots(#name, b->name, sizeof(b->name[0]), sizeof(b->name) / sizeof(b->name[0]), word)
	out[2] = SLOTS(sent, 0);
	out[3] = SLOTS(code_cache, offsetof(struct cache_slot, value));
	out[4] = SLOTS(thread_cache, offsetof(struct cache_slot, value));
	out[5] = SLOTS(trusts, offsetof(struct trust, process));
#undef SLOTS
	out[6] = (struct usage){ "layouts", __atomic_load_n(&s->layouts, __ATOMIC_RELAXED),
				 LAYOUTS_MAX };
	out[7] = (struct usage){ "events", most, s->opts.ring_bytes };
	s->ring_most = 0;
	return 0;
}

/*
 * What an iterator writes, records of that size, handed to fn one by one. Stops at its first
 * negative result. The kernel cuts at any byte where the buffer is full.
 */
static int read_records(const struct bpf_link *link, size_t size,
			int (*fn)(const void *record, void *arg), void *arg)
{
	_Alignas(8) char records[ITER_BYTES];
	_cleanup_(closep) int fd = bpf_iter_create(bpf_link__fd(link));
	size_t have = 0, at;
	ssize_t n;

	if (fd < 0)
		return err_set(-errno, "list tasks: %s", strerror(errno));
	while ((n = read(fd, records + have, sizeof(records) - have)) != 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return err_set(-errno, "list tasks: %s", strerror(errno));
		have += n;
		for (at = 0; have - at >= size; at += size) {
			int r = fn(records + at, arg);

			if (r < 0)
				return r;
		}
		have -= at;
		memmove(records, records + at, have);
	}
	return 0;
}

/* Who is told of the tasks that are listed. */
struct task_listener {
	int (*fn)(const struct task_record *r, void *arg);
	void *arg;
};

static int tell_task(const void *record, void *arg)
{
	const struct task_listener *l = arg;

	return l->fn(record, l->arg);
}

static int read_tasks(const struct bpf_link *link,
		      int (*fn)(const struct task_record *r, void *arg), void *arg)
{
	struct task_listener l = { fn, arg };

	return read_records(link, sizeof(struct task_record), tell_task, &l);
}

int session_list_tasks(struct session *s, int (*fn)(const struct task_record *r, void *arg),
		       void *arg)
{
	if (s->walked)
		return walked_tasks_list(s->walked, fn, arg);
	return read_tasks(s->skel->links.list_tasks, fn, arg);
}

/* The same for the times of threads. */
struct times_listener {
	int (*fn)(const struct thread_times_event *e, void *arg);
	void *arg;
};

static int tell_times(const void *record, void *arg)
{
	const struct times_listener *l = arg;

	return l->fn(record, l->arg);
}

int session_list_thread_times(struct session *s,
			      int (*fn)(const struct thread_times_event *e, void *arg), void *arg)
{
	struct times_listener l = { fn, arg };

	if (!s->skel->links.list_thread_times)
		return 0;
	return read_records(s->skel->links.list_thread_times, sizeof(struct thread_times_event),
			    tell_times, &l);
}

/* The record of one process, for read_tasks(). */
struct task_search {
	uint32_t pid;
	bool is_found;
	struct task_record *out;
};

static int find_task(const struct task_record *r, void *arg)
{
	struct task_search *search = arg;

	if (r->pid == search->pid) {
		*search->out = *r;
		search->is_found = true;
	}
	return 0;
}

/*
 * By the first thread of the process: by its pid the iterator would go through all its threads.
 * libbpf wants the padding of the options to be zero, too, which LIBBPF_OPTS() leaves to the
 * compiler.
 */
static struct bpf_link *attach_to_task(struct session *s, uint32_t pid)
{
	union bpf_iter_link_info one = { .task = { .tid = pid } };
	struct bpf_iter_attach_opts opts;

	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.link_info = &one;
	opts.link_info_len = sizeof(one);
	return bpf_program__attach_iter(s->skel->progs.list_tasks, &opts);
}

/*
 * Before Linux 6.1 the iterator knows no single task: it goes through all of them then. Linux 5.10
 * does not want to hear of one.
 */
int session_find_task(struct session *s, uint32_t pid, struct task_record *out)
{
	struct task_search search = { .pid = pid, .out = out };
	struct bpf_link *link;
	int r;

	if (s->walked) {
		r = walked_tasks_list(s->walked, find_task, &search);
		return r < 0 ? r : search.is_found ? 0 : -ESRCH;
	}
	link = attach_to_task(s, pid);
	if (!link && errno != E2BIG)
		return -ESRCH;
	r = read_tasks(link ? link : s->skel->links.list_tasks, find_task, &search);
	bpf_link__destroy(link);
	return r < 0 ? r : search.is_found ? 0 : -ESRCH;
}

bool session_still_runs(struct session *s, uint32_t pid, uint64_t process)
{
	const __u64 *slot = &s->skel->bss->running[pid % RUNNING_SLOTS];
	struct task_record now;

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == process)
		return true;
	return !session_find_task(s, pid, &now) && now.process == process;
}

int session_consume(struct session *s, int timeout_ms, session_record_fn fn, void *arg)
{
	int r;

	s->fn = fn;
	s->fn_arg = arg;
	s->consumed = 0;
	s->consume_until_ns = coarse_ns() + CONSUME_NS + (uint64_t)timeout_ms * NS_PER_MS;
	if (!s->is_cut_short)
		s->ring_taken = 0; /* else what it left counts as having waited, too */
	s->is_cut_short = false;
	r = ring_buffer__consume(s->ring);
	if (s->ring_taken > s->ring_most)
		s->ring_most = s->ring_taken;
	if (!r && timeout_ms)
		r = ring_buffer__poll(s->ring, timeout_ms);
	if (s->is_cut_short)
		return s->consumed;
	return r == -EINTR ? 0 : r;
}

int session_drain(struct session *s, session_record_fn fn, void *arg)
{
	int r;

	do
		r = session_consume(s, 0, fn, arg);
	while (r > 0);
	return r;
}

int session_poll_fd(const struct session *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

bool session_opts_have_source(const struct session_opts *opts, enum sample_source source)
{
	static const unsigned int modes[SOURCE_COUNT_] = {
		/* A tick of who holds the GIL says who others wait for. */
		[SOURCE_TICKS] = MODE_CPU | MODE_GIL | MODE_EXCEPTION | MODE_OFF_CPU,
		[SOURCE_SWITCHES] = MODE_OFF_CPU,
		[SOURCE_EVENTS] = MODE_EVENTS | MODE_MEMORY,
	};

	return (opts->modes ? opts->modes : MODE_CPU) & modes[source];
}

bool session_has_source(const struct session *s, enum sample_source source)
{
	return session_opts_have_source(&s->opts, source);
}

const struct event *session_event(const struct session *s, uint32_t number)
{
	const struct event_list *events = s->opts.events;

	return events && number < events->len ? &events->items[number] : NULL;
}

/* Those of the programs of events are in their slots. Both begin with the counters. */
static int add_slot_stats(struct session *s, uint64_t stats[STAT_COUNT_])
{
	const struct bpf_map *map = s->skel->maps.event_slots;
	_cleanup_(freep) uint64_t *slot = malloc(bpf_map__value_size(map));

	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < bpf_map__max_entries(map); i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(map), &i, slot) < 0)
			return err_set(-errno, "read the counters: %s", strerror(errno));
		for (int j = 0; j < STAT_COUNT_; j++)
			stats[j] += slot[j];
	}
	return 0;
}

int session_stats(struct session *s, enum sample_source source, uint64_t stats[STAT_COUNT_])
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t key = source;
	/* struct cpu_state of bpf/maps.h begins with the counters. */
	size_t size = bpf_map__value_size(s->skel->maps.cpu_states), stride = (size + 7) & ~7ul;
	_cleanup_(freep) char *values = calloc(cpus, stride);

	if (!values)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.cpu_states), &key, values) < 0)
		return err_set(-errno, "read the counters: %s", strerror(errno));
	memset(stats, 0, STAT_COUNT_ * sizeof(stats[0]));
	for (int cpu = 0; cpu < cpus; cpu++)
		for (int i = 0; i < STAT_COUNT_; i++)
			stats[i] += ((uint64_t *)(values + cpu * stride))[i];
	return source == SOURCE_EVENTS ? add_slot_stats(s, stats) : 0;
}

/* The same without iterators. */
static int walk_rows_cpu_time(struct session *s, uint64_t *ns)
{
	_cleanup_(pids_releasep) struct pids pids = { 0 };
	int r = session_list_processes(s, &pids);
	struct proc_row row;

	for (size_t i = 0; i < pids.len; i++)
		if (!session_find_process(s, pids.items[i], &row) && row.is_target)
			*ns += threads_cpu_time(pids.items[i]);
	return r;
}

/*
 * Of the tasks whose rows say that they are targets. Those that have ended first: who ends in
 * between is seen once then, or not until the next time.
 */
static int read_rows_cpu_time(struct session *s, uint64_t *ns)
{
	uint64_t ended = s->skel->bss->ended_cpu_ns;
	_cleanup_(closep) int fd = -1;
	ssize_t n;
	char none;

	if (s->walked) {
		*ns = ended;
		return walk_rows_cpu_time(s, ns);
	}
	s->skel->bss->living_cpu_ns = 0;
	fd = bpf_iter_create(bpf_link__fd(s->skel->links.list_cpu_time));
	if (fd < 0)
		return err_set(-errno, "list tasks: %s", strerror(errno));
	do
		n = read(fd, &none, sizeof(none));
	while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0)
		return err_set(-errno, "list tasks: %s", strerror(errno));
	*ns = ended + s->skel->bss->living_cpu_ns;
	return 0;
}

static int read_cpu_time(struct session *s, uint64_t *ns)
{
	*ns = 0;
	if (s->opts.is_system_wide)
		return 0;
	if (!s->opts.cgroup)
		return read_rows_cpu_time(s, ns);
	if (cgroup_cpu_time(s->opts.cgroup, ns) < 0) {
		err_clear(); /* it is gone, or its hierarchy does not count that: not known */
		*ns = s->cpu_time_base_ns;
	}
	return 0;
}

int session_cpu_time(struct session *s, uint64_t *ns)
{
	uint64_t now_ns;
	int r = read_cpu_time(s, &now_ns);

	if (r < 0)
		return r;
	*ns = now_ns - s->cpu_time_base_ns;
	return 0;
}

/* From now on a process that is added has its threads looked at, by whichever thread adds it. */
static int begin_spans(struct session *s)
{
	struct spans *sp;
	int r;

	if (!session_has_source(s, SOURCE_SWITCHES))
		return 0;
	r = spans_new(s->skel, &sp);
	if (r < 0)
		return r;
	__atomic_store_n(&s->spans, sp, __ATOMIC_RELEASE);
	return spans_begin(sp);
}

int session_start(struct session *s)
{
	int r = s->ticker ? ticker_start(s->ticker) : 0;

	if (r < 0 || (r = attach_switches(s)) < 0 || (r = begin_spans(s)) < 0)
		return r;
	s->skel->bss->has_events_on = s->events != NULL;
	return read_cpu_time(s, &s->cpu_time_base_ns);
}

int session_close_spans(struct session *s, uint64_t at_ns)
{
	return s->spans ? spans_close(s->spans, at_ns) : 0;
}

int session_visit_threads(struct session *s)
{
	return s->spans ? spans_step(s->spans, s->skel->rodata->session.has_exit_hook) : 0;
}

int session_patience(struct session *s, int max_ms)
{
	return s->spans && s->skel->rodata->session.has_exit_hook ? spans_patience(s->spans, max_ms)
								  : max_ms;
}

uint64_t session_pending(const struct session *s, enum sample_source source)
{
	uint64_t pending = 0;

	if (!s->is_stopped || !s->task_slots)
		return 0;
	for (size_t i = 0; i < s->skel->rodata->session.task_works; i++) {
		const struct task_slot *slot = &s->task_slots[i];

		if (slot->owner && (uint8_t)(slot->owner >> TASK_OWNER_SOURCE) == source)
			pending += slot->value + slot->joined;
	}
	return pending;
}

uint64_t session_interval_ns(const struct session *s)
{
	return session_has_source(s, SOURCE_TICKS) ? NS_PER_SECOND / s->opts.freq_hz : 0;
}

uint64_t session_expected_ticks(struct session *s)
{
	return ticker_expected(s->ticker);
}

uint64_t session_unwatched_ticks(struct session *s)
{
	return ticker_unwatched(s->ticker);
}

uint64_t session_left_out_ticks(struct session *s)
{
	return ticker_left_out(s->ticker);
}

static void unmark_sent(struct session *s, uint64_t id)
{
	__u64 *set = &s->skel->bss->sent[set_of(id, SENT_SLOTS)];
	__u64 epoch = __atomic_load_n(&s->skel->bss->epoch, __ATOMIC_RELAXED), mark;

	for (int i = 0; i < WAYS; i++) {
		mark = id ^ epoch;
		__atomic_compare_exchange_n(&set[i], &mark, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	}
}

/* describe() marks a code object as a whole, its names, and each further piece of its line table.
 */
void session_resend_code(struct session *s, uint64_t identity)
{
	unmark_sent(s, identity);
	for (uint32_t i = 0; i < LINES_CHUNKS_MAX; i++)
		unmark_sent(s, hash_mix(identity, i));
}

void session_resend(struct session *s)
{
	__atomic_fetch_add(&s->skel->bss->epoch, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED);
}
