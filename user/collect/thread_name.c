/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/thread_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "target/mem.h"
#include "target/proc.h"

#define PAGE_BYTES 4096 /* the smallest there is */
#define PAGES 64

/* Names of a process lie close to each other: the number of reads is the cost. */
struct page_reader {
	pid_t pid;
	uint64_t numbers[PAGES]; /* + 1, of those that were read; 0: none */
	uint8_t bytes[PAGES][PAGE_BYTES];
};

static int get_page(struct page_reader *r, uint64_t number, const uint8_t **out)
{
	size_t slot = number % PAGES;
	int e = 0;

	*out = r->bytes[slot];
	if (r->numbers[slot] == number + 1)
		return 0;
	r->numbers[slot] = 0;
	e = mem_read(r->pid, number * PAGE_BYTES, r->bytes[slot], PAGE_BYTES);
	if (!e)
		r->numbers[slot] = number + 1;
	return e;
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	uint8_t *to = buf;
	size_t n;

	for (; len; addr += n, to += n, len -= n) {
		size_t within = addr % PAGE_BYTES;
		const uint8_t *page;
		int e = get_page(arg, addr / PAGE_BYTES, &page);

		if (e < 0)
			return e;
		n = len < PAGE_BYTES - within ? len : PAGE_BYTES - within;
		memcpy(to, page + within, n);
	}
	return 0;
}

/* Any error but ESRCH means that there is one. */
bool thread_has_ended(pid_t pid, pid_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;
}

/* 0: it lives, under the same name; -ESRCH, -ESTALE. */
static int look_again(const struct thread_place *thread)
{
	struct proc_stat stat;

	if (proc_stat(thread->tid, &stat) < 0 ||
	    stat.start_ticks != proc_start_ticks(thread->start_ns))
		return -ESRCH;
	return strncmp(stat.comm, thread->comm, COMM_BYTES) ? -ESTALE : 0;
}

static int read_name(struct threading_process *process, pid_t pid, struct thread_name *out)
{
	struct threading_name name;
	struct pystring text;
	int r, again;

	if (thread_has_ended(pid, out->place.tid))
		return -ESRCH;
	r = threading_name(process, out->place.pointer, &name);
	again = r == -ENOTSUP ? 0 : look_again(&out->place);
	if (again < 0 || r < 0)
		return again < 0 ? again : r;
	text = (struct pystring){
		.bytes = name.bytes, .len = name.len, .kind = name.kind, .is_cut = name.is_cut
	};
	pystring_utf8(&text, out->name, THREAD_NAME_BYTES);
	return 0;
}

int thread_names_read(struct thread_names *names)
{
	_cleanup_(freep) struct page_reader *reader = malloc(sizeof(*reader));
	struct threading_process process = { .read = read_memory,
					     .arg = reader,
					     .runtime = names->runtime,
					     .off = &names->off,
					     .active = names->active,
					     .is_of_one_moment = true };

	if (!reader)
		return -ENOMEM;
	reader->pid = names->pid;
	memset(reader->numbers, 0, sizeof(reader->numbers));
	for (size_t i = 0; i < names->count; i++)
		names->items[i].r = read_name(&process, names->pid, &names->items[i]);
	names->active = process.active;
	err_clear(); /* what is torn or gone is as good as not there */
	return 0;
}
