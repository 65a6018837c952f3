/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_CHILD_H
#define TESTS_UNIT_CHILD_H

#include <cmocka.h>

#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that has prepared something and waits, until the test ends at the latest. */
struct child {
	pid_t pid;
	uintptr_t told; /* the result of prepare(); 0: it could not */
};

static inline struct child child_start(uintptr_t (*prepare)(const void *arg), const void *arg)
{
	struct child c = { 0 };
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		c.told = prepare(arg);
		if (write(ends[1], &c.told, sizeof(c.told)) == sizeof(c.told) && c.told)
			for (;;)
				pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &c.told, sizeof(c.told)), sizeof(c.told));
	close(ends[0]);
	close(ends[1]);
	return c;
}

static inline void child_end(const struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

#endif
