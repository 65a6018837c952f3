/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/workers.h"
#include "inspect/files.h"
#include "target/runtime_workers.h"

#define WCHAN_BYTES 256
#define FIND_NS 5000000000ULL      /* for the files of a process, on a busy machine too */
#define FIND_NEXT_NS 1000000000ULL /* where those of another one do not answer */

int inspector_new(struct inspector **out)
{
	_cleanup_(inspector_freep) struct inspector *in = calloc(1, sizeof(*in));
	int r;

	if (!in)
		return -ENOMEM;
	if ((r = runtime_workers_new(&in->workers)) < 0 || (r = walker_new(&in->walker)) < 0 ||
	    (r = cpu_clocks_new(&in->clocks)) < 0)
		return r;
	*out = take_ptr(in);
	return 0;
}

void inspector_free(struct inspector *in)
{
	if (!in)
		return;
	cpu_clocks_free(in->clocks);
	walker_free(in->walker);
	workers_free(in->workers);
	free(in);
}

/* --- its interpreter -------------------------------------------------------------------------- */

struct find {
	struct work work;
	pid_t pid;
	int r;
	char text[ERR_BYTES]; /* the message of r */
	struct py_runtime runtime;
};

static void find_run(struct work *w, void *cache)
{
	struct find *f = (struct find *)w;

	f->r = runtime_find(cache, f->pid, &f->runtime);
	if (f->r < 0)
		snprintf(f->text, sizeof(f->text), "%s", err_message(f->r));
}

static void find_free(struct work *w)
{
	free(w);
}

int inspector_find_runtime(struct inspector *in, pid_t pid, struct py_runtime *out)
{
	_cleanup_(freep) struct find *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->work = (struct work){ .run = find_run, .free = find_free };
	f->pid = pid;
	r = workers_run_patiently(in->workers, &f->work,
				  workers_late(in->workers) ? FIND_NEXT_NS : FIND_NS);
	if (r == -EINPROGRESS)
		return err_set(-ETIMEDOUT, "%s", workers_late_words(&take_ptr(f)->work));
	if (r < 0 && workers_late(in->workers) >= WORKERS_MAX)
		return err_set(-ETIMEDOUT, WORK_BLOCKED_WORDS);
	if (r < 0)
		return workers_say(r);
	if (f->r < 0)
		return err_set(f->r, "%s", f->text);
	*out = f->runtime;
	return 0;
}

/* A thread of a process whose main thread has ended. 0: none. */
static pid_t living_thread(pid_t pid)
{
	_cleanup_(pids_releasep) struct pids tids = VEC_INIT;
	struct proc_stat stat;

	if (proc_threads(pid, &tids) < 0) {
		err_clear(); /* it is gone: the caller says so */
		return 0;
	}
	for (size_t i = 0; i < tids.len; i++) {
		if (proc_stat(tids.items[i], &stat) >= 0 && !stat.is_zombie)
			return tids.items[i];
		err_clear();
	}
	return 0;
}

static int find_door(struct inspect_process *p, struct proc_stat *stat)
{
	int r = proc_stat(p->pid, stat);

	p->door = p->pid;
	if (r >= 0 && stat->is_zombie)
		p->door = living_thread(p->pid);
	if (r < 0 || !p->door || stat->is_kernel_thread)
		return runtime_check_process(p->pid, stat);
	return 0;
}

static int64_t started_at(uint64_t start_ticks)
{
	const uint64_t ns_per_tick = NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);

	return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
			 start_ticks * ns_per_tick);
}

static int take_command_line(struct inspect_process *p, const struct proc_stat *stat)
{
	size_t len = 0;

	if (proc_cmdline(p->door, &p->command_line, &len) < 0)
		err_clear(); /* it is gone: what follows says so */
	while (len && !p->command_line[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!p->command_line[i])
			p->command_line[i] = ' ';
	if (len)
		return 0;
	free(p->command_line);
	p->command_line = strdup(stat->comm);
	return p->command_line ? 0 : -ENOMEM;
}

/*
 * Its thread waits in the kernel for the freezer of a cgroup: of version 2, where the compiler has
 * put that into get_signal() or not, or of version 1. Stopped threads wait there too.
 */
static bool is_frozen(pid_t pid, char state)
{
	static const char *const places[] = { "get_signal", "do_freezer_trap", "__refrigerator" };
	_cleanup_(freep) char *place = NULL;
	char path[32];
	bool found = false;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	if (state == 'T' || state == 't' || file_read(path, WCHAN_BYTES, &place, &len) < 0) {
		err_clear(); /* without that it is as if it were not */
		return false;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		found |= !strcmp(place, places[i]);
	return found;
}

int inspect_process_open(struct inspector *in, pid_t pid, struct inspect_process **out)
{
	_cleanup_(inspect_process_freep) struct inspect_process *p = calloc(1, sizeof(*p));
	struct proc_stat stat;
	int r;

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	if ((r = find_door(p, &stat)) < 0)
		return r;
	p->ppid = stat.ppid;
	p->start_ticks = stat.start_ticks;
	p->start_ns = started_at(stat.start_ticks);
	r = rights_read(p->door, &p->rights);
	if (r >= 0)
		r = inspector_find_runtime(in, p->door, &p->runtime);
	if (r < 0)
		return err_wrap(r, "pid %d", pid);
	if ((r = codes_new(&p->codes)) < 0 || (r = take_command_line(p, &stat)) < 0)
		return r;
	p->is_frozen = is_frozen(p->door, stat.state);
	p->window.door = p->door;
	p->memory = (struct walk_process){ .read = window_read,
					   .arg = &p->window,
					   .off = &p->runtime.offsets,
					   .runtime = p->runtime.runtime_addr,
					   .identity = (uint64_t)pid << 32 ^ p->start_ticks,
					   .is_forked = stat.is_forked };
	*out = take_ptr(p);
	return 0;
}

static bool has_ended(const struct inspect_process *p)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].state != THREAD_DEAD)
			return false;
	return true;
}

int inspect_process_read(struct inspector *in, struct inspect_process *p)
{
	int r = inspect_threads_read(in, p);

	if (r >= 0 && has_ended(p))
		return err_set(-ESRCH, "pid %d: it has ended while it was read", p->pid);
	if (r >= 0)
		r = locks_find(p);
	return r < 0 ? r : files_find(p);
}

void inspect_process_free(struct inspect_process *p)
{
	if (!p)
		return;
	inspect_threads_free(p->threads, p->thread_count);
	for (size_t i = 0; i < p->cycles.len; i++)
		vec_release(&p->cycles.items[i].threads);
	vec_release(&p->cycles);
	codes_free(p->codes);
	free(p->command_line);
	free(p);
}
