/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_KUBERNETES_H
#define AGENT_KUBERNETES_H

#include <stdbool.h>

#include "agent/config.h"
#include "agent/pods.h"
#include "base/cleanup.h"

/*
 * What the pods of this node are called: by the kubelet, the API server, or files. A thread of its
 * own asks: at once, then every few minutes, and soon where a pod turns up that is not known; ever
 * more seldom while that does not help. Whatever is answered, or not, what was known stays, and
 * nobody waits for it.
 */
struct kubernetes;
struct metrics;

/* Both are borrowed. *out is NULL where the configuration names no source. */
int kubernetes_new(const struct config *c, struct metrics *m, struct kubernetes **out);
void kubernetes_free(struct kubernetes *k);
DEFINE_CLEANUP(struct kubernetes *, kubernetes_free)

struct pod_names {
	char space[POD_WORD_BYTES], pod[POD_NAME_BYTES], container[POD_WORD_BYTES];
	char workload[POD_NAME_BYTES], kind[POD_WORD_BYTES];
	char service[POD_WORD_BYTES];
	char labels[CONFIG_LABELS_MAX][POD_WORD_BYTES]; /* as kubernetes.labels */
};

/*
 * False: not known yet; it will be asked for, as is a container that a pod which is known does not
 * have yet: it was restarted. k may be NULL: nothing is known.
 */
bool kubernetes_find(struct kubernetes *k, const char *uid, const char *container,
		     struct pod_names *out);

#endif
