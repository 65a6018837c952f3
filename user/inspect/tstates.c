/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/tstates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define INTERPRETERS_MAX 1024
#define TSTATES_MAX 16384
#define TSTATE_BYTES_MAX 512 /* as offsets_check() allows */

/* struct pthread of the C library: so much of it is looked at. */
#define PTHREAD_BYTES 1024
#define PTHREAD_BYTES_LEAST 64 /* musl's may end at the end of what is mapped */
#define PTHREADS_MAX 64        /* of several, so that no other number is taken for the id */

static int read_pointer(const struct walk_process *p, uint64_t addr, uint64_t *out)
{
	return p->read(p->arg, addr, out, sizeof(*out));
}

static uint64_t field(const uint8_t *block, size_t at)
{
	uint64_t value;

	memcpy(&value, block + at, sizeof(value));
	return value;
}

static int read_tstate(const struct walk_process *p, uint64_t address, struct tstate *out,
		       uint64_t *next)
{
	const struct py_offsets *off = p->off;
	uint8_t block[TSTATE_BYTES_MAX];
	uint64_t native = 0;
	int r;

	if (off->tstate_size > sizeof(block))
		return -EBADMSG;
	r = p->read(p->arg, address, block, off->tstate_size);
	if (r < 0)
		return r;
	if (off->tstate_native_thread_id != OFF_NONE)
		native = field(block, off->tstate_native_thread_id);
	*out = (struct tstate){
		.address = address,
		.interp = field(block, off->tstate_interp),
		.pointer = field(block, off->tstate_thread_id),
		.nspid = native <= INT32_MAX ? (pid_t)native : 0,
	};
	*next = field(block, off->tstate_next);
	return 0;
}

/* Those of one interpreter. A list that changes under us may end early. */
static int list_interpreter(const struct walk_process *p, uint64_t interp, struct tstates *out)
{
	size_t seen = 0;
	uint64_t at;
	int r = read_pointer(p, interp + p->off->interp_threads_head, &at);

	for (; !r && at && seen < TSTATES_MAX; seen++) {
		struct tstate t;

		r = read_tstate(p, at, &t, &at);
		if (!r && t.pointer && vec_push(out, t) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int list_all(const struct walk_process *p, struct tstates *out)
{
	uint64_t interp;
	int r = read_pointer(p, p->runtime + p->off->runtime_interpreters_head, &interp);

	if (r < 0)
		return r;
	for (size_t i = 0; !r && interp && i < INTERPRETERS_MAX; i++) {
		if (list_interpreter(p, interp, out) < 0)
			return -ENOMEM;
		r = read_pointer(p, interp + p->off->interp_next, &interp);
	}
	return 0;
}

/* --- Thread ids behind pthread_self() --------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static bool is_thread(const pid_t *nspids, size_t count, pid_t id)
{
	return id && bsearch(&id, nspids, count, sizeof(id), by_number);
}

struct pthread {
	uint8_t bytes[PTHREAD_BYTES];
};

static pid_t number_at(const struct pthread *t, size_t at)
{
	int32_t value;

	memcpy(&value, t->bytes + at, sizeof(value));
	return value;
}

/* Is there another thread's id in each of them, but so many? */
static bool has_ids_at(const struct pthread *threads, size_t len, size_t at, const pid_t *nspids,
		       size_t count, size_t but)
{
	size_t missing = 0;

	for (size_t i = 0; i < len; i++) {
		pid_t id = number_at(&threads[i], at);

		if (!is_thread(nspids, count, id) && ++missing > but)
			return false;
		for (size_t j = 0; j < i; j++)
			if (id && number_at(&threads[j], at) == id)
				return false;
	}
	return len > 0;
}

/*
 * Where the C library keeps it: first where those that are known do, then anywhere. -1: nowhere.
 * Some threads may begin or end just now; of a child that was forked all but one may be gone.
 */
static int find_id(const struct pthread *threads, size_t len, const pid_t *nspids, size_t count)
{
	/* glibc on x86-64 and aarch64 (nptl/descr.h), musl 1.2 (pthread_impl.h) */
	static const uint16_t known[] = { 720, 208, 48, 40 };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has_ids_at(threads, len, known[i], nspids, count, len - 1))
			return known[i];
	for (int at = 0; at < PTHREAD_BYTES; at += 4)
		if (has_ids_at(threads, len, (size_t)at, nspids, count, len / 4))
			return at;
	return -1;
}

static bool read_pthread(const struct walk_process *p, uint64_t pointer, struct pthread *out)
{
	return !p->read(p->arg, pointer, out, sizeof(*out)) ||
	       !p->read(p->arg, pointer, out, PTHREAD_BYTES_LEAST);
}

/* A thread may have several: it is asked once. */
static bool is_first_of(const struct tstates *list, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (list->items[j].pointer == list->items[i].pointer)
			return false;
	return true;
}

static int ask_pthreads(const struct walk_process *p, const pid_t *nspids, size_t count,
			struct tstates *list)
{
	struct pthread *threads = calloc(PTHREADS_MAX, sizeof(*threads));
	size_t len = 0;
	int at;

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < list->len && len < PTHREADS_MAX; i++)
		if (!is_thread(nspids, count, list->items[i].nspid) && is_first_of(list, i) &&
		    read_pthread(p, list->items[i].pointer, &threads[len]))
			len++;
	at = find_id(threads, len, nspids, count);
	free(threads);
	for (size_t i = 0; i < list->len && at >= 0; i++) {
		struct tstate *t = &list->items[i];
		int32_t id;

		if (!is_thread(nspids, count, t->nspid) &&
		    !p->read(p->arg, t->pointer + (uint64_t)at, &id, sizeof(id)))
			t->nspid = id;
	}
	return 0;
}

int tstates_list(const struct walk_process *p, const pid_t *nspids, size_t count,
		 struct tstates *out)
{
	bool is_complete = true;
	int r = list_all(p, out);

	for (size_t i = 0; i < out->len && !r; i++)
		is_complete &= is_thread(nspids, count, out->items[i].nspid);
	if (!r && !is_complete)
		r = ask_pthreads(p, nspids, count, out);
	for (size_t i = 0; i < out->len && !r; i++)
		if (!is_thread(nspids, count, out->items[i].nspid))
			out->items[i].nspid = 0;
	return r;
}
