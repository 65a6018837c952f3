/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_NO_KERNEL_H
#define TESTS_NO_KERNEL_H

#include <errno.h>
#include <unistd.h>

#include "base/vec.h"
#include "collect/session.h"

/*
 * A session without a kernel, for programs that feed a pipeline: it takes what it is told, and
 * there are two processes, this one and one there is not. session_add_layout() is the program's
 * own.
 */

#define NO_PID 4194305 /* beyond PID_MAX_LIMIT */
#define OWN_PROCESS 1  /* identity */

/* Of this process. start_ns 0: it has none. */
static struct proc_row own_row;

int session_add_binary(struct session *s, const struct binary_key *key,
		       const struct binary_row *row)
{
	(void)s;
	(void)key;
	(void)row;
	return 0;
}

int session_find_binary(struct session *s, const struct binary_key *key, struct binary_row *row)
{
	(void)s;
	(void)key;
	(void)row;
	return -ENOENT;
}

int session_add_process(struct session *s, uint32_t pid, const struct proc_row *row)
{
	(void)s;
	(void)pid;
	(void)row;
	return 0;
}

int session_find_process(struct session *s, uint32_t pid, struct proc_row *row)
{
	(void)s;
	if (pid != (uint32_t)getpid() || !own_row.start_ns)
		return -ENOENT;
	*row = own_row;
	return 0;
}

uint64_t session_pythons_begun(const struct session *s)
{
	(void)s;
	return 0;
}

int session_set_asyncio(struct session *s, uint32_t pid, const struct asyncio_row *row)
{
	(void)s;
	(void)pid;
	(void)row;
	return 0;
}

int session_set_thread_context(struct session *s, uint32_t pid,
			       const struct thread_context_row *row)
{
	(void)s;
	(void)pid;
	(void)row;
	return 0;
}

void session_remove_process(struct session *s, uint32_t pid)
{
	(void)s;
	(void)pid;
}

int session_list_processes(struct session *s, struct pids *out)
{
	(void)s;
	if (own_row.start_ns)
		return vec_push(out, getpid());
	return vec_push(out, NO_PID);
}

int session_list_tasks(struct session *s, int (*fn)(const struct task_record *r, void *arg),
		       void *arg)
{
	const struct task_record own = { .pid = (uint32_t)getpid(), .process = OWN_PROCESS };

	(void)s;
	return fn(&own, arg);
}

int session_find_task(struct session *s, uint32_t pid, struct task_record *out)
{
	(void)s;
	if (pid != (uint32_t)getpid())
		return -ESRCH;
	*out = (struct task_record){ .pid = pid, .process = OWN_PROCESS };
	return 0;
}

bool session_still_runs(struct session *s, uint32_t pid, uint64_t process)
{
	struct task_record now;

	return !session_find_task(s, pid, &now) && now.process == process;
}

/* It has one, number 0. */
const struct event *session_event(const struct session *s, uint32_t number)
{
	static char name[] = "page-faults";
	static const struct event event = { .name = name, .unit = UNIT_COUNT, .config.period = 10 };

	(void)s;
	return number ? NULL : &event;
}

void session_resend(struct session *s)
{
	(void)s;
}

void session_resend_code(struct session *s, uint64_t identity)
{
	(void)s;
	(void)identity;
}

#endif
