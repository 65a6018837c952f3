/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/process.h"
#include "inspect/thread_files.h"
#include "inspect/value_stack.h"

#define FRAMES_LOOKED_AT 16384 /* all in all */
#define TYPE_NAME_MAX 32

struct locks {
	struct inspect_process *p;
	const struct value_stack_layout *layout;
	uint64_t head; /* sizeof(PyObject) */
	size_t frames_left;
};

static int get(const struct locks *l, uint64_t addr, void *out, size_t len)
{
	return l->p->memory.read(l->p->memory.arg, addr, out, len);
}

/* --- Objects ---------------------------------------------------------------------------------- */

/* "" if it is no object. */
static void type_name(const struct locks *l, uint64_t object, char out[TYPE_NAME_MAX])
{
	uint64_t type, name;

	*out = '\0';
	if (!object || object % 8 || get(l, object + l->head - 8, &type, 8) < 0 ||
	    get(l, type + l->head + 8, &name, 8) < 0 || get(l, name, out, TYPE_NAME_MAX) < 0)
		*out = '\0';
	out[TYPE_NAME_MAX - 1] = '\0';
}

static enum lock_kind kind_of(const char *type)
{
	return !strcmp(type, "_thread.lock")    ? LOCK_LOCK
	       : !strcmp(type, "_thread.RLock") ? LOCK_RLOCK
						: LOCK_NONE;
}

/* The lock that an entry of a value stack is, or (is_method) whose bound method it is. */
static struct inspect_lock lock_of(const struct locks *l, uint64_t object, bool *is_method)
{
	struct inspect_lock lock = { .address = object };
	char type[TYPE_NAME_MAX];

	*is_method = false;
	type_name(l, object, type);
	if (!strcmp(type, "builtin_function_or_method")) {
		*is_method = true;
		if (get(l, object + l->head + 8, &lock.address, 8) < 0) /* m_self */
			return (struct inspect_lock){ 0 };
		type_name(l, lock.address, type);
	}
	lock.kind = kind_of(type);
	return lock.kind ? lock : (struct inspect_lock){ 0 };
}

/* --- Which lock ------------------------------------------------------------------------------- */

#define MUTEX_CONTENDED 3 /* _Py_LOCKED | _Py_HAS_PARKED, pycore_lock.h */

/*
 * Could the thread wait for it? A semaphore of the C library, to which the object points, is slept
 * for where it lies. A PyMutex, which is a byte of the object (Lock of free-threaded 3.13, both
 * from 3.14 on), is slept for elsewhere, but says that somebody does.
 */
static bool may_wait_for(const struct locks *l, const struct inspect_thread *t,
			 const struct inspect_lock *lock)
{
	uint64_t words[2];

	if (get(l, lock->address + l->head, words, sizeof(words)) < 0)
		return false;
	if (lock->kind == LOCK_RLOCK && words[1] == t->pointer)
		return false; /* it has it itself */
	if (words[0] > UINT8_MAX)
		return words[0] == t->futex;
	return (words[0] & MUTEX_CONTENDED) == MUTEX_CONTENDED;
}

/* The condition, event or queue that a thread waits for has a lock of its own for that thread. */
static bool is_in_condition(const struct inspect_thread *t)
{
	static const char file[] = "/threading.py", name[] = "wait";
	const struct inspect_frame *f = &t->frames[0];

	return f->file_len >= sizeof(file) - 1 && f->name_len >= sizeof(name) - 1 &&
	       !strcmp(f->file + f->file_len - (sizeof(file) - 1), file) &&
	       !strcmp(f->name + f->name_len - (sizeof(name) - 1), name);
}

static void find_lock(struct locks *l, struct inspect_thread *t)
{
	struct value_stack stack;

	if (t->state != THREAD_BLOCKED || t->wait != WAIT_LOCK || !inspect_thread_stands(t) ||
	    !t->frame_count || is_in_condition(t) ||
	    value_stack_read(&l->p->memory, l->layout, &t->frames[0], &stack) < 0)
		return;
	for (size_t i = stack.count; i-- > 0;) {
		bool is_method;
		struct inspect_lock lock = lock_of(l, stack.entries[i], &is_method);

		if (lock.kind && may_wait_for(l, t, &lock)) {
			t->lock = lock;
			return;
		}
	}
}

/* --- Who has it ------------------------------------------------------------------------------- */

static pid_t thread_of_pointer(const struct inspect_process *p, uint64_t pointer)
{
	for (size_t i = 0; i < p->thread_count && pointer; i++)
		if (p->threads[i].pointer == pointer)
			return p->threads[i].tid;
	return 0;
}

