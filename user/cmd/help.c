/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <string.h>

#include "cmd/cmd.h"

/* The text of --help, from the table. */

enum { WIDTH = 80, HELP_COLUMN_MAX = 30 };

int cmd_option_label(const struct opt *opt, struct strbuf *out)
{
	if (opt->key)
		strbuf_appendf(out, "-%c%s", opt->key, opt->name ? ", " : "");
	if (opt->name)
		strbuf_appendf(out, "--%s", opt->name);
	if (opt->arg)
		strbuf_appendf(out, opt->bare ? "[=%s]" : " %s", opt->arg);
	return strbuf_error(out);
}

/*
 * Appends words of text, broken at spaces to end before WIDTH; the cursor stands at column, and
 * lines after the first start at indent.
 */
static void append_wrapped(struct strbuf *out, const char *text, size_t column, size_t indent)
{
	bool line_has_words = false;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (line_has_words && column + 1 + len > WIDTH) {
			strbuf_appendf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (line_has_words) {
			strbuf_putc(out, ' ');
			column++;
		}
		strbuf_append(out, text, len);
		column += len;
		line_has_words = true;
		text += len;
		text += strspn(text, " ");
	}
	strbuf_putc(out, '\n');
}

/* "  -F, --freq HZ": short names have a column of their own. */
static void append_label(struct strbuf *out, const struct opt *o)
{
	strbuf_puts(out, o->key ? "  " : "      ");
	cmd_option_label(o, out);
}

/* The help text, the words of a choice and the aliases that follow the row. */
static void append_text(struct strbuf *out, const struct opt *o)
{
	strbuf_puts(out, o->help);
	for (size_t i = 0; opt_has_choices(o) && o->choices[i]; i++)
		strbuf_appendf(out, "%s%s", i ? ", " : ": ", o->choices[i]);
	for (const struct opt *alias = o + 1; alias->kind == OPT_ALIAS_; alias++) {
		strbuf_puts(out, "; also ");
		cmd_option_label(alias, out);
	}
}

/* The column help texts start at: after the widest label, within reason. */
static size_t help_column(const struct opt *opts)
{
	size_t column = 20;

	for (const struct opt *o = opts; o->kind != OPT_END_; o++) {
		_cleanup_(strbuf_releasep) struct strbuf label = STRBUF_INIT;

		if (o->kind == OPT_GROUP_ || o->kind == OPT_ALIAS_)
			continue;
		append_label(&label, o);
		if (label.len + 2 > column)
			column = label.len + 2;
	}
	return column > HELP_COLUMN_MAX ? HELP_COLUMN_MAX : column;
}

static void append_row(struct strbuf *out, const struct opt *o, size_t column)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	size_t start = out->len, used;

	if (o->kind == OPT_ALIAS_)
		return;
	if (o->kind == OPT_GROUP_) {
		strbuf_appendf(out, "\n%s:\n", o->help);
		return;
	}
	append_label(out, o);
	used = out->len - start;
	if (used + 2 > column) {
		strbuf_putc(out, '\n');
		used = 0;
	}
	strbuf_appendf(out, "%*s", (int)(column - used), "");
	append_text(&text, o);
	append_wrapped(out, strbuf_str(&text), column, column);
}

static void append_usage(struct strbuf *out, const struct command *command)
{
	const char *form = command->usage;
	const char *lead = "Usage: ";

	while (true) {
		size_t len = strcspn(form, "\n");

		strbuf_appendf(out, "%spyebpf %s%s%.*s\n", lead, command->name, len ? " " : "",
			       (int)len, form);
		lead = "       ";
		if (!form[len])
			return;
		form += len + 1;
	}
}

/* Paragraphs are divided by empty lines; each is wrapped. */
static void append_paragraphs(struct strbuf *out, const char *text)
{
	while (*text) {
		_cleanup_(strbuf_releasep) struct strbuf paragraph = STRBUF_INIT;
		const char *end = strstr(text, "\n\n");
		size_t len = end ? (size_t)(end - text) : strlen(text);

		strbuf_append(&paragraph, text, len);
		for (size_t i = 0; i < paragraph.len; i++)
			if (paragraph.bytes[i] == '\n')
				paragraph.bytes[i] = ' ';
		strbuf_putc(out, '\n');
		append_wrapped(out, strbuf_str(&paragraph), 0, 0);
		text += end ? len + 2 : len;
	}
}

static void append_examples(struct strbuf *out, const char *lines)
{
	strbuf_puts(out, "\nExamples:\n");
	while (*lines) {
		size_t len = strcspn(lines, "\n");
		size_t shown = strcspn(lines, "\t\n");

		strbuf_appendf(out, "  %.*s\n", (int)shown, lines);
		if (shown < len)
			strbuf_appendf(out, "      %.*s\n", (int)(len - shown - 1),
				       lines + shown + 1);
		lines += lines[len] ? len + 1 : len;
	}
}

int cmd_help(const struct command *command, const struct opt *opts, struct strbuf *out)
{
	size_t column = help_column(opts);

	append_usage(out, command);
	strbuf_appendf(out, "\n%c%s.\n", toupper((unsigned char)command->summary[0]),
		       command->summary + 1);
	if (command->about)
		append_paragraphs(out, command->about);
	for (const struct opt *o = opts; o->kind != OPT_END_; o++)
		append_row(out, o, column);
	for (const struct opt *o = opt_common; o->kind != OPT_END_; o++)
		append_row(out, o, column);
	if (command->examples)
		append_examples(out, command->examples);
	return strbuf_error(out);
}
