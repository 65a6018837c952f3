/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_PODS_H
#define AGENT_PODS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/config.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "target/container.h"

#define PODS_MAX 4096              /* of a node; Kubernetes supports 110 */
#define PODS_BYTES_MAX (64u << 20) /* of a list, all its pages together */
#define PODS_TOKEN_BYTES 4096      /* what names a page; a hundred in practice */
#define PODS_ITEM_BYTES (2u << 20) /* of one pod in it: beyond what etcd takes */
#define PODS_CONTAINERS_MAX 64     /* of a pod */

struct pod_container {
	char id[CONTAINER_ID_BYTES];
	char name[POD_WORD_BYTES];
};

struct pod {
	struct pod_name names;
	char workload[POD_NAME_BYTES],
		kind[POD_WORD_BYTES];                   /* what made it: of a Deployment, ...; "" */
	char service[POD_WORD_BYTES];                   /* value of the label services.label */
	char labels[CONFIG_LABELS_MAX][POD_WORD_BYTES]; /* of kubernetes.labels; "": it has none */
	VEC(struct pod_container) containers;
};

struct pods {
	struct pod *items; /* a VEC */
	size_t len;
	size_t cap;
};

void pods_release(struct pods *p);

/* NULL if there is none. */
const struct pod *pods_find(const struct pods *p, const char *uid);

/*
 * Reads a PodList (JSON) as it arrives, in any pieces: no more than one pod of it is held as text.
 * Starts zeroed but for config; ends in pods_reader_release(). Of pods that have no uid or name
 * nothing is kept.
 */
struct pods_reader {
	const struct config *config;
	struct pods pods;
	char next[PODS_TOKEN_BYTES]; /* metadata.continue: names the next page; "": there is none */
	struct strbuf object;        /* the pod, or the list's metadata, that is being read */
	size_t object_depth;         /* of its own bracket; 0: there is none */
	char open[2];                /* brackets around it: '{' and '[' */
	char key[9];                 /* the last one of the list's own, as far as it matters */
	size_t key_len, bytes, depth;
	bool in_string, is_escaped, has_ended;
};

/* 0, or a negative errno with a message: -EBADMSG not such a list, -EFBIG, -ENOMEM. */
int pods_reader_feed(struct pods_reader *r, const char *bytes, size_t len);
int pods_reader_finish(struct pods_reader *r); /* -EBADMSG: it is not complete */

/* After pods_reader_finish(): another list comes, whose pods are added to those that are there. */
void pods_reader_next(struct pods_reader *r);
void pods_reader_release(struct pods_reader *r);

/* By the kubelet's folders of logs: NAMESPACE_NAME_UID. 0, or a negative errno with a message. */
int pods_read_logs(const char *directory, struct pods *out);

/* Our own pod, by files of the downward API: uid, name, namespace and labels. As above. */
int pods_read_downward(const struct config *c, const char *directory, struct pods *out);

/* The part that reads no files. */
void pod_read_labels(const struct config *c, const char *text, size_t len, struct pod *out);

#endif