static struct inspect_thread *thread_of_tstate(const struct inspect_process *p, uint64_t tstate)
{
	for (size_t i = 0; i < p->thread_count && tstate; i++)
		if (p->threads[i].tstate == tstate)
			return &p->threads[i];
	return NULL;
}

static bool is_method_descriptor(const struct locks *l, uint64_t object)
{
	char type[TYPE_NAME_MAX];

	type_name(l, object, type);
	return !strcmp(type, "method_descriptor");
}

/* Gives the lock of the block to who waits for it. */
static void give(struct locks *l, uint64_t lock, pid_t owner)
{
	for (size_t i = 0; i < l->p->thread_count; i++) {
		struct inspect_lock *wanted = &l->p->threads[i].lock;

		if (wanted->kind == LOCK_LOCK && wanted->address == lock)
			wanted->owner = owner;
	}
}

/* `with` blocks that the frame is in: __exit__ of the lock; 3.14+: that function and the lock. */
static void find_blocks(struct locks *l, const struct inspect_thread *t,
			const struct inspect_frame *f)
{
	struct value_stack stack;

	if (value_stack_read(&l->p->memory, l->layout, f, &stack) < 0)
		return;
	for (size_t i = 0; i < stack.live; i++) {
		bool is_method;
		struct inspect_lock lock = lock_of(l, stack.entries[i], &is_method);

		if (lock.kind == LOCK_LOCK &&
		    (is_method || (i && is_method_descriptor(l, stack.entries[i - 1]))))
			give(l, lock.address, t->tid);
	}
}

static bool has_moved(const struct locks *l, const struct inspect_thread *t)
{
	_cleanup_(closep) int folder = thread_folder_open(l->p->door, t->tid), fd = -1;
	struct thread_status status;

	fd = folder < 0 ? -1 : thread_status_open(folder);
	return fd < 0 || thread_status_read(fd, &status) < 0 || status.switches != t->switches;
}

static void find_owners_of_locks(struct locks *l)
{
	for (size_t i = 0; i < l->p->thread_count; i++) {
		const struct inspect_thread *t = &l->p->threads[i];

		if (!inspect_thread_stands(t))
			continue;
		for (size_t k = 0; k < t->frame_count && l->frames_left; k++, l->frames_left--)
			find_blocks(l, t, &t->frames[k]);
	}
}

/* Those who have gone on since they were read may have let go of it. */
static void forget_moved(struct locks *l)
{
	for (size_t i = 0; i < l->p->thread_count; i++) {
		struct inspect_lock *lock = &l->p->threads[i].lock;

		if (lock->kind != LOCK_NONE && lock->kind != LOCK_GIL &&
		    has_moved(l, &l->p->threads[i]))
			*lock = (struct inspect_lock){ 0 };
		for (size_t k = 0; k < l->p->thread_count && lock->kind == LOCK_LOCK; k++)
			if (l->p->threads[k].tid == lock->owner && has_moved(l, &l->p->threads[k]))
				lock->owner = 0;
	}
}

/* A Lock that one thread alone waits for, whose owner is not known, says nothing. */
static void forget_lonely(struct inspect_process *p)
{
	for (size_t i = 0; i < p->thread_count; i++) {
		struct inspect_lock *lock = &p->threads[i].lock;
		size_t waiters = 0;

		if (lock->kind != LOCK_LOCK || lock->owner)
			continue;
		for (size_t k = 0; k < p->thread_count && waiters < 2; k++)
			waiters += p->threads[k].lock.address == lock->address;
		if (waiters < 2)
			*lock = (struct inspect_lock){ 0 };
	}
}

static void find_owners(struct locks *l)
{
	struct inspect_process *p = l->p;
	bool has_locks = false;

	for (size_t i = 0; i < p->thread_count; i++) {
		struct inspect_lock *lock = &p->threads[i].lock;
		uint64_t owner;

		has_locks |= lock->kind == LOCK_LOCK;
		if (lock->kind == LOCK_RLOCK && !get(l, lock->address + l->head + 8, &owner, 8))
			lock->owner = thread_of_pointer(p, owner);
	}
	if (has_locks)
		find_owners_of_locks(l);
	forget_moved(l);
	forget_lonely(p);
}

/* --- The GIL ---------------------------------------------------------------------------------- */

/*
 * The thread that has that GIL at this moment: last_holder, while `locked`, the int behind it, is
 * 1; 3.6 and 3.7, whose GIL is not known, have but the thread state that runs. NULL: nobody.
 */
static struct inspect_thread *gil_holder(const struct locks *l, uint64_t gil)
{
	const struct walk_process *m = &l->p->memory;
	struct {
		uint64_t last_holder;
		int32_t locked;
	} now = { .locked = 1 };
	int r;

