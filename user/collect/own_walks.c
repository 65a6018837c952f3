/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/own_walks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/objects.h"
#include "target/pid_namespace.h"
#include "own.skel.h"

#define SLOTS 16 /* threads at a time: some 4 MB. One that was given up is lost */
#define STILL_SLOT SLOTS
#define RING_BYTES (4 << 20) /* 5,000 threads of 20 calls, then it is emptied */
#define WAIT_NS 250000000ULL /* on a machine whose CPUs are all taken a turn comes late */
#define POLL_NS 100000

DEFINE_CLEANUP(struct own *, own__destroy)
DEFINE_CLEANUP(struct bpf_link *, bpf_link__destroy)

struct own_walks {
	struct own *skel; /* NULL: not loaded yet, or it cannot be */
	int refused;      /* why not; 0: it may be */
	struct own_walk *slots;
	struct ring_buffer *ring;                             /* of threads that stand still */
	struct own_walk *still;                               /* a copy of the ring's record */
	int (*take)(void *arg, size_t i, struct own_walk *w); /* of the running own_walks_look() */
	void *take_arg;
	size_t taken;
};

/* take() may change a walk; the ring's memory is read-only. */
static int on_still_walk(void *arg, void *record, size_t size)
{
	struct own_walks *o = arg;
	const struct own_walk *w = record;

	if (size < offsetof(struct own_walk, frames) || size > sizeof(*w) ||
	    (size - offsetof(struct own_walk, frames)) / sizeof(w->frames[0]) < w->head.depth)
		return 0; /* our own program's: it cannot be */
	memcpy(o->still, w, size);
	return o->take(o->take_arg, o->taken++, o->still);
}

int own_walks_new(struct own_walks **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void own_walks_free(struct own_walks *o)
{
	if (!o)
		return;
	ring_buffer__free(o->ring);
	if (o->slots)
		munmap(o->slots, SLOTS * sizeof(*o->slots));
	free(o->still);
	own__destroy(o->skel);
	free(o);
}

/* --- The programs ----------------------------------------------------------------------------- */

static int size_maps(struct own *skel)
{
	struct bpf_map *const maps[] = { skel->maps.own_walks, skel->maps.own_scratch,
					 skel->maps.own_works };
	int r = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !r; i++)
		r = bpf_map__set_max_entries(maps[i], SLOTS + 1);
	return r ?: bpf_map__set_max_entries(skel->maps.still_walks, RING_BYTES);
}

static int load(struct own_walks *o, const struct feature_probe *probe)
{
	_cleanup_(objects_end) struct objects objects = OBJECTS_INIT;
	_cleanup_(own__destroyp) struct own *skel = NULL;
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	void *at;
	int r = objects_begin(&objects, probe);

	if (r < 0)
		return r;
	opts.btf_custom_path = objects.types_path;
	skel = own__open_opts(&opts);
	if (!skel)
		return err_set(-errno, "open the BPF object: %s", strerror(errno));
	if ((r = size_maps(skel)) < 0 || (r = objects_bind_functions(&objects, skel->obj)) < 0 ||
	    (r = bpf_program__set_flags(skel->progs.ask_thread, BPF_F_SLEEPABLE)) < 0 ||
	    (r = bpf_program__set_flags(skel->progs.look_at_thread, BPF_F_SLEEPABLE)) < 0 ||
	    (r = objects_write_types(&objects, skel->obj)) < 0 || (r = own__load(skel)) < 0)
		return r == -EPERM ? err_set(r, "CAP_BPF and CAP_PERFMON are missing")
				   : err_set(r, "the kernel refused the BPF programs: %s",
					     strerror(-r));
	at = mmap(NULL, SLOTS * sizeof(*o->slots), PROT_READ | PROT_WRITE, MAP_SHARED,
		  bpf_map__fd(skel->maps.own_walks), 0);
	if (at == MAP_FAILED)
		return err_set(-errno, "map the BPF map own_walks: %s", strerror(errno));
	o->slots = at;
	o->still = malloc(sizeof(*o->still));
	if (!o->still)
		return -ENOMEM;
	skel->bss->still_slot = STILL_SLOT;
	o->ring = ring_buffer__new(bpf_map__fd(skel->maps.still_walks), on_still_walk, o, NULL);
	if (!o->ring)
		return err_set(-errno, "map the ring buffer: %s", strerror(errno));
	o->skel = take_ptr(skel);
	return 0;
}

static int try_load(struct own_walks *o)
{
	_cleanup_(feature_probe_release) struct feature_probe probe = { 0 };
	int r = feature_kernel_types(&probe);

	if (r < 0)
		return r;
	if (!probe.functions[KERNEL_ITER_TASK].id || !feature_task_work(&probe))
		return err_set(-EOPNOTSUPP,
			       "this kernel has no task work for BPF programs: boot Linux 6.18 or "
			       "newer");
	return load(o, &probe);
}

int own_walks_load(struct own_walks *o)
{
	if (o->refused)
		return err_set(o->refused, "BPF was refused");
	if (!o->skel)
		o->refused = try_load(o);
	return o->refused;
}

/* --- Walks ------------------------------------------------------------------------------------ */

/* Takes the walks that are in the ring. What takes them looks again at the code that they met, so
 * that the next walks are of another pass. */
