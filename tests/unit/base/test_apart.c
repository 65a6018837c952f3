/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/thread.h"

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

/* The kernel refuses this process clone() with that error: of every thread, or of processes alone.
 */
static void refuse_clone(int error, bool has_threads)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, has_threads ? CLONE_THREAD : 0, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(100);
}

static int exit_status_of(int (*run)(void))
{
	int status, pid = fork();

	if (!pid)
		_exit(run());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void *do_nothing(void *arg)
{
	return arg;
}

static int start_beyond_the_limit(void)
{
	refuse_clone(EAGAIN, false);
	return -thread_start(do_nothing, NULL, NULL);
}

static int start_without_memory(void)
{
	refuse_clone(ENOMEM, false);
	return -thread_start(do_nothing, NULL, NULL);
}

static void test_thread_start_tells_processes_from_memory(void **state)
{
	(void)state;
	assert_int_equal(exit_status_of(start_beyond_the_limit), EUSERS);
	assert_int_equal(exit_status_of(start_without_memory), ENOMEM);
}

/* A thread holds them, then, which are ours: it closes none. */
static int hold_without_a_process(void)
{
	const int first[] = { STDOUT_FILENO };
	int ours = dup(STDOUT_FILENO);
	struct apart_hold *h;

	refuse_clone(EAGAIN, true);
	h = apart_hold_begin();
	if (!apart_hold_end(h, first, 1, 10000000000ULL))
		return 2;
	return fcntl(STDOUT_FILENO, F_GETFD) < 0 || fcntl(ours, F_GETFD) < 0;
}

static void test_apart_hold_closes_nothing_of_ours(void **state)
{
	(void)state;
	assert_int_equal(exit_status_of(hold_without_a_process), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apart_start_is_waited_for),
		cmocka_unit_test(test_thread_start_tells_processes_from_memory),
		cmocka_unit_test(test_apart_hold_closes_nothing_of_ours),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(test_apart_start_ends_us_where_it_does_not_return),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
