/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collect/finder.h"
#include "tests/unit/child.h"
#include "tests/unit/skip.h"

/* The kernel is real here, and so is the process that is looked at: it runs no Python. */

static uintptr_t prepare_nothing(const void *arg)
{
	(void)arg;
	return 1;
}

/* False: nobody may record here. */
static bool open_session(struct session **out)
{
	const struct session_opts opts = {
		.modes = MODE_CPU, .freq_hz = 99, .is_system_wide = true, .ring_bytes = 1 << 16
	};
	int r = session_open(&opts, out);

	if (r < 0 && r != -EPERM && r != -EOPNOTSUPP)
		fail_msg("open: %s", err_message(r));
	return !r;
}

/* Looks at the process while the kernel has that row of it. */
static void learn(struct finder *f, struct session *s, const struct task_record *task,
		  struct proc_row before, struct proc_row *after)
{
	before.start_ns = task->start_ns;
	before.is_target = 1;
	assert_int_equal(session_add_process(s, task->pid, &before), 0);
	assert_int_equal(finder_add_task(f, task), 0);
	assert_int_equal(session_find_process(s, task->pid, after), 0);
}

/* The look may have been in the midst of an exec, and the kernel knows its program. */
static void test_finder_add_task_leaves_the_python_that_the_kernel_met(void **state)
{
	_cleanup_(session_freep) struct session *s = NULL;
	_cleanup_(looker_freep) struct looker *l = NULL;
	_cleanup_(interpreters_freep) struct interpreters *is = NULL;
	_cleanup_(finder_freep) struct finder *f = NULL;
	struct child c = child_start(prepare_nothing, NULL);
	struct task_record task;
	struct proc_row row;

	(void)state;
	if (!open_session(&s)) {
		child_end(&c);
		SKIP("needs what recording needs");
	}
	assert_int_equal(looker_new(&l), 0);
	assert_int_equal(interpreters_new(&is), 0);
	assert_int_equal(finder_new(s, l, is, &f), 0);
	assert_int_equal(session_find_task(s, c.pid, &task), 0);
	learn(f, s, &task, (struct proc_row){ .exec_id = task.exec_id, .layout = 3 }, &row);
	assert_int_equal(row.layout, 3);
	/* A row of the program before says nothing of this one. */
	learn(f, s, &task, (struct proc_row){ .exec_id = task.exec_id - 1, .layout = 3 }, &row);
	assert_int_equal(row.layout, LAYOUT_NONE);
	child_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finder_add_task_leaves_the_python_that_the_kernel_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
