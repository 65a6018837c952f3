/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines, cgroups and mounts are whatever a process made of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1), service[16];
	struct cgroup_root root = { (char *)"", (char *)"/kubepods/pod/container" };
	const struct cgroup_namespace inner = { &root, 1, 0 }, outer = { NULL, 0, 0 };
	struct origin o = { 0 };

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	origin_of_command(text, service, sizeof(service));
	origin_of_attributes(text, service, sizeof(service));
	origin_of_cgroups(text, len, &outer, &o);
	origin_of_cgroups(text, len, &inner, &o);
	origin_of_mounts(text, len, &o);
	if (!memchr(service, '\0', sizeof(service)) ||
	    !memchr(o.container, '\0', sizeof(o.container)) || !memchr(o.pod, '\0', sizeof(o.pod)))
		abort();
	free(text);
	return 0;
}
