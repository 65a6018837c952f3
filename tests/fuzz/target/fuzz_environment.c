/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Variables are whatever a process was started with; /proc/cpuinfo is the kernel's, and told alike.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const names[] = { "PYTHONHASHSEED", "PYTHONMALLOC", "A", "" };
	_cleanup_(strbuf_releasep) struct strbuf cpu = STRBUF_INIT;
	char *text = malloc(len ? len : 1); /* a byte too many is seen by a sanitizer */

	if (!text)
		return 0;
	memcpy(text, bytes, len);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value;
		size_t n;

		if (environment_find(text, len, names[i], &value, &n) &&
		    (value < text || value + n > text + len))
			abort();
	}
	environment_cpu_of(text, len, &cpu);
	free(text);
	return 0;
}