	r = gil ? get(l, gil, &now, 12)
		: get(l, m->runtime + m->off->runtime_tstate_current, &now.last_holder, 8);
	return r < 0 || now.locked != 1 ? NULL : thread_of_tstate(l->p, now.last_holder);
}

/* Could it be the holder, by what was read of it? Else it has gone on since. */
static bool may_hold(const struct inspect_thread *t)
{
	return !t->waits_for_gil &&
	       (t->holds_gil || t->state == THREAD_RUNNING || t->state == THREAD_RUNNABLE);
}

/* The one thread that held it as it was read; NULL: none, or several, at different moments. */
static struct inspect_thread *only_claim(const struct inspect_process *p, uint64_t gil)
{
	struct inspect_thread *found = NULL;

	for (size_t i = 0; i < p->thread_count; i++) {
		struct inspect_thread *t = &p->threads[i];

		if (t->gil != gil || !t->holds_gil || t->waits_for_gil)
			continue;
		if (found)
			return NULL;
		found = t;
	}
	return found;
}

/*
 * Threads were read one after the other, and each says whether it held the GIL then. Who holds it
 * now is looked at once for all, and told, and what others wait for is told to be held by that
 * thread, if it agrees with what was read of it. Where the GIL has changed hands meanwhile the one
 * that held it as it was read is told, if there is but one.
 */
static void settle_gil(struct locks *l, uint64_t gil)
{
	struct inspect_process *p = l->p;
	struct inspect_thread *now = gil_holder(l, gil), *holder;

	if (now && !may_hold(now))
		now = NULL;
	holder = now ? now : only_claim(p, gil);
	for (size_t i = 0; i < p->thread_count; i++) {
		struct inspect_thread *t = &p->threads[i];

		if (t->gil != gil)
			continue;
		if (t->holds_gil && t != holder)
			t->in_gc = false; /* as it was met, too */
		t->holds_gil = t == holder;
		if (t->waits_for_gil)
			t->lock = (struct inspect_lock){ .kind = LOCK_GIL,
							 .address = gil,
							 .owner = now ? now->tid : 0 };
	}
}

/* Each interpreter may have its own. */
static void settle_gils(struct locks *l)
{
	struct inspect_process *p = l->p;

	if (p->memory.off->is_free_threaded)
		return;
	for (size_t i = 0; i < p->thread_count; i++) {
		uint64_t gil = p->threads[i].gil;
		size_t first = 0;

		while (p->threads[first].gil != gil)
			first++;
		if (first == i && p->threads[i].tstate &&
		    (gil || p->memory.off->runtime_tstate_current != OFF_NONE))
			settle_gil(l, gil);
	}
}

/* --- Cycles ----------------------------------------------------------------------------------- */

/* Index of who has what this thread waits for; thread_count: nobody that is known. */
static size_t next_of(const struct inspect_process *p, size_t i)
{
	size_t k = 0;

	if (p->threads[i].lock.kind == LOCK_NONE || !p->threads[i].lock.owner)
		return p->thread_count;
	while (k < p->thread_count && p->threads[k].tid != p->threads[i].lock.owner)
		k++;
	return k;
}

static int add_cycle(struct inspect_process *p, const size_t *next, size_t first)
{
	struct inspect_cycle cycle = { 0 };
	size_t i = first;

	do {
		if (vec_push(&cycle.threads, i) < 0)
			goto failed;
		i = next[i];
	} while (i != first);
	if (vec_push(&p->cycles, cycle) == 0)
		return 0;
failed:
	vec_release(&cycle.threads);
	return -ENOMEM;
}

/* Each waits for one other at most: from each thread the way is walked until it was walked. */
static int find_cycles(struct inspect_process *p)
{
	size_t *next = calloc(2 * p->thread_count + 1, sizeof(*next));
	size_t *seen = next + p->thread_count; /* in which walk, from 1; 0: not yet */
	int r = 0;

	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i < p->thread_count; i++)
		next[i] = next_of(p, i);
	for (size_t i = 0; i < p->thread_count && r >= 0; i++) {
		size_t at = i;

		while (at < p->thread_count && !seen[at]) {
			seen[at] = i + 1;
			at = next[at];
		}
		if (at < p->thread_count && seen[at] == i + 1)
			r = add_cycle(p, next, at);
	}
	free(next);
	return r;
}

int locks_find(struct inspect_process *p)
{
	struct locks l = { .p = p,
			   .layout = value_stack_layout_find(p->memory.off->minor),
			   .head = p->memory.off->str_length,
			   .frames_left = FRAMES_LOOKED_AT };

	for (size_t i = 0; i < p->thread_count && l.layout; i++)
		find_lock(&l, &p->threads[i]);
	if (l.layout)
		find_owners(&l);
	settle_gils(&l);
	return find_cycles(p);
}
