/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of mountinfo: whoever may mount chooses the names in them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/cgroup_mount.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_line(char *line, size_t len)
{
	struct cgroup_mount m;

	if (!cgroup_mount_parse(line, &m))
		return;
	if (m.root < line || m.point <= m.root || m.options <= m.point || m.options >= line + len)
		abort();
	if (!cgroup_has_controllers(m.options, "", 0) ||
	    !cgroup_has_controllers(m.options, m.options, strlen(m.options)))
		abort();
	(void)cgroup_has_controllers(m.options, "cpu,cpuacct", 11);
	(void)cgroup_has_controllers("cpu,cpuacct", m.options, strlen(m.options));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1), *rest = NULL;

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	for (char *l = strtok_r(text, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest))
		check_line(l, strlen(l));
	free(text);
	return 0;
}
