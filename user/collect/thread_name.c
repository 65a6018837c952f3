/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/thread_name.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "target/mem.h"
#include "target/proc.h"

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct thread_place *thread = arg;

	return mem_read(thread->pid, addr, buf, len);
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

int thread_name_read(const struct thread_place *thread, uint64_t *active,
		     char out[THREAD_NAME_BYTES])
{
	struct threading_process process = { .read = read_memory,
					     .arg = (void *)thread,
					     .runtime = thread->runtime,
					     .off = thread->off,
					     .active = *active };
	struct threading_name name;
	struct pystring text;
	int r = threading_name(&process, thread->pointer, &name), again;

	again = r == -ENOTSUP ? 0 : look_again(thread);
	err_clear(); /* what is torn or gone is as good as not there */
	if (again < 0 || r < 0)
		return again < 0 ? again : r;
	*active = process.active;
	text = (struct pystring){
		.bytes = name.bytes, .len = name.len, .kind = name.kind, .is_cut = name.is_cut
	};
	pystring_utf8(&text, out, THREAD_NAME_BYTES);
	return 0;
}
