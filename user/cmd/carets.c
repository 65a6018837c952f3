/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/carets.h"

#include <ctype.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f';
}

/* Not the NUL at the end of the set, either: a line may have one. */
static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* How tightly binary operators bind; 0: none. *len: their bytes. */
static int binding_of(const char *s, const char *end, size_t *len)
{
	static const struct {
		char text[3];
		int binding;
	} operators[] = {
		{ "**", 7 }, { "//", 6 }, { "<<", 4 }, { ">>", 4 }, { "*", 6 },
		{ "/", 6 },  { "%", 6 },  { "@", 6 },  { "+", 5 },  { "-", 5 },
		{ "&", 3 },  { "^", 2 },  { "|", 1 },
	};

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		*len = strlen(operators[i].text);
		if ((size_t)(end - s) >= *len && !memcmp(s, operators[i].text, *len))
			return operators[i].binding;
	}
	return 0;
}
#define BINDING_POWER 7

/* What an expression is made of, outside of all brackets and strings. */
struct shape {
	const char *hot, *hot_end; /* the operator that is applied last */
	int binding;               /* of that */
	const char *open;          /* of the last pair of brackets, */
	const char *close;         /* and behind it */
	bool has_operand;          /* before the place that is looked at */
	bool has_prefix;           /* + - ~ in front of an operand */
	bool is_other; /* something that binds less than operators do, or is no expression */
};

/* Behind a string that begins at s, which is a quote; end if it does not end. */
static const char *skip_string(const char *s, const char *end)
{
	const char quote = *s;
	const bool is_triple = end - s >= 3 && s[1] == quote && s[2] == quote;

	for (s += is_triple ? 3 : 1; s < end; s++) {
		if (*s == '\\')
			s++;
		else if (*s == quote && !is_triple)
			return s + 1;
		else if (*s == quote && end - s >= 3 && s[1] == quote && s[2] == quote)
			return s + 3;
	}
	return end;
}

/* Behind the bracket that closes the one at s; end if none does. */
static const char *skip_brackets(const char *s, const char *end)
{
	size_t depth = 0;

	while (s < end) {
		if (*s == '"' || *s == '\'') {
			s = skip_string(s, end);
			continue;
		}
		if (is_one_of(*s, "([{"))
			depth++;
		else if (is_one_of(*s, ")]}") && !--depth)
			return s + 1;
		s++;
	}
	return end;
}

static const char *take_word(struct shape *shape, const char *s, const char *end)
{
	static const char *const others[] = { "and",    "or",    "not",   "if",  "else",
					      "in",     "is",    "await", "for", "async",
					      "lambda", "yield", "return" };
	const char *from = s;

	while (s < end && (is_name(*s) || *s == '.'))
		s++;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if ((size_t)(s - from) == strlen(others[i]) &&
		    !memcmp(from, others[i], (size_t)(s - from)))
			shape->is_other = true;
	shape->has_operand = true;
	return s;
}

static const char *take_operator(struct shape *shape, const char *s, const char *end)
{
	size_t len;
	int binding = binding_of(s, end, &len);

	if (!binding || (s + len < end && s[len] == '=')) {
		shape->is_other |= *s != '~' || shape->has_operand;
		shape->has_prefix |= *s == '~';
		return s + 1;
	}
	if (!shape->has_operand) {
		shape->has_prefix = true;
		return s + 1;
	}
	/* Of equals the last, but ** takes the first. */
	if (!shape->hot || binding < shape->binding ||
	    (binding == shape->binding && binding != BINDING_POWER)) {
		shape->hot = s;
		shape->hot_end = s + len;
		shape->binding = binding;
	}
	shape->has_operand = false;
	return s + len;
}

static struct shape shape_of(const char *s, const char *end)
{
	struct shape shape = { 0 };

	while (s < end && !shape.is_other) {
		if (is_blank(*s)) {
			s++;
		} else if (*s == '"' || *s == '\'') {
			s = skip_string(s, end);
			shape.has_operand = true;
		} else if (is_one_of(*s, "([{")) {
			shape.open = shape.has_operand ? s : NULL; /* else it is a display */
			s = skip_brackets(s, end);
			shape.close = s;
			shape.has_operand = true;
		} else if (is_name(*s) || *s == '.') {
			s = take_word(&shape, s, end);
		} else {
			s = take_operator(&shape, s, end);
		}
	}
	return shape;
}

/* Which part of the expression is marked by ^. */
static void find_hot(const char *line, struct carets *c)
{
	const char *end = line + c->end;
	struct shape shape = shape_of(line + c->start, end);
	const char *hot = NULL, *hot_end = NULL;

	if (shape.is_other || (shape.has_prefix && shape.binding == BINDING_POWER)) {
		hot = NULL;
	} else if (shape.hot) {
		hot = shape.hot;
		hot_end = shape.hot_end;
	} else if (shape.open && shape.close == end && !shape.has_prefix &&
		   is_one_of(*shape.open, "([")) {
		hot = shape.open;
		hot_end = end;
	}
	c->hot_start = hot ? (size_t)(hot - line) : c->start;
	c->hot_end = hot ? (size_t)(hot_end - line) : c->end;
}

static bool has_text(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_blank(s[i]))
			return true;
	return false;
}

static bool is_code(const char *s, size_t len)
{
	const char *comment = memchr(s, '#', len);

	return has_text(s, comment ? (size_t)(comment - s) : len);
}

/*
 * All that a line `return f(...)` or `x = f(...)` does is that call, which Python leaves unmarked;
 * of a return only if f is a name.
 */
static bool is_plain_call(const char *line, size_t len, const struct carets *c)
{
	size_t from = 0, to = c->start, at = c->start;

	if (c->hot_start == c->start || line[c->hot_start] != '(' ||
	    is_code(line + c->end, len - c->end))
		return false;
	while (from < to && is_blank(line[from]))
		from++;
	while (to > from && is_blank(line[to - 1]))
		to--;
	while (at < c->hot_start && is_name(line[at]))
		at++;
	if (to - from == 6 && !memcmp(line + from, "return", 6))
		return at == c->hot_start;
	return to - from > 1 && line[to - 1] == '=' && !memchr(line + from, ':', to - from) &&
	       (is_name(line[to - 2]) || is_one_of(line[to - 2], " )]"));
}

bool carets_find(const char *line, size_t len, const struct code_position *at, struct carets *out)
{
	struct carets c = { 0 };
	size_t last = len;
	bool is_part;

	if (at->column < 0 || at->end_column < 0 || (size_t)at->column >= len)
		return false;
	while (last && is_blank(line[last - 1]))
		last--;
	c.start = (size_t)at->column;
	c.end = at->end_line == at->line ? (size_t)at->end_column : last;
	if (c.end > len || c.start >= c.end)
		return false;
	c.hot_start = c.start;
	c.hot_end = c.end;
	if (at->end_line == at->line)
		find_hot(line, &c);
	if (is_plain_call(line, len, &c))
		return false;
	is_part = has_text(line, c.start) || (c.end < last && has_text(line + c.end, last - c.end));
	if (!is_part && c.hot_start == c.start && c.hot_end == c.end)
		return false;
	*out = c;
	return true;
}
