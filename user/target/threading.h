/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_THREADING_H
#define TARGET_THREADING_H

/*
 * The names that Python's `threading` has given to threads: sys.modules["threading"]._active is a
 * dict of Thread objects by pthread_self(), each with a `_name`. The system knows them from 3.14
 * on, and then no more than 15 bytes of them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

#define THREADING_CHARS_MAX 128 /* of a name; longer: cut */
#define THREADING_READS_MAX 16384
#define THREADING_INTERPRETERS_MAX 64

/* A process. read: len bytes at addr, at most OBJECT_READ_BYTES; 0 or a negative errno. */
struct threading_process {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
	uint64_t runtime; /* of its _PyRuntime, as struct proc_row has it */
	const struct py_offsets *off;
	uint64_t active; /* of its `_active`, kept from call to call, and not trusted; 0 at first */
	bool is_of_one_moment; /* what read() reads: each `_active` is looked for once */

	/* Ours: the `_active` of all interpreters. */
	bool is_listed;
	unsigned int count;
	uint64_t actives[THREADING_INTERPRETERS_MAX];
};

/* A name as it lies in the process. */
struct threading_name {
	uint8_t kind; /* bytes a character: 1, 2, 4 */
	bool is_cut;
	uint16_t len; /* bytes, >= 1 */
	uint8_t bytes[THREADING_CHARS_MAX * 4];
};

/*
 * The name of the thread with this pthread_self(), in any interpreter of the process. Its memory is
 * taken for hostile, and changes meanwhile: at most THREADING_READS_MAX reads. That it was this
 * thread's is for the caller to see: it must live still, as another would have the same ident then.
 *
 * Returns 0, -ENOENT (no such thread there, or one without a name), -EBADMSG (not a name, or torn),
 * -ENOTSUP (a version not known), -E2BIG (more to read than that), or what read() returned.
 */
int threading_name(struct threading_process *p, uint64_t ident, struct threading_name *out);

#endif
