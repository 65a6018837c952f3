/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/apart.h"

static void end_well(void *arg)
{
	*(int *)arg = 1;
}

#ifndef __SANITIZE_THREAD__ /* with TSan there are no processes apart */
static void end_by_signal(void *arg)
{
	(void)arg;
	kill(getpid(), SIGKILL);
}

static void end_as_a_sanitizer_does(void *arg)
{
	(void)arg;
	_exit(1);
}
#endif

/* How a process ends that runs this apart, and waits for it. */
static int status_of(void (*run)(void *arg))
{
	int status, pid = fork();

	if (!pid) {
		const struct rlimit no_core = { 0, 0 };
		pthread_t thread;
		int has_run = 0;

		setrlimit(RLIMIT_CORE, &no_core);
		if (apart_start(run, &has_run, APART_NO_FILES, -1, &thread) < 0 ||
		    pthread_join(thread, NULL))
			_exit(2);
		_exit(has_run ? 0 : 3);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_apart_start_is_waited_for(void **state)
{
	(void)state;
	assert_int_equal(status_of(end_well), 0);
}

#ifndef __SANITIZE_THREAD__
/* Our memory is as it left it, in the midst of something. */
static void test_apart_start_ends_us_where_it_does_not_return(void **state)
{
	(void)state;
	assert_int_equal(WTERMSIG(status_of(end_by_signal)), SIGABRT);
	assert_int_equal(WTERMSIG(status_of(end_as_a_sanitizer_does)), SIGABRT);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apart_start_is_waited_for),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(test_apart_start_ends_us_where_it_does_not_return),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
