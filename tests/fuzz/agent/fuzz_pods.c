/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a kubelet, or whoever answers in its place, says: the same in one piece and in two. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static size_t read_in_two(const struct config *c, const char *text, size_t len, size_t cut)
{
	struct pods_reader r = { .config = c };
	size_t pods;

	if (!pods_reader_feed(&r, text, cut) && !pods_reader_feed(&r, text + cut, len - cut))
		(void)!pods_reader_finish(&r);
	if (strlen(r.next) >= sizeof(r.next))
		abort();
	for (size_t i = 0; i < r.pods.len; i++)
		if (!*r.pods.items[i].names.uid || !*r.pods.items[i].names.name ||
		    r.pods.items[i].containers.len > PODS_CONTAINERS_MAX)
			abort();
	pods = r.pods.len;
	pods_reader_release(&r);
	return pods;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static char service[] = "app", label[] = "team", *labels[] = { label };
	const struct config c = { .service_label = service, .pod_labels = { labels, 1, 1 } };
	char *text = malloc(len + 1);
	struct pod pod = { 0 };

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (read_in_two(&c, text, len, len) != read_in_two(&c, text, len, len / 2))
		abort();
	pod_read_labels(&c, text, len, &pod);
	free(text);
	return 0;
}
