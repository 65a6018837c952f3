/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_ORIGINS_H
#define AGENT_ORIGINS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/kubernetes.h"
#include "agent/origin.h"
#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * Where the processes of a window belong. /proc is asked once for each, soon after its first
 * sample: then one that ends before its window does is known too. What is found is kept while the
 * process has samples in each window.
 */
struct origins;

/* Both are borrowed, kubernetes may be NULL. 0 or -ENOMEM. */
int origins_new(const struct config *config, struct kubernetes *kubernetes, struct origins **out);
void origins_free(struct origins *o);
DEFINE_CLEANUP(struct origins *, origins_free)

/* Looks at the processes of p that are new since the last call. 0 or -ENOMEM. */
int origins_look(struct origins *o, const struct profile *p);

/*
 * By index into p->processes, which origins_look() has seen. A process that does not name its
 * service itself has that of its pod's label services.label, as far as that is known by now.
 */
void origins_get(const struct origins *o, uint32_t process, struct origin *out);

/* Its cgroup's path, "" where that is not known or no rule could ask for it. Borrowed. */
const char *origins_cgroup(const struct origins *o, uint32_t process);

/* What the pod is called. False: it is in none, or not known. */
bool origins_names(const struct origins *o, const struct origin *origin, struct pod_names *out);

/* The window is over: indices begin anew. 0 or -ENOMEM. */
int origins_next_window(struct origins *o);

#endif
