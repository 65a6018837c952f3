/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/relabel.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <nettle/md5.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"

/* An expression that needs more is one that backtracks without end. */
#define MATCH_STEPS_MAX 100000
#define MATCH_KIB_MAX 1024

const char *const relabel_actions[] = {
	[RELABEL_REPLACE] = "replace",     [RELABEL_KEEP] = "keep",
	[RELABEL_DROP] = "drop",           [RELABEL_LABELMAP] = "labelmap",
	[RELABEL_LABELDROP] = "labeldrop", [RELABEL_LABELKEEP] = "labelkeep",
	[RELABEL_LOWERCASE] = "lowercase", [RELABEL_UPPERCASE] = "uppercase",
	[RELABEL_HASHMOD] = "hashmod",     NULL,
};

struct relabel_pattern {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
};

static int fail(const char *what, int error)
{
	char text[128] = "";

	pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text));
	return err_set(error == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -EINVAL, "%s: %s", what, text);
}

static int pattern_compile(const char *regex, struct relabel_pattern *p)
{
	const uint32_t options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_UTF |
				 PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
	PCRE2_SIZE at;
	int error;

	p->code =
		pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, options, &error, &at, NULL);
	if (!p->code)
		return fail(regex, error);
	p->match = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->limits = pcre2_match_context_create(NULL);
	if (!p->match || !p->limits)
		return -ENOMEM;
	pcre2_set_match_limit(p->limits, MATCH_STEPS_MAX);
	pcre2_set_heap_limit(p->limits, MATCH_KIB_MAX);
	return 0;
}

static void pattern_free(struct relabel_pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_match_data_free(p->match);
	pcre2_code_free(p->code);
	free(p);
}

static int pattern_new(const char *regex, struct relabel_pattern **out)
{
	struct relabel_pattern *p;
	int r;

	if (strlen(regex) > RELABEL_REGEX_MAX)
		return err_set(-EINVAL, "longer than %d bytes", RELABEL_REGEX_MAX);
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	r = pattern_compile(regex, p);
	if (r < 0)
		pattern_free(p);
	else
		*out = p;
	return r;
}

/* 1: it matches, and out is the replacement; 0: it does not; or an error of PCRE2. */
static int substitute(const struct relabel_pattern *p, const char *subject, const char *replacement,
		      char out[RELABEL_VALUE_MAX])
{
	PCRE2_SIZE len = RELABEL_VALUE_MAX;

	return pcre2_substitute(p->code, (PCRE2_SPTR)subject, strlen(subject), 0,
				PCRE2_SUBSTITUTE_UNKNOWN_UNSET | PCRE2_SUBSTITUTE_UNSET_EMPTY,
				p->match, p->limits, (PCRE2_SPTR)replacement, strlen(replacement),
				(PCRE2_UCHAR *)out, &len);
}

/* Whether it may stand there shows when it is used. */
static int check_replacement(const char *replacement)
{
	struct relabel_pattern *p;
	char out[RELABEL_VALUE_MAX];
	int r = pattern_new("", &p);

	if (r < 0)
		return r;
	r = substitute(p, "", replacement, out);
	pattern_free(p);
	return r < 0 ? fail(replacement, r) : 0;
}

/* Labels that the agent adds when it sends. */
static bool is_target(const char *name)
{
	return label_is_name(name) && strcmp(name, "__name__") != 0 && strcmp(name, "job") != 0;
}

/* Which keys an action has. */
static const struct {
	bool has_target, has_sources, needs_sources;
} action_keys[] = {
	[RELABEL_REPLACE] = { .has_target = true, .has_sources = true },
	[RELABEL_KEEP] = { .has_sources = true, .needs_sources = true },
	[RELABEL_DROP] = { .has_sources = true, .needs_sources = true },
	[RELABEL_LABELMAP] = { false },
	[RELABEL_LABELDROP] = { false },
	[RELABEL_LABELKEEP] = { false },
	[RELABEL_LOWERCASE] = { true, true, true },
	[RELABEL_UPPERCASE] = { true, true, true },
	[RELABEL_HASHMOD] = { true, true, true },
};

static int check_keys(const struct relabel_rule *rule)
{
	const char *name = relabel_actions[rule->action];
	__auto_type keys = action_keys[rule->action];

	if (keys.has_target != (rule->target != NULL))
		return err_set(-EINVAL, "target_label: %s has %s", name,
			       keys.has_target ? "one" : "none");
	if (keys.has_target && !is_target(rule->target))
		return err_set(-EINVAL, "target_label: '%s' is no name for a label", rule->target);
	if ((keys.needs_sources && !rule->sources.len) || (!keys.has_sources && rule->sources.len))
		return err_set(-EINVAL, "source_labels: %s has %s", name,
			       keys.has_sources ? "some" : "none");
	if ((rule->action == RELABEL_HASHMOD) != (rule->modulus > 0))
		return err_set(-EINVAL, "modulus: %s has %s", name,
			       rule->modulus ? "none" : "one, above 0");
	return 0;
}

static int set_otherwise(char **text, const char *otherwise)
{
	if (!*text)
		*text = strdup(otherwise);
	return *text ? 0 : -ENOMEM;
}

