/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "collect/privilege.h"

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

static int executes(void)
{
	char *const argv[] = { (char *)"true", NULL };

	return error_of(execv("/bin/true", argv));
}

#ifndef __SANITIZE_ADDRESS__
static int traces(void)
{
	return error_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
#endif

static int changes_namespaces(void)
{
	return error_of(syscall(SYS_unshare, 0));
}

static int writes_to_others(void)
{
	return error_of(syscall(SYS_process_vm_writev, getpid(), NULL, 0, NULL, 0, 0));
}

static int calls_by_another_architectures_number(void)
{
#ifdef __x86_64__
	return error_of(syscall(0x40000000 + SYS_getpid));
#else
	return EPERM;
#endif
}

static int reads(void)
{
	return error_of(access("/proc/self/status", R_OK));
}

static void *nothing(void *arg)
{
	return arg;
}

static int starts_threads(void)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, nothing, NULL);

	return r ? r : pthread_join(thread, NULL);
}

static void *executes_in_a_thread(void *arg)
{
	return (void *)(intptr_t)(arg ? EINVAL : executes());
}

/* One that was there before. */
static pthread_t waiting;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *waits_then_executes(void *arg)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return executes_in_a_thread(arg);
}

static int executes_in_an_older_thread(void)
{
	void *result;

	pthread_mutex_unlock(&gate);
	return pthread_join(waiting, &result) ?: (int)(intptr_t)result;
}

static const struct row {
	const char *name;
	int (*does)(void);
	int error;
} rows[] = {
	{ "execute a program", executes, EPERM },
	{ "execute a program in a thread that was there", executes_in_an_older_thread, EPERM },
#ifndef __SANITIZE_ADDRESS__ /* as privilege.c has it */
	{ "trace", traces, EPERM },
#endif
	{ "change namespaces", changes_namespaces, EPERM },
	{ "write to processes", writes_to_others, EPERM },
	{ "numbers of another architecture", calls_by_another_architectures_number, EPERM },
	{ "read files", reads, 0 },
	{ "start threads", starts_threads, 0 },
};

/* Exit status of the child that is confined: what its call failed with. */
static int confined(const struct row *row)
{
	const struct privilege_needs needs = { 0 };
	pid_t child = fork();
	int status;

	if (!child) {
		pthread_mutex_lock(&gate);
		if (pthread_create(&waiting, NULL, waits_then_executes, NULL) ||
		    privilege_shed(&needs) < 0 || privilege_confine() < 0)
			_exit(255);
		_exit(row->does());
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int error = confined(&rows[i]);

		if (error != rows[i].error)
			fail_msg("%s: %d, want %d", rows[i].name, error, rows[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_is_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
