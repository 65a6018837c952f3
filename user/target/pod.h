/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_POD_H
#define TARGET_POD_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes with the final NUL, of what Kubernetes allows at most. */
#define POD_UID_BYTES 37
#define POD_NAME_BYTES 254
#define POD_WORD_BYTES 64 /* namespaces, containers, values of labels */

/* What a pod is called. NUL-terminated, plain UTF-8; "": unknown. */
struct pod_name {
	char uid[POD_UID_BYTES]; /* as cgroups have it: of static pods their hash */
	char space[POD_WORD_BYTES];
	char name[POD_NAME_BYTES];
};

/* NAMESPACE_NAME_UID, as the kubelet names its folders of logs. */
bool pod_name_of_folder(const char *folder, struct pod_name *out);

/* Looks for the pod's folder in one of logs. False: not there; *out is unchanged. */
bool pod_name_find(const char *directory, const char *uid, struct pod_name *out);

/* The whole of a text or, where it is too long or no plain text, nothing. */
void pod_take_text(const char *text, size_t len, char *out, size_t size);

#endif
