/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/stopped.h"

#include "base/err.h"
#include "collect/session.h"
#include "target/proc.h"

#define LOOK_NS 500000000ULL

bool stopped_is(pid_t pid)
{
	struct proc_stat stat;

	if (proc_stat(pid, &stat) >= 0)
		return stat.state == 'T';
	err_clear(); /* it has ended */
	return false;
}

int stopped_put(pid_t pid, struct strbuf *out)
{
	return strbuf_appendf(out, "pid %d is stopped by a signal (SIGSTOP, Ctrl-Z)", pid);
}

int stopped_put_note(pid_t pid, unsigned int modes, struct strbuf *out)
{
	int r = stopped_put(pid, out);

	return r < 0 ? r
		     : strbuf_appendf(out, ": it %s until kill -CONT %d",
				      modes & MODE_OFF_CPU ? "only waits" : "takes no samples",
				      pid);
}

pid_t stopped_step(struct stopped_watch *w, const struct pids *pids, uint64_t now_ns)
{
	if (w->next == pids->len) {
		if (now_ns < w->due_ns)
			return 0;
		w->next = 0;
		w->due_ns = now_ns + LOOK_NS;
	}
	while (w->next < pids->len) {
		pid_t pid = pids->items[w->next++];
		bool is_stopped = stopped_is(pid);
		size_t at = 0;

		while (at < w->stopped.len && w->stopped.items[at] != pid)
			at++;
		if (at < w->stopped.len && !is_stopped)
			w->stopped.items[at] = w->stopped.items[--w->stopped.len];
		if (at == w->stopped.len && is_stopped && vec_push(&w->stopped, pid) == 0)
			return pid;
	}
	return 0;
}

static pid_t find_among(const struct pids *pids)
{
	for (size_t i = 0; i < pids->len; i++)
		if (stopped_is(pids->items[i]))
			return pids->items[i];
	return 0;
}

pid_t stopped_find(const struct record_targets *t)
{
	_cleanup_(pids_releasep) struct pids others = VEC_INIT;
	pid_t found = find_among(&t->pids);

	if (found || t->o->all)
		return found;
	if (record_targets_has_cgroup(t))
		cgroup_list(&t->cgroup, &others);
	for (size_t i = 0; i < t->pids.len && !t->o->no_children; i++)
		proc_descendants(t->pids.items[i], &others);
	err_clear(); /* those that have ended are not stopped */
	return find_among(&others);
}

void stopped_watch_release(struct stopped_watch *w)
{
	vec_release(&w->stopped);
}
