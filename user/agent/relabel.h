/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_RELABEL_H
#define AGENT_RELABEL_H

#include <stddef.h>
#include <stdint.h>

#include "agent/labels.h"

/*
 * Rules as Prometheus has them in relabel_configs, applied to the labels of a process one after
 * another. Expressions are Perl's (PCRE2) and are to match the whole; a match that takes too many
 * steps is none, and one that decides between keep and drop drops.
 */
enum relabel_action {
	RELABEL_REPLACE,   /* target = replacement, where the joined sources match */
	RELABEL_KEEP,      /* only what matches goes on */
	RELABEL_DROP,      /* what matches does not */
	RELABEL_LABELMAP,  /* each label whose name matches, again under the name replacement */
	RELABEL_LABELDROP, /* without the labels whose names match */
	RELABEL_LABELKEEP, /* without the others */
	RELABEL_LOWERCASE, /* target = the joined sources in lower case: of ASCII alone */
	RELABEL_UPPERCASE,
	RELABEL_HASHMOD, /* target = a hash of the joined sources, modulo: Prometheus' own */
};

#define RELABEL_RULES_MAX 100
#define RELABEL_REGEX_MAX 1024 /* bytes */
#define RELABEL_VALUE_MAX 1024 /* a longer one is not set */

struct relabel_pattern;

/* Texts are owned. All zeros: none of its keys is set. */
struct relabel_rule {
	unsigned int action; /* enum relabel_action */
	struct config_list sources;
	char *separator, *regex, *target, *replacement; /* replacement: text, $1, ${name}, $$ */
	uint64_t modulus;                               /* 0: not set */
	struct relabel_pattern *pattern;                /* of regex, by relabel_rule_finish() */
};

struct relabel_rules {
	VEC(struct relabel_rule) list;
};

void relabel_rules_release(struct relabel_rules *rules);
void relabel_rule_release(struct relabel_rule *rule);

/* "replace" and so on, by enum relabel_action; NULL behind the last. */
extern const char *const relabel_actions[];

/*
 * Fills in what is not set as Prometheus does, checks what is, and makes the rule ready. 0,
 * -ENOMEM, or -EINVAL with a message "KEY: what is wrong".
 */
int relabel_rule_finish(struct relabel_rule *rule);

/*
 * 1: go on with what l is now, 0: the process is left out, -ENOMEM. Labels beyond what a set may
 * hold are not added.
 */
int relabel_apply(const struct relabel_rules *rules, struct labels *l);

#endif
