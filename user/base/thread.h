/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that gets no signals: those are for the ones that were there before. thread: what
 * to join; NULL: it is detached. 0; -EUSERS, -ENOMEM: as process_limit_probe() has it.
 */
int thread_start(void *(*run)(void *arg), void *arg, pthread_t *thread);

/* The same, with the message that names the limit. Returns 0 or -ENOMEM. */
int thread_start_or_say(void *(*run)(void *arg), void *arg, pthread_t *thread);

/* A condition whose timed waits end by CLOCK_MONOTONIC. */
void cond_init_monotonic(pthread_cond_t *cond);

#endif
