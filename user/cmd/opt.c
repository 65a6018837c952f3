/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/opt.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/py_spy.h"

const struct opt opt_common[] = {
	OPT_GROUP("Common"),
	{ .kind = OPT_HELP_, .key = 'h', .name = "help", .help = "show this text" },
	{ .kind = OPT_VERBOSE_,
	  .key = 'v',
	  .name = "verbose",
	  .help = "print more; -vv for debug output" },
	{ .kind = OPT_QUIET_, .key = 'q', .name = "quiet", .help = "print errors only" },
	OPT_END,
};

static bool is_option(const struct opt *o)
{
	return o->kind != OPT_END_ && o->kind != OPT_GROUP_;
}

static bool takes_value(const struct opt *o)
{
	return o->kind >= OPT_U32_ && o->kind <= OPT_ENUM_SET_;
}

/* A row by its long name (len bytes) or, if name is NULL, by its key. */
static const struct opt *find_in(const struct opt *opts, const char *name, size_t len, char key)
{
	for (const struct opt *o = opts; o->kind != OPT_END_; o++) {
		if (!is_option(o))
			continue;
		if (name ? o->name && strlen(o->name) == len && !memcmp(o->name, name, len)
			 : o->key && o->key == key)
			return o;
	}
	return NULL;
}

static const struct opt *find(const struct opt *opts, const char *name, size_t len, char key)
{
	const struct opt *o = find_in(opts, name, len, key);

	return o ? o : find_in(opt_common, name, len, key);
}

