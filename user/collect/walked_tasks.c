/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/walked_tasks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "pyebpf.skel.h"

#define LIST_BYTES (WALKED_TASKS_MAX * sizeof(struct task_record))

struct walked_tasks {
	const struct pyebpf *skel;
	const struct task_record *list; /* of the last walk; mapped */
};

int walked_tasks_misfit(const char *btf)
{
	return err_set(-EOPNOTSUPP,
		       "%s: describes another kernel than the one that runs: give "
		       "--btf that of this one (uname -r)",
		       btf);
}

static int walk(struct walked_tasks *w)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (bpf_prog_test_run_opts(bpf_program__fd(w->skel->progs.walk_tasks), &opts) < 0)
		return err_set(-errno, "list tasks: %s", strerror(errno));
	return 0;
}

static const struct task_record *find(const struct walked_tasks *w, uint32_t pid)
{
	for (uint32_t i = 0; i < w->skel->bss->walked_count && i < WALKED_TASKS_MAX; i++)
		if (w->list[i].pid == pid)
			return &w->list[i];
	return NULL;
}

/* What we know of ourselves tells whether the kernel's structs are as they were said to be. */
static int check(struct walked_tasks *w, const char *btf)
{
	const struct task_record *own;
	struct proc_stat known = { 0 };
	int r = walk(w);

	if (r < 0 || (r = proc_stat(getpid(), &known)) < 0)
		return r;
	own = find(w, getpid());
	if (own && own->exe.inode && proc_start_ticks(own->start_ns) == known.start_ticks)
		return 0;
	return walked_tasks_misfit(btf);
}

int walked_tasks_new(const struct pyebpf *skel, const char *btf, struct walked_tasks **out)
{
	_cleanup_(walked_tasks_freep) struct walked_tasks *w = calloc(1, sizeof(*w));
	void *at;
	int r;

	if (!w)
		return -ENOMEM;
	w->skel = skel;
	at = mmap(NULL, LIST_BYTES, PROT_READ, MAP_SHARED, bpf_map__fd(skel->maps.walked_tasks), 0);
	if (at == MAP_FAILED)
		return err_set(-errno, "map the BPF map walked_tasks: %s", strerror(errno));
	w->list = at;
	r = check(w, btf);
	if (r < 0)
		return r;
	*out = take_ptr(w);
	return 0;
}

void walked_tasks_free(struct walked_tasks *w)
{
	if (!w)
		return;
	if (w->list)
		munmap((void *)w->list, LIST_BYTES);
	free(w);
}

int walked_tasks_list(struct walked_tasks *w, int (*fn)(const struct task_record *r, void *arg),
		      void *arg)
{
	uint32_t count;
	int r = walk(w);

	if (r < 0)
		return r;
	count = w->skel->bss->walked_count;
	for (uint32_t i = 0; i < count && i < WALKED_TASKS_MAX; i++)
		if ((r = fn(&w->list[i], arg)) < 0)
			return r;
	return 0;
}

/* Documentation/scheduler/sched-stats.rst: time on a CPU, ns, comes first. */
static uint64_t thread_cpu_time(pid_t pid, pid_t tid)
{
	char path[64];
	long ns;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	return file_number(path, &ns) ? (uint64_t)ns : 0; /* it has ended */
}

uint64_t threads_cpu_time(pid_t pid)
{
	_cleanup_(pids_releasep) struct pids threads = { 0 };
	uint64_t ns = 0;

	if (proc_threads(pid, &threads) < 0)
		err_clear();
	for (size_t i = 0; i < threads.len; i++)
		ns += thread_cpu_time(pid, threads.items[i]);
	return ns;
}
