/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_RUNTIME_WORKERS_H
#define TARGET_RUNTIME_WORKERS_H

/*
 * Threads for work that looks at processes (base/workers.h): the context of each is a runtime_cache
 * of its own. 0 or -ENOMEM.
 */
struct workers;
int runtime_workers_new(struct workers **out);

#endif
