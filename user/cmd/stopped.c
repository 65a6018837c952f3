/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/stopped.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "collect/session.h"
#include "target/proc.h"

#define LOOK_NS 500000000ULL
#define REST 100 /* times what a look took */

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

static bool is_among(const struct pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->len; i++)
		if (pids->items[i] == pid)
			return true;
	return false;
}

/* Those that go on may be told of again. */
static void keep_stopped(struct pids *stopped)
{
	size_t kept = 0;

	for (size_t i = 0; i < stopped->len; i++)
		if (stopped_is(stopped->items[i]))
			stopped->items[kept++] = stopped->items[i];
	stopped->len = kept;
}

static int look(struct record_run *r)
{
	_cleanup_(pids_releasep) struct pids pids = VEC_INIT;
	struct stopped_watch *w = &r->stopped;
	int e = vec_append(&pids, r->targets.pids.items, r->targets.pids.len);

	if (e >= 0 && !r->o->all)
		e = recorder_list_processes(r->recorder, &pids);
	keep_stopped(&w->stopped);
	for (size_t i = 0; i < pids.len && e >= 0; i++) {
		if (is_among(&w->stopped, pids.items[i]) || !stopped_is(pids.items[i]))
			continue;
		e = vec_push(&w->stopped, pids.items[i]);
		if (e >= 0)
			e = vec_push(&w->found, pids.items[i]);
	}
	return e;
}

pid_t stopped_step(struct record_run *r, uint64_t now_ns)
{
	struct stopped_watch *w = &r->stopped;
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), rest_ns;
	int e;

	if (now_ns >= w->due_ns) {
		if ((e = look(r)) < 0)
			return e;
		rest_ns = REST * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
		w->due_ns = now_ns + (rest_ns > LOOK_NS ? rest_ns : LOOK_NS);
	}
	return w->found.len ? w->found.items[--w->found.len] : 0;
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
	vec_release(&w->found);
}
