/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_CONFIG_CHECK_H
#define AGENT_CONFIG_CHECK_H

#include <yaml.h>

#include "agent/config_keys.h"

/* A file that is being read. */
struct config_parse {
	const char *name;
	yaml_document_t *document;
	struct config *c;
	struct config_output *output; /* that is read */
	size_t line_of[CONFIG_KEYS];  /* where it is set; 0: it is not. Of output's, the last one's
				       */
};

/* Things that are each right and wrong together. 0; -EINVAL with a message, -ENOMEM. */
int config_check_output(const struct config_parse *p, const yaml_node_t *node);
int config_check_whole(const struct config_parse *p);

/* Puts the place in front of the message. r. */
int config_at_line(const struct config_parse *p, int r, size_t line, const char *key);

static inline size_t config_line_of(const yaml_node_t *node)
{
	return node->start_mark.line + 1;
}

#endif
