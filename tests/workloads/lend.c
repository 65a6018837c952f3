/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs Python code with a thread state that another thread made, in the thread that calls, or in
 * one that Python does not know; or in an interpreter of its own. Loaded into the interpreter,
 * whose functions it finds by name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

/* Runs code in a new interpreter, by the C API alone; called with the GIL. */
void run_in_new_interpreter(const char *code)
{
	void *(*get)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyThreadState_Get");
	void *(*create)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "Py_NewInterpreter");
	void *(*swap)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "PyThreadState_Swap");
	int (*run)(const char *, void *) =
		(int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
	void *state = get();

	create();
	run(code, NULL);
	swap(state);
}

/* Runs code that starts a thread in a new interpreter, and deletes the thread state used for it. */
void start_in_new_interpreter(const char *code)
{
	void *(*get)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyThreadState_Get");
	void *(*create)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "Py_NewInterpreter");
	void *(*swap)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "PyThreadState_Swap");
	void (*clear)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyThreadState_Clear");
	void (*drop)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyThreadState_Delete");
	int (*run)(const char *, void *) =
		(int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
	void *state = get(), *new = create();

	run(code, NULL);
	clear(new);
	swap(state);
	drop(new);
}

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