int relabel_rule_finish(struct relabel_rule *rule)
{
	int r = check_keys(rule);

	if (r < 0 || (r = set_otherwise(&rule->separator, ";")) < 0 ||
	    (r = set_otherwise(&rule->regex, "(.*)")) < 0 ||
	    (r = set_otherwise(&rule->replacement, "$1")) < 0)
		return r;
	if ((r = pattern_new(rule->regex, &rule->pattern)) < 0)
		return err_wrap(r, "regex");
	r = check_replacement(rule->replacement);
	return r < 0 ? err_wrap(r, "replacement") : 0;
}

void relabel_rule_release(struct relabel_rule *rule)
{
	for (size_t i = 0; i < rule->sources.len; i++)
		free(rule->sources.items[i]);
	vec_release(&rule->sources);
	free(rule->separator);
	free(rule->regex);
	free(rule->target);
	free(rule->replacement);
	pattern_free(rule->pattern);
}

void relabel_rules_release(struct relabel_rules *rules)
{
	for (size_t i = 0; i < rules->list.len; i++)
		relabel_rule_release(&rules->list.items[i]);
	vec_release(&rules->list);
}

/* 1, 0, or below: too many steps. */
static int matches(const struct relabel_pattern *p, const char *subject)
{
	int r = pcre2_match(p->code, (PCRE2_SPTR)subject, strlen(subject), 0, 0, p->match,
			    p->limits);

	return r == PCRE2_ERROR_NOMATCH ? 0 : r < 0 ? r : 1;
}

static int join_sources(const struct relabel_rule *rule, const struct labels *l, struct strbuf *out)
{
	for (size_t i = 0; i < rule->sources.len; i++)
		strbuf_appendf(out, "%s%s", i ? rule->separator : "",
			       labels_get(l, rule->sources.items[i]));
	return strbuf_error(out);
}

/* There is no room for more: the process keeps what it has. */
static int set(struct labels *l, const char *name, const char *value)
{
	int r = labels_set(l, name, value);

	return r == -E2BIG ? 0 : r;
}

static int map_names(const struct relabel_rule *rule, struct labels *l)
{
	struct labels mapped = { .list = VEC_INIT };
	char name[RELABEL_VALUE_MAX];
	int r = 0;

	for (size_t i = 0; i < l->list.len && !r; i++)
		if (substitute(rule->pattern, l->list.items[i].name, rule->replacement, name) > 0 &&
		    label_is_name(name))
			r = set(&mapped, name, l->list.items[i].value);
	for (size_t i = 0; i < mapped.list.len && !r; i++)
		r = set(l, mapped.list.items[i].name, mapped.list.items[i].value);
	labels_release(&mapped);
	return r;
}

static void filter_names(const struct relabel_rule *rule, struct labels *l, bool is_wanted)
{
	for (size_t i = l->list.len; i-- > 0;)
		if ((matches(rule->pattern, l->list.items[i].name) > 0) != is_wanted)
			labels_remove_at(l, i);
}

static int set_case(const struct relabel_rule *rule, struct strbuf *joined, struct labels *l)
{
	for (size_t i = 0; i < joined->len; i++) {
		char *c = &joined->bytes[i];

		if (rule->action == RELABEL_LOWERCASE && *c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
		if (rule->action == RELABEL_UPPERCASE && *c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	}
	return joined->len <= RELABEL_VALUE_MAX ? set(l, rule->target, strbuf_str(joined)) : 0;
}

/* The last eight bytes of the MD5, the first of them the highest: relabel.go of Prometheus. */
static int set_hash(const struct relabel_rule *rule, const struct strbuf *joined, struct labels *l)
{
	uint8_t digest[MD5_DIGEST_SIZE];
	struct md5_ctx md5;
	uint64_t hash;
	char text[24];

	md5_init(&md5);
	md5_update(&md5, joined->len, (const uint8_t *)strbuf_str(joined));
	md5_digest(&md5, sizeof(digest), digest);
	memcpy(&hash, digest + sizeof(digest) - sizeof(hash), sizeof(hash));
	snprintf(text, sizeof(text), "%" PRIu64, be64toh(hash) % rule->modulus);
	return set(l, rule->target, text);
}

/* As relabel_apply(), by one rule. */
static int apply(const struct relabel_rule *rule, struct labels *l)
{
	_cleanup_(strbuf_releasep) struct strbuf joined = STRBUF_INIT;
	char value[RELABEL_VALUE_MAX];
	int r = join_sources(rule, l, &joined);

	if (r < 0)
		return r;
	switch (rule->action) {
	case RELABEL_KEEP:
		return matches(rule->pattern, strbuf_str(&joined)) > 0;
	case RELABEL_DROP:
		return matches(rule->pattern, strbuf_str(&joined)) == 0;
	case RELABEL_LABELMAP:
		r = map_names(rule, l);
		break;
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		filter_names(rule, l, rule->action == RELABEL_LABELKEEP);
		break;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		r = set_case(rule, &joined, l);
		break;
	case RELABEL_HASHMOD:
		r = set_hash(rule, &joined, l);
		break;
	default:
		if (substitute(rule->pattern, strbuf_str(&joined), rule->replacement, value) > 0)
			r = set(l, rule->target, value);
	}
	return r < 0 ? r : 1;
}

int relabel_apply(const struct relabel_rules *rules, struct labels *l)
{
	int r = 1;

	for (size_t i = 0; i < rules->list.len && r > 0; i++)
		r = apply(&rules->list.items[i], l);
	return r;
}
