/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "cmd/cmd.h"

/* Man pages in roff (man(7) macros), from the same tables as --help. */

/* Text that roff must not read as its own: backslash, dash, and a leading dot or quote. */
static void append_text(struct strbuf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((text[i] == '.' || text[i] == '\'') &&
		    (out->len == 0 || out->bytes[out->len - 1] == '\n'))
			strbuf_puts(out, "\\&");
		if (text[i] == '\\')
			strbuf_puts(out, "\\e");
		else if (text[i] == '-')
			strbuf_puts(out, "\\-");
		else
			strbuf_putc(out, text[i]);
	}
}

static void append_string(struct strbuf *out, const char *text)
{
	append_text(out, text, strlen(text));
}

static void append_bold(struct strbuf *out, const char *text)
{
	strbuf_puts(out, "\\fB");
	append_string(out, text);
	strbuf_puts(out, "\\fR");
}

/* "-F, --freq HZ" with bold names and the argument in italics. */
static void append_label(struct strbuf *out, const struct opt *o)
{
	if (o->key)
		strbuf_appendf(out, "\\fB\\-%c\\fR%s", o->key, o->name ? ", " : "");
	if (o->name) {
		strbuf_puts(out, "\\fB\\-\\-");
		append_string(out, o->name);
		strbuf_puts(out, "\\fR");
	}
	if (o->arg)
		strbuf_appendf(out, o->bare ? "[=\\fI%s\\fR]" : " \\fI%s\\fR", o->arg);
}

static void append_row(struct strbuf *out, const struct opt *o)
{
	if (o->kind == OPT_ALIAS_)
		return;
	if (o->kind == OPT_GROUP_) {
		strbuf_puts(out, ".SS ");
		append_string(out, o->help);
		strbuf_putc(out, '\n');
		return;
	}
	strbuf_puts(out, ".TP\n");
	append_label(out, o);
	for (const struct opt *alias = o + 1; alias->kind == OPT_ALIAS_; alias++) {
		strbuf_puts(out, ", ");
		append_label(out, alias);
	}
	strbuf_putc(out, '\n');
	append_string(out, o->help);
	for (size_t i = 0; opt_has_choices(o) && o->choices[i]; i++) {
		strbuf_puts(out, i ? ", " : ": ");
		append_bold(out, o->choices[i]);
	}
	strbuf_putc(out, '\n');
}

static void append_title(struct strbuf *out, const char *page, const char *summary)
{
	strbuf_puts(out, ".TH ");
	for (const char *p = page; *p; p++)
		strbuf_putc(out, (char)toupper((unsigned char)*p));
	strbuf_appendf(out, " 1 \"\" \"pyebpf %s\" \"User Commands\"\n", PYEBPF_VERSION);
	strbuf_puts(out, ".SH NAME\n");
	append_string(out, page);
	strbuf_puts(out, " \\- ");
	append_string(out, summary);
	strbuf_puts(out, "\n.SH SYNOPSIS\n");
}

static void append_usage(struct strbuf *out, const struct command *command)
{
	const char *form = command->usage;

	while (true) {
		size_t len = strcspn(form, "\n");

		append_bold(out, "pyebpf");
		strbuf_putc(out, ' ');
		append_bold(out, command->name);
		strbuf_putc(out, ' ');
		append_text(out, form, len);
		strbuf_putc(out, '\n');
		if (!form[len])
			return;
		strbuf_puts(out, ".br\n");
		form += len + 1;
	}
}

static void append_about(struct strbuf *out, const char *text)
{
	strbuf_puts(out, ".SH DESCRIPTION\n");
	for (const char *end = strstr(text, "\n\n"); end; end = strstr(text, "\n\n")) {
		append_text(out, text, (size_t)(end - text));
		strbuf_puts(out, "\n.PP\n");
		text = end + 2;
	}
	append_string(out, text);
	strbuf_putc(out, '\n');
}

static void append_examples(struct strbuf *out, const char *lines)
{
	strbuf_puts(out, ".SH EXAMPLES\n");
	while (*lines) {
		size_t len = strcspn(lines, "\n");
		size_t shown = strcspn(lines, "\t\n");

		strbuf_puts(out, ".TP\n\\fB");
		append_text(out, lines, shown);
		strbuf_puts(out, "\\fR\n");
		if (shown < len)
			append_text(out, lines + shown + 1, len - shown - 1);
		strbuf_putc(out, '\n');
		lines += lines[len] ? len + 1 : len;
	}
}

static void append_exit_status(struct strbuf *out)
{
	strbuf_puts(out, ".SH EXIT STATUS\n"
			 "0 success; 1 run-time error; 2 wrong usage; 3 no Python process or no "
			 "samples; 4 permission or\nkernel support missing; 5 regression and "
			 "6 inconclusive from \\fBpyebpf diff \\-\\-gate\\fR.\n");
}

static void command_page(const struct command *command, const struct opt *opts, void *context)
{
	struct strbuf *out = context;
	char page[64];

	snprintf(page, sizeof(page), "pyebpf-%s", command->name);
	append_title(out, page, command->summary);
	append_usage(out, command);
	if (command->about)
		append_about(out, command->about);
	strbuf_puts(out, ".SH OPTIONS\n");
	for (const struct opt *o = opts; o->kind != OPT_END_; o++)
		append_row(out, o);
	for (const struct opt *o = opt_common; o->kind != OPT_END_; o++)
		append_row(out, o);
	if (command->examples)
		append_examples(out, command->examples);
	append_exit_status(out);
	strbuf_puts(out, ".SH SEE ALSO\n\\fBpyebpf\\fR(1)\n");
}

static void main_page(const struct command *const *commands, struct strbuf *out)
{
	append_title(out, "pyebpf", "system-wide profiler for Python");
	append_bold(out, "pyebpf");
	strbuf_puts(out,
		    " \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n"
		    ".SH DESCRIPTION\n"
		    "Profiles CPython processes from inside the kernel, without stopping them.\n"
		    ".SH COMMANDS\n");
	for (const struct command *const *c = commands; *c; c++) {
		strbuf_puts(out, ".TP\n\\fBpyebpf\\-");
		append_string(out, (*c)->name);
		strbuf_puts(out, "\\fR(1)\n");
		append_string(out, (*c)->summary);
		strbuf_putc(out, '\n');
	}
	append_exit_status(out);
}

static int man_run(struct call *call)
{
	static const struct opt opts[] = { OPT_END };
	_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;
	const struct command *const *c;
	int status, r;

	if (!cmd_options(call, opts, &status))
		return status;
	if (call->operands.len > 1)
		return cmd_usage(call, "one command at a time");
	if (call->operands.len == 0) {
		main_page(call->commands, &out);
	} else {
		for (c = call->commands; *c; c++)
			if (!strcmp((*c)->name, call->operands.items[0]))
				break;
		if (!*c)
			return cmd_usage(call, "no command '%s'", call->operands.items[0]);
		cmd_describe(*c, command_page, &out);
	}
	r = strbuf_error(&out);
	if (!r)
		r = file_write_whole("-", out.bytes, out.len);
	return r < 0 ? cmd_fail(call, r) : EXIT_OK;
}

const struct command command_man = {
	.name = "man",
	.summary = "print the man page of a command",
	.usage = "[COMMAND]",
	.examples = "pyebpf man record | man -l -\tread it now",
	.operands = "*",
	.run = man_run,
};
