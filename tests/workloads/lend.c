/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs Python code with a thread state that another thread made, in the thread that calls, or in
 * one that Python does not know. Loaded into the interpreter, whose functions it finds by name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

struct loan {
	void *state;
	const char *code;
};

void run_lent(void *state, const char *code)
{
	void (*acquire)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_AcquireThread");
	void (*release)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_ReleaseThread");
	int (*run)(const char *, void *) =
		(int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");

	acquire(state);
	run(code, NULL);
	release(state);
}

static void *run_loan(void *arg)
{
	struct loan *loan = arg;

	run_lent(loan->state, loan->code);
	return NULL;
}

void run_lent_in_c(void *state, const char *code)
{
	struct loan loan = { state, code };
	pthread_t thread;

	pthread_create(&thread, NULL, run_loan, &loan);
	pthread_join(thread, NULL);
}
