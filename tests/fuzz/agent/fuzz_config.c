/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* agent.yaml: what is accepted is within bounds, and its rules can be applied. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void apply_rules(const struct config *c)
{
	struct labels l = { 0 };

	if (labels_set(&l, "service_name", "shop-web") < 0 || labels_set(&l, "host", "a1") < 0 ||
	    labels_set(&l, "__command_line", "python3 -m shop \xff --all") < 0)
		abort();
	if (relabel_apply(&c->relabel, &l) < 0 || l.list.len > LABELS_MAX)
		abort();
	labels_release(&l);
}

static void check_output(const struct config_output *o)
{
	if (o->engine >= ENGINE_COUNT || (o->engine != ENGINE_FILES && (!o->url || !o->spool)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct config c;

	if (config_parse("fuzz", (const char *)bytes, len, &c) < 0)
		return 0;
	if (c.labels.len > CONFIG_LABELS_MAX || !c.rate_hz || !c.window_ns || !c.outputs.len ||
	    c.outputs.len > CONFIG_OUTPUTS_MAX || c.relabel.list.len > RELABEL_RULES_MAX)
		abort();
	for (size_t i = 0; i < c.outputs.len; i++)
		check_output(&c.outputs.items[i]);
	apply_rules(&c);
	config_release(&c);
	return 0;
}
