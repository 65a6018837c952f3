/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/allowance.h"
#include "base/err.h"
#include "target/proc.h"

static int mem_error(int r, pid_t pid, uint64_t addr, size_t len)
{
	if (r == -EPERM || r == -EACCES)
		return err_set(-EPERM,
			       "no permission to read the memory of pid %d "
			       "(needs root or CAP_SYS_PTRACE)",
			       pid);
	if (r == -ESRCH)
		return err_set(r, "no process with pid %d", pid);
	return err_set(r, "pid %d: cannot read %zu bytes of memory at 0x%llx: %s", pid, len,
		       (unsigned long long)addr, strerror(-r));
}

static int read_of(pid_t tid, uint64_t addr, void *buf, size_t len)
{
	size_t got = 0;

	while (got < len) {
		struct iovec local = { .iov_base = (char *)buf + got, .iov_len = len - got };
		struct iovec remote = { .iov_base = (void *)(uintptr_t)(addr + got),
					.iov_len = len - got };
		ssize_t n = process_vm_readv(tid, &local, 1, &remote, 1, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EFAULT;
		got += n;
	}
	return 0;
}

int mem_read(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	pid_t tid;
	int r;

	if (len > MEM_READ_MAX)
		return mem_error(-E2BIG, pid, addr, len);
	if (addr + len < addr)
		return mem_error(-EFAULT, pid, addr, len);
	r = allowance_take(len) ? read_of(pid, addr, buf, len) : -ETIME;
	if (r == -ESRCH && (tid = proc_living_thread(pid)) != pid)
		r = read_of(tid, addr, buf, len);
	return r < 0 ? mem_error(r, pid, addr, len) : 0;
}
