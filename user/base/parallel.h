/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>

/*
 * work(context, i) once for each i < count, in any order, on as many threads as there are CPUs for
 * us (at most PARALLEL_MAX), this one among them. Returns when all are done. Threads that cannot be
 * had are done without. err_set() is of a thread: work keeps the text of its errors itself.
 */
#define PARALLEL_MAX 8
void parallel_run(size_t count, void (*work)(void *context, size_t i), void *context);

#endif
