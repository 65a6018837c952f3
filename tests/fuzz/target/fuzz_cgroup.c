/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cgroup paths: whoever may make a cgroup chooses its name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/cgroup.h"
#include "target/cgroup_namespace.h"
#include "target/container_cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *path = malloc(len + !len); /* of its own, so that one byte too far is seen */
	const struct cgroup_namespace none = { NULL, 0, 0 };
	struct strbuf known = STRBUF_INIT;
	struct cgroup_container c;
	size_t at = 0, before = 0;

	if (!path)
		return 0;
	if (len)
		memcpy(path, bytes, len);
	while (cgroup_path_next(path, len, &at, &c)) {
		if (c.id < before || c.id_len < CONTAINER_ID_MIN || c.id + c.id_len > c.end ||
		    c.end > len || at <= before)
			abort();
		before = at;
	}
	if (cgroup_path_of_text(&none, path, len, &known) < 0 || known.len > len)
		abort();
	strbuf_release(&known);
	free(path);
	return 0;
}