const char *opt_table_mistake(const struct opt *opts)
{
	for (const struct opt *o = opts; o->kind != OPT_END_; o++) {
		if (o->kind == OPT_GROUP_) {
			if (!o->help || !isupper((unsigned char)o->help[0]))
				return "group without a title that starts with a capital";
			continue;
		}
		if (!o->name && !o->key)
			return "row without a name";
		if (o->name && find_in(opts, o->name, strlen(o->name), 0) != o)
			return o->name;
		if (o->key && find_in(opts, NULL, 0, o->key) != o)
			return "key used twice";
		if ((o->name && find_in(opt_common, o->name, strlen(o->name), 0)) ||
		    (o->key && find_in(opt_common, NULL, 0, o->key)))
			return "name of a common option";
		if (o->kind == OPT_ALIAS_) {
			if (o == opts || !is_option(o - 1))
				return "alias of nothing";
			continue;
		}
		if (!o->help || !o->help[0] || o->help[strlen(o->help) - 1] == '.')
			return "help text missing, or it ends in a full stop";
		if (takes_value(o) && (!o->arg || !o->to.flag))
			return "value without arg or destination";
		if (opt_has_choices(o) && (!o->choices || !o->choices[0]))
			return "choice without words";
		if (o->bare && (o->kind != OPT_ENUM_ || o->key))
			return "a value that may be left out, but is no word behind a name";
		if (o->max && o->min > o->max)
			return "limits that nothing meets";
	}
	return NULL;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b; 99 for long words. */
static unsigned int distance(const char *a, const char *b)
{
	enum { LONGEST = 40 };
	unsigned char d[LONGEST + 1][LONGEST + 1];
	size_t m = strlen(a), n = strlen(b);

	if (m > LONGEST || n > LONGEST)
		return 99;
	for (size_t i = 0; i <= m; i++)
		d[i][0] = (unsigned char)i;
	for (size_t j = 0; j <= n; j++)
		d[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= m; i++) {
		for (size_t j = 1; j <= n; j++) {
			unsigned char best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[m][n];
}

const char *opt_nearest(const char *typed, const char *const *names)
{
	size_t len = strlen(typed);
	unsigned int limit = len / 3 ? (unsigned int)(len / 3) : 1;
	const char *best = NULL;

	for (; *names; names++) {
		unsigned int edits = distance(typed, *names);

		if (len >= 2 && !strncmp(typed, *names, len))
			return *names;
		if (edits <= limit && edits < strlen(*names)) {
			limit = edits - (edits > 0); /* the next one must be nearer */
			best = *names;
		}
	}
	return best;
}

static int unknown_long(const struct opt *opts, const char *command, const char *typed, size_t len)
{
	const struct opt *const tables[] = { opts, opt_common };
	VEC(const char *) names = VEC_INIT;
	const char *near = NULL, *here = py_spy_option(command, typed, len, 0);
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), typed);
	if (here)
		return err_set(-EINVAL, "unknown option --%s: %s", word, here);
	for (size_t t = 0; t < 2; t++)
		for (const struct opt *o = tables[t]; o->kind != OPT_END_; o++)
			if (is_option(o) && o->name && vec_push(&names, o->name) < 0)
				break;
	if (!vec_push(&names, NULL))
		near = opt_nearest(word, names.items);
	vec_release(&names);
	if (near)
		return err_set(-EINVAL, "unknown option --%s; did you mean --%s?", word, near);
	return err_set(-EINVAL, "unknown option --%s", word);
}

static int unknown_short(const char *command, char key)
{
	const char *here = py_spy_option(command, NULL, 0, key);

	return err_set(-EINVAL, "unknown option -%c%s%s", key, here ? ": " : "", here ? here : "");
}

/* What to call the row in messages: "--freq", or "-F" if it has no long name. */
struct row_name {
	char s[64];
};

static struct row_name row_name(const struct opt *o)
{
	struct row_name n;

	if (o->name)
		snprintf(n.s, sizeof(n.s), "--%s", o->name);
	else
		snprintf(n.s, sizeof(n.s), "-%c", o->key);
	return n;
}

static struct units_text limit_text(const struct opt *o, uint64_t limit)
{
	struct units_text t;

	switch (o->kind) {
	case OPT_TIME_:
		return units_ns_exact(limit);
	case OPT_FREQ_:
		return units_hz(limit);
	case OPT_BYTES_:
		return units_bytes(limit);
	case OPT_SHARE_:
		return units_share(limit);
	default:
		snprintf(t.s, sizeof(t.s), "%llu", (unsigned long long)limit);
		return t;
	}
}

static int check_range(const struct opt *o, const char *text, uint64_t v)
{
	bool is_u32 = o->kind == OPT_U32_ || o->kind == OPT_FREQ_ || o->kind == OPT_U32_LIST_;
	uint64_t max = o->max ? o->max : is_u32 ? UINT32_MAX : UINT64_MAX;

	if (v < o->min)
		return err_set(-ERANGE, "%s is too small: the minimum is %s", text,
			       limit_text(o, o->min).s);
	if (v > max)
		return err_set(-ERANGE, "%s is too large: the maximum is %s", text,
			       limit_text(o, max).s);
	return 0;
}

static int read_number(const struct opt *o, const char *text, uint64_t *v)
{
	uint64_t number;
	int r;

	switch (o->kind) {
	case OPT_TIME_:
		r = units_parse_ns(text, &number);
		break;
	case OPT_FREQ_:
		r = units_parse_hz(text, &number);
		break;
	case OPT_BYTES_:
		r = units_parse_bytes(text, &number);
		break;
	case OPT_SHARE_:
		r = units_parse_share(text, &number);
		break;
	default:
		r = units_parse_count(text, &number);
		break;
	}
	if (r >= 0)
		r = check_range(o, text, number);
	if (r >= 0)
		*v = number;
	return r;
}

static int read_u32_list(const struct opt *o, const char *text)
{
	while (true) {
		size_t len = strcspn(text, ",");
		uint64_t number = 0;
		char item[32];
		int r;

		if (len >= sizeof(item))
			return err_set(-ERANGE, "'%s' is too large", text);
		memcpy(item, text, len);
		item[len] = '\0';
		r = read_number(o, item, &number);
		if (r < 0)
			return r;
		r = vec_push(o->to.u32_list, (uint32_t)number);
		if (r < 0)
			return r;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

static int read_choice(const struct opt *o, const char *text, unsigned int *choice)
{
	char words[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; o->choices[i]; i++) {
		if (!strcmp(o->choices[i], text)) {
			*choice = i;
			return 0;
		}
		if (used < sizeof(words))
			used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s",
						 i ? ", " : "", o->choices[i]);
	}
	return err_set(-EINVAL, "'%s' is not one of: %s", text, words);
}

static int read_choices(const struct opt *o, const char *text)
{
	unsigned int choice;
	char word[64];
	int r;

	while (true) {
		size_t len = strcspn(text, ",");

		snprintf(word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), text);
		r = read_choice(o, word, &choice);
		if (r < 0)
			return r;
		*o->to.choice |= 1u << choice;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

static int read_percent(const struct opt *o, const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || *end || !(percent >= 0 && percent <= 100))
		return err_set(-EINVAL, "'%s' is not a number from 0 to 100", text);
	*o->to.percent = percent;
	return 0;
}

static int read_value(const struct opt *o, const char *text)
{
	uint64_t number = 0;
	int r;

	switch (o->kind) {
	case OPT_STR_:
		*o->to.str = text;
		return 0;
	case OPT_LIST_:
		return vec_push(o->to.list, text);
	case OPT_ENUM_:
		return read_choice(o, text, o->to.choice);
	case OPT_ENUM_SET_:
		return read_choices(o, text);
	case OPT_U32_LIST_:
		return read_u32_list(o, text);
	case OPT_PERCENT_:
		return read_percent(o, text);
	default:
		r = read_number(o, text, &number);
		if (r < 0)
			return r;
		if (o->kind == OPT_U32_ || o->kind == OPT_FREQ_)
			*o->to.u32 = (uint32_t)number;
		else
			*o->to.u64 = number;
		return 0;
	}
}

/* The row an alias stands for. */
static const struct opt *without_alias(const struct opt *o)
{
	while (o->kind == OPT_ALIAS_)
		o--;
	return o;
}

/* One option with its value (NULL: none given). Errors name it as it was typed. */
static int apply(const struct opt *typed, const char *value, bool *help)
{
	const struct opt *o = without_alias(typed);
	int r;

	switch (o->kind) {
	case OPT_FLAG_:
		*o->to.flag = true;
		return 0;
	case OPT_HELP_:
		*help = true;
		return 0;
	case OPT_VERBOSE_:
		log_set_level((int)log_level() + 1);
		return 0;
	case OPT_QUIET_:
		log_set_level(LOG_LEVEL_ERROR);
		return 0;
	default:
		if (!value && o->bare) {
			*o->to.choice = o->bare;
			return 0;
		}
		if (!value)
			return err_set(-EINVAL, "%s needs a value: %s", row_name(typed).s, o->arg);
		r = read_value(o, value);
		return r < 0 ? err_wrap(r, "%s", row_name(typed).s) : 0;
	}
}

/* "--name", "--name=value", "--name" "value". Returns how many words it took. */
static int parse_long(const struct opt *opts, const char *command, char **argv, bool *help)
{
	const char *name = argv[0] + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	const struct opt *o = find(opts, name, len, 0);
	int used = 1, r;

	if (!o)
		return unknown_long(opts, command, name, len);
	if (value) {
		value++;
		if (!takes_value(without_alias(o)))
			return err_set(-EINVAL, "%s takes no value", row_name(o).s);
	} else if (takes_value(without_alias(o)) && !without_alias(o)->bare && argv[1]) {
		value = argv[1];
		used = 2;
	}
	r = apply(o, value, help);
	return r < 0 ? r : used;
}

/* "-abc" flags, "-F99", "-F" "99", "-abF99". Returns how many words it took. */
static int parse_short(const struct opt *opts, const char *command, char **argv, bool *help)
{
	for (const char *p = argv[0] + 1; *p && !*help; p++) {
		const struct opt *o = find(opts, NULL, 0, *p);
		int r;

		if (!o)
			return unknown_short(command, *p);
		if (takes_value(without_alias(o))) {
			r = apply(o, p[1] ? p + 1 : argv[1], help);
			return r < 0 ? r : p[1] ? 1 : 2;
		}
		r = apply(o, NULL, help);
		if (r < 0)
			return r;
	}
	return 1;
}

int opt_parse(const struct opt *opts, int argc, char **argv, struct operands *operands)
{
	struct operands found = { .dashed = -1 };
	bool help = false;
	int i = 1;

	assert(!opt_table_mistake(opts));
	/* argv[1..1 + found.len) collects the operands; what stood there has been read */
	while (i < argc) {
		int used = 1;

		if (!strcmp(argv[i], "--")) {
			found.dashed = argc - i - 1;
			while (++i < argc)
				argv[1 + found.len++] = argv[i];
			break;
		}
		if (argv[i][0] != '-' || !argv[i][1])
			argv[1 + found.len++] = argv[i];
		else if (argv[i][1] == '-')
			used = parse_long(opts, argv[0], argv + i, &help);
		else
			used = parse_short(opts, argv[0], argv + i, &help);
		if (used < 0)
			return used;
		if (help)
			return 0;
		i += used;
	}
	found.items = argv + 1;
	found.items[found.len] = NULL;
	*operands = found;
	return 1;
}
