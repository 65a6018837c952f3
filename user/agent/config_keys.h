/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_CONFIG_KEYS_H
#define AGENT_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"

/* What may stand in the agent's configuration: a row a key. */

#define CONFIG_OUTPUT_SECTION "output" /* the section that may be a list */

enum value_type {
	VALUE_TEXT,
	VALUE_COUNT,
	VALUE_HZ,
	VALUE_TIME,
	VALUE_SHARE,
	VALUE_BYTES,
	VALUE_CHOICE,
	VALUE_MODES, /* words of `record --mode`, with commas between */
	VALUE_LIST
};

struct key {
	const char *name;
	enum value_type type;
	size_t offset;
	const char *otherwise; /* as it would stand in the file; NULL: absent */
	uint64_t min, max;
	const char *const *choices;
	unsigned int parts; /* enum config_part; 0: CONFIG_OUTPUT */
	bool is_output;     /* offset: in each struct config_output */
};

#define CONFIG_KEYS 52
extern const struct key config_keys[CONFIG_KEYS];

/* of: the struct that the key is a member of. */
void *config_member(const void *of, const struct key *k);

/* Of text as it stands in the file. 0; -EINVAL with a message, -ENOMEM. Not for lists. */
int config_set(void *of, const struct key *k, const char *text);
int config_set_text(const char *text, char **out); /* what *out held is freed */
int config_set_choice(const struct key *k, const char *text, unsigned int *out);

/* Of those keys that are, or are not, an output's. */
int config_set_defaults(void *of, bool is_output);
void config_release_values(void *of, bool is_output);

#endif
