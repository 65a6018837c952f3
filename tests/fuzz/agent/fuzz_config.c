/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* agent.yaml: what is accepted is within bounds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct config c;

	if (config_parse("fuzz", (const char *)bytes, len, &c) < 0)
		return 0;
	if (c.labels.len > CONFIG_LABELS_MAX || !c.rate_hz || !c.window_ns ||
	    c.engine >= ENGINE_COUNT || (c.engine != ENGINE_FILES && !c.url))
		abort();
	config_release(&c);
	return 0;
}
