/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cgroups, mounts and names of folders are whatever somebody made of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1);
	struct cgroup_root root = { (char *)"", (char *)"/kubepods/pod/container", NULL };
	const struct cgroup_namespace inner = { &root, 1, 0 }, outer = { NULL, 0, 0 };
	struct container c = { 0 };
	struct pod_name name;

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	container_of_cgroups(text, len, &outer, &c);
	container_of_cgroups(text, len, &inner, &c);
	container_of_mounts(text, len, &c);
	if (!memchr(c.id, '\0', sizeof(c.id)) || !memchr(c.pod.uid, '\0', sizeof(c.pod.uid)))
		abort();
	if (pod_name_of_folder(text, &name) &&
	    (!*name.uid || !memchr(name.name, '\0', sizeof(name.name))))
		abort();
	free(text);
	return 0;
}
