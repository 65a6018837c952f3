/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A configuration as it is in force, and what differs between two. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/config_keys.h"
#include "base/units.h"
#include "collect/modes.h"

static bool are_equal_texts(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool are_equal_lists(const struct config_list *a, const struct config_list *b)
{
	for (size_t i = 0; i < a->len && i < b->len; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return a->len == b->len;
}

static bool is_equal_key(const void *a, const void *b, const struct key *k)
{
	switch (k->type) {
	case VALUE_TEXT:
		return are_equal_texts(*(char **)config_member(a, k),
				       *(char **)config_member(b, k));
	case VALUE_CHOICE:
		return *(unsigned int *)config_member(a, k) == *(unsigned int *)config_member(b, k);
	case VALUE_LIST:
		return are_equal_lists(config_member(a, k), config_member(b, k));
	default:
		return *(uint64_t *)config_member(a, k) == *(uint64_t *)config_member(b, k);
	}
}

/* `labels` and `relabel`, which are no rows of the table. */
static void print_rest(const struct config *c, FILE *out);

static bool is_equal_rest(const struct config *a, const struct config *b)
{
	const struct config *const both[] = { a, b };
	char *texts[2] = { NULL, NULL };
	bool is_equal;

	for (size_t i = 0; i < 2; i++) {
		size_t len;
		FILE *out = open_memstream(&texts[i], &len);

		if (!out)
			continue;
		print_rest(both[i], out);
		fclose(out);
	}
	is_equal = texts[0] && texts[1] && !strcmp(texts[0], texts[1]);
	free(texts[0]);
	free(texts[1]);
	return is_equal;
}

static unsigned int differing_parts(const void *a, const void *b, bool is_output)
{
	unsigned int parts = 0;

	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (config_keys[i].is_output == is_output && !is_equal_key(a, b, &config_keys[i]))
			parts |= config_keys[i].parts ?: CONFIG_OUTPUT;
	return parts;
}

unsigned int config_changes(const struct config *a, const struct config *b)
{
	unsigned int parts = is_equal_rest(a, b) ? 0 : CONFIG_OUTPUT;

	parts |= differing_parts(a, b, false);
	if (a->outputs.len != b->outputs.len)
		return parts | CONFIG_OUTPUT;
	for (size_t i = 0; i < a->outputs.len; i++)
		parts |= differing_parts(&a->outputs.items[i], &b->outputs.items[i], true);
	return parts;
}

static void print_text(const char *text, FILE *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./";

	if (*text && !text[strspn(text, plain)]) {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text; text++)
		fputs(*text == '\'' ? "''" : (char[]){ *text, '\0' }, out);
	fputc('\'', out);
}

static void print_list(const struct config_list *l, FILE *out)
{
	for (size_t i = 0; i < l->len; i++) {
		fputs(i ? ", " : "[", out);
		print_text(l->items[i], out);
	}
	fputc(']', out);
}

static void print_rule(const struct relabel_rule *rule, FILE *out)
{
	const struct {
		const char *name, *text;
	} texts[] = { { "separator", rule->separator },
		      { "regex", rule->regex },
		      { "target_label", rule->target },
		      { "replacement", rule->replacement } };

	fprintf(out, "  - {action: %s", relabel_actions[rule->action]);
	if (rule->sources.len) {
		fputs(", source_labels: ", out);
		print_list(&rule->sources, out);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!texts[i].text)
			continue;
		fprintf(out, ", %s: ", texts[i].name);
		print_text(texts[i].text, out);
	}
	if (rule->modulus)
		fprintf(out, ", modulus: %" PRIu64, rule->modulus);
	fputs("}\n", out);
}

static void print_modes(uint64_t modes, FILE *out)
{
	_cleanup_(strbuf_releasep) struct strbuf words = STRBUF_INIT;

	modes_put((unsigned int)modes, &words);
	fputs(strbuf_str(&words), out);
}

static void print_value(const void *of, const struct key *k, FILE *out)
{
	const char *text = k->type == VALUE_TEXT ? *(char **)config_member(of, k) : NULL;
	uint64_t number = 0;

	if (k->type == VALUE_CHOICE)
		text = k->choices[*(unsigned int *)config_member(of, k)];
	else if (k->type != VALUE_TEXT && k->type != VALUE_LIST)
		number = *(uint64_t *)config_member(of, k);
	if (k->type == VALUE_LIST)
		print_list(config_member(of, k), out);
	else if (text)
		print_text(text, out);
	else if (k->type == VALUE_MODES)
		print_modes(number, out);
	else if (k->type == VALUE_HZ)
		fputs(units_hz(number).s, out);
	else if (k->type == VALUE_TIME)
		fputs(units_ns_exact(number).s, out);
	else if (k->type == VALUE_SHARE)
		fputs(units_share(number).s, out);
	else
		fprintf(out, "%" PRIu64, number);
}

static void print_rest(const struct config *c, FILE *out)
{
	if (c->labels.len)
		fputs("labels:\n", out);
	for (size_t i = 0; i < c->labels.len; i++) {
		fprintf(out, "  %s: ", c->labels.items[i].name);
		print_text(c->labels.items[i].value, out);
		fputc('\n', out);
	}
	if (c->relabel.list.len)
		fputs("relabel:\n", out);
	for (size_t i = 0; i < c->relabel.list.len; i++)
		print_rule(&c->relabel.list.items[i], out);
}

static bool is_absent(const void *of, const struct key *k)
{
	return (k->type == VALUE_TEXT && !*(char **)config_member(of, k)) ||
	       (k->type == VALUE_LIST && !((struct config_list *)config_member(of, k))->len);
}

/* Those of one are a mapping, those that have names a list. */
static void print_output(const struct config_output *o, FILE *out)
{
	const char *indent = o->name ? "  - " : "  ";

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		if (!config_keys[i].is_output || is_absent(o, &config_keys[i]))
			continue;
		fprintf(out, "%s%s: ", indent, strchr(config_keys[i].name, '.') + 1);
		print_value(o, &config_keys[i], out);
		fputc('\n', out);
		indent = o->name ? "    " : "  ";
	}
}

void config_print(const struct config *c, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct key *k = &config_keys[i];
		const char *dot = strchr(k->name, '.');
		size_t len = dot ? (size_t)(dot - k->name) : 0;
		bool begins = len && strncmp(section, k->name, len + 1);

		if (!k->is_output && is_absent(c, k))
			continue;
		if (begins)
			fprintf(out, "%.*s:\n", (int)len, k->name);
		section = k->name;
		for (size_t o = 0; k->is_output && begins && o < c->outputs.len; o++)
			print_output(&c->outputs.items[o], out);
		if (k->is_output)
			continue;
		fprintf(out, "%s%s: ", dot ? "  " : "", dot ? dot + 1 : k->name);
		print_value(c, k, out);
		fputc('\n', out);
	}
	print_rest(c, out);
}
