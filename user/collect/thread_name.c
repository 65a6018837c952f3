/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/thread_name.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "target/mem.h"

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct thread_place *thread = arg;

	return mem_read(thread->pid, addr, buf, len);
}

/* Signal 0 is sent to nobody. -EPERM, and the rest: there is one. */
static bool has_ended(const struct thread_place *thread)
{
	return syscall(SYS_tgkill, thread->pid, thread->tid, 0) < 0 && errno == ESRCH;
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
	int r = threading_name(&process, thread->pointer, &name);

	err_clear(); /* what is torn or gone is as good as not there */
	if (r != -ENOTSUP && has_ended(thread))
		return -ESRCH;
	if (r < 0)
		return r;
	*active = process.active;
	text = (struct pystring){
		.bytes = name.bytes, .len = name.len, .kind = name.kind, .is_cut = name.is_cut
	};
	pystring_utf8(&text, out, THREAD_NAME_BYTES);
	return 0;
}