static int take_still_walks(struct own_walks *o)
{
	int r = ring_buffer__consume(o->ring);

	o->skel->bss->still_pass += 2;
	return r < 0 ? r : 0;
}

/* One pass of an iterator, over one thread, or all of a process. libbpf wants the padding of the
 * options to be zero. */
static int iterate(struct own_walks *o, const struct bpf_program *program, uint32_t tid,
		   uint32_t pid)
{
	union bpf_iter_link_info one = { .task = { .tid = tid, .pid = pid } };
	_cleanup_(bpf_link__destroyp) struct bpf_link *link = NULL;
	_cleanup_(closep) int fd = -1;
	struct bpf_iter_attach_opts opts;
	ssize_t n;
	char none;
	int r;

	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.link_info = &one;
	opts.link_info_len = sizeof(one);
	link = bpf_program__attach_iter(program, &opts);
	fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	if (fd < 0)
		return -errno;
	while ((n = read(fd, &none, sizeof(none))) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if ((r = take_still_walks(o)) < 0) /* the ring was full */
			return r;
	}
	return 0;
}

/* What one slot is for: the index of its thread, or none. */
#define SLOT_FREE SIZE_MAX

static void begin(struct own_walks *o, size_t slot, const struct own_ask *asked)
{
	struct own_walk *w = &o->slots[slot];

	w->asked = *asked;
	memset(&w->head, 0, sizeof(w->head));
	__atomic_store_n(&w->state, OWN_WAITS, __ATOMIC_RELEASE);
	o->skel->bss->asked = (uint32_t)slot;
	if (iterate(o, o->skel->progs.ask_thread, asked->tid, 0) < 0)
		__atomic_store_n(&w->state, OWN_FAILED, __ATOMIC_RELEASE);
}

/* Gives threads to slots. Returns how many. */
static size_t begin_some(struct own_walks *o, const struct own_ask *asks, size_t count,
			 size_t first, size_t of_slot[SLOTS])
{
	size_t next = first;

	for (size_t slot = 0; slot < SLOTS; slot++) {
		of_slot[slot] = SLOT_FREE;
		if (next == count || o->slots[slot].state == OWN_GIVEN_UP)
			continue;
		begin(o, slot, &asks[next]);
		of_slot[slot] = next++;
	}
	return next - first;
}

/* Is it over? What has not begun is given up when it is late. */
static bool is_over(struct own_walk *w, bool is_late)
{
	uint32_t state = OWN_WAITS;

	if (is_late)
		__atomic_compare_exchange_n(&w->state, &state, OWN_GIVEN_UP, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	state = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE);
	return state != OWN_WAITS && state != OWN_BEGUN;
}

static void wait_for_some(struct own_walks *o, const size_t of_slot[SLOTS], uint64_t until_ns)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	bool is_done = false;

	while (!is_done) {
		bool is_late = monotonic_ns() > until_ns;

		is_done = true;
		for (size_t slot = 0; slot < SLOTS; slot++)
			is_done &= of_slot[slot] == SLOT_FREE || is_over(&o->slots[slot], is_late);
		if (!is_done)
			nanosleep(&pause, NULL);
	}
}

int own_walks_run(void *walks, const struct py_offsets *off, const struct own_ask *asks,
		  size_t count, int (*take)(void *arg, size_t i, struct own_walk *w), void *arg)
{
	struct own_walks *o = walks;
	uint64_t until_ns = monotonic_ns() + WAIT_NS;
	size_t of_slot[SLOTS], begun;
	int r = own_walks_load(o);

	if (r < 0)
		return r;
	o->skel->bss->layout = *off;
	for (size_t next = 0; next < count && monotonic_ns() < until_ns; next += begun) {
		begun = begin_some(o, asks, count, next, of_slot);
		if (!begun)
			return 0; /* all slots are lost */
		wait_for_some(o, of_slot, until_ns);
		for (size_t slot = 0; slot < SLOTS; slot++) {
			if (of_slot[slot] == SLOT_FREE || o->slots[slot].state != OWN_DONE)
				continue;
			r = take(arg, of_slot[slot], &o->slots[slot]);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int own_walks_can_look(void)
{
	uint32_t inode = 0;
	int r = pid_namespace_own(&inode);

	return r < 0 || !inode ? r
			       : err_set(-EOPNOTSUPP,
					 "in a PID namespace of our own its threads have other "
					 "numbers");
}

int own_walks_look(void *walks, const struct py_offsets *off, const struct own_ask *process,
		   int (*take)(void *arg, size_t i, struct own_walk *w), void *arg)
{
	struct own_walks *o = walks;
	int r = own_walks_can_look();

	if (r < 0 || (r = own_walks_load(o)) < 0)
		return r;
	o->skel->bss->layout = *off;
	o->skel->bss->still_ask = *process;
	o->skel->bss->neighbour_process = 0;
	o->skel->bss->still_pass = monotonic_ns() | 1;
	o->take = take;
	o->take_arg = arg;
	o->taken = 0;
	r = iterate(o, o->skel->progs.look_at_thread, 0, process->tid);
	if (r >= 0)
		r = take_still_walks(o);
	return r < 0 && r != -ENOMEM
		       ? err_set(r, "look at threads that stand still: %s", strerror(-r))
		       : r;
}
