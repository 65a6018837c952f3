/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any memory at all: the input, repeated over the whole address space, so that every pointer leads
 * somewhere, also back. The lists of thread states and the search for locks and their owners must
 * end; what they find belongs to the threads that there are.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect/process.h"
#include "inspect/tstates.h"
#include "target/offsets.h"

#define THREADS 4
#define FRAMES 3
#define READS_MAX 400 /* then nothing can be read any more: lists may be long */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct memory {
	const uint8_t *bytes;
	size_t len;
	uint32_t reads;
};

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct memory *m = arg;

	if (m->reads++ > READS_MAX || len > 2048)
		return -EFAULT;
	while (len) {
		size_t at = addr % m->len, n = m->len - at < len ? m->len - at : len;

		memcpy(buf, m->bytes + at, n);
		buf = (uint8_t *)buf + n;
		addr += n;
		len -= n;
	}
	return 0;
}

static void check_tstates(const struct walk_process *p)
{
	static const pid_t nspids[] = { 7, 8, 9, 10 };
	struct tstates list = { 0 };

	tstates_list(p, nspids, THREADS, &list);
	for (size_t i = 0; i < list.len; i++)
		if (list.items[i].nspid && (list.items[i].nspid < 7 || list.items[i].nspid > 10))
			abort();
	vec_release(&list);
}

/* Threads whose frames are anywhere. */
static void check_locks(struct inspect_process *p, const uint8_t *bytes)
{
	struct inspect_thread threads[THREADS];
	struct inspect_frame frames[THREADS][FRAMES];

	for (size_t i = 0; i < THREADS; i++) {
		threads[i] = (struct inspect_thread){
			.tid = (pid_t)(7 + i),
			.state = THREAD_BLOCKED,
			.wait = WAIT_LOCK,
			.is_consistent = true,
			.waits_for_gil = i == 3,
			.gil = bytes[i],
			.tstate = bytes[i] * 8u,
			.pointer = bytes[4 + i],
			.futex = bytes[i],
			.frames = frames[i],
			.frame_count = FRAMES,
		};
		for (size_t k = 0; k < FRAMES; k++)
			frames[i][k] = (struct inspect_frame){
				.frame = bytes[i + k] * 8u,
				.code = bytes[i + k + 1] * 8u,
				.identity = 1,
				.instr = bytes[i + k + 2],
				.name = "f",
				.file = "f.py",
				.name_len = 1,
				.file_len = 4,
			};
	}
	p->threads = threads;
	p->thread_count = THREADS;
	if (locks_find(p) < 0 && p->cycles.len)
		abort();
	for (size_t i = 0; i < p->cycles.len; i++) {
		if (!p->cycles.items[i].threads.len || p->cycles.items[i].threads.len > THREADS)
			abort();
		vec_release(&p->cycles.items[i].threads);
	}
	vec_release(&p->cycles);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const uint8_t minors[] = { 8, 10, 11, 12 };
	static struct inspect_process p;
	struct py_offsets off = { 0 };
	struct memory m = { .bytes = bytes, .len = len };

	if (len < 16)
		return 0;
	offsets_find(VERSION_HEX(3, minors[bytes[15] % sizeof(minors)], 4, VERSION_LEVEL_FINAL), 0,
		     false, &off);
	if (bytes[15] & 64) /* their value stacks: as 3.14's */
		off.minor = 14;
	memset(&p, 0, sizeof(p));
	p.pid = p.door = getpid();
	p.memory = (struct walk_process){ .read = read_memory, .arg = &m, .off = &off };
	check_tstates(&p.memory);
	m.reads = 0;
	check_locks(&p, bytes);
	return 0;
}
