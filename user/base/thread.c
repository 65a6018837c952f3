/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/process_limit.h"

int thread_start(void *(*run)(void *arg), void *arg, pthread_t *thread)
{
	pthread_attr_t attr;
	pthread_t started;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr,
				    thread ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&started, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!r && thread)
		*thread = started;
	return r == EAGAIN ? process_limit_probe() : -r;
}

int thread_start_or_say(void *(*run)(void *arg), void *arg, pthread_t *thread)
{
	int r = thread_start(run, arg, thread);

	return r < 0 ? process_limit_say(r, "start a thread") : 0;
}

void cond_init_monotonic(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}
