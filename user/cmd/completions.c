/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "cmd/cmd.h"

/*
 * Completion scripts for bash, zsh and fish, from the option tables. Every text that comes from
 * a table goes through a quoting function of its shell.
 */

struct script {
	struct strbuf *out;
	const struct command *const *commands;
	const struct command *command; /* the one being described: fish */
};

/* What the value of an option completes to. */
enum value_kind { VALUE_NONE, VALUE_WORDS, VALUE_FILE, VALUE_DIR };

static enum value_kind value_kind(const struct opt *o)
{
	if (opt_has_choices(o))
		return VALUE_WORDS;
	if (o->arg && (!strcmp(o->arg, "FILE") || !strcmp(o->arg, "PATH")))
		return VALUE_FILE;
	if (o->arg && !strcmp(o->arg, "DIR"))
		return VALUE_DIR;
	return VALUE_NONE;
}

/* The words of a choice, divided by spaces. They are ours: letters, digits and dashes. */
static void append_choices(struct strbuf *out, const struct opt *o)
{
	for (size_t i = 0; o->choices[i]; i++)
		strbuf_appendf(out, "%s%s", i ? " " : "", o->choices[i]);
}

static void append_command_names(const struct script *s)
{
	for (const struct command *const *c = s->commands; *c; c++)
		strbuf_appendf(s->out, "%s%s", c == s->commands ? "" : " ", (*c)->name);
}

/* The fixed words operands are taken from; false: they are files. */
static bool append_operands(const struct script *s, const struct command *command)
{
	if (!command->operands)
		return false;
	if (!strcmp(command->operands, "*"))
		append_command_names(s);
	else
		strbuf_puts(s->out, command->operands);
	return true;
}

/* Rows of both tables, one after the other; aliases get the row they stand for. */
static void for_each_option(const struct script *s, const struct opt *opts,
			    void (*visit)(const struct script *, const struct opt *row,
					  const struct opt *meant))
{
	const struct opt *const tables[] = { opts, opt_common };

	for (size_t t = 0; t < 2; t++) {
		const struct opt *meant = NULL;

		for (const struct opt *o = tables[t]; o->kind != OPT_END_; o++) {
			if (o->kind == OPT_GROUP_)
				continue;
			if (o->kind != OPT_ALIAS_)
				meant = o;
			visit(s, o, meant);
		}
	}
}

/* bash */

static void bash_names(const struct script *s, const struct opt *row, const struct opt *meant)
{
	(void)meant;
	if (row->key)
		strbuf_appendf(s->out, " -%c", row->key);
	if (row->name)
		strbuf_appendf(s->out, " --%s", row->name);
}

/* One case of `case $prev`: how the value of this option completes. */
static void bash_value(const struct script *s, const struct opt *row, const struct opt *meant)
{
	if (!meant->arg || meant->bare) /* what follows is no value of it */
		return;
	strbuf_puts(s->out, "\t\t");
	if (row->key)
		strbuf_appendf(s->out, "-%c%s", row->key, row->name ? "|" : "");
	if (row->name)
		strbuf_appendf(s->out, "--%s", row->name);
	strbuf_puts(s->out, ")\n\t\t\t");
	switch (value_kind(meant)) {
	case VALUE_WORDS:
		strbuf_puts(s->out, "COMPREPLY=($(compgen -W '");
		append_choices(s->out, meant);
		strbuf_puts(s->out, "' -- \"$cur\"))\n\t\t\t");
		break;
	case VALUE_FILE:
		strbuf_puts(s->out, "compopt -o filenames 2>/dev/null\n\t\t\t"
				    "COMPREPLY=($(compgen -f -- \"$cur\"))\n\t\t\t");
		break;
	case VALUE_DIR:
		strbuf_puts(s->out, "compopt -o filenames 2>/dev/null\n\t\t\t"
				    "COMPREPLY=($(compgen -d -- \"$cur\"))\n\t\t\t");
		break;
	case VALUE_NONE:
		break;
	}
	strbuf_puts(s->out, "return\n\t\t\t;;\n");
}

static void bash_command(const struct command *command, const struct opt *opts, void *context)
{
	const struct script *s = context;

	strbuf_appendf(s->out, "\t%s)\n\t\tcase $prev in\n", command->name);
	for_each_option(s, opts, bash_value);
	strbuf_puts(s->out, "\t\tesac\n\t\toptions='");
	for_each_option(s, opts, bash_names);
	strbuf_puts(s->out, "'\n\t\toperands='");
	if (!append_operands(s, command))
		strbuf_puts(s->out, "FILES");
	strbuf_puts(s->out, "'\n\t\t;;\n");
}

/* COMP_WORDBREAKS holds "=", so --name=value arrives as three words. */
static const char bash_head[] =
	"# bash completion for pyebpf\n"
	"_pyebpf() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options operands\n"
	"\tCOMPREPLY=()\n"
	"\tif [[ $cur == = ]]; then\n"
	"\t\tcur=\n"
	"\telif [[ $prev == = ]]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\tfi\n"
	"\tif ((COMP_CWORD == 1)); then\n"
	"\t\tCOMPREPLY=($(compgen -W '";

static const char bash_tail[] = "\t*)\n\t\treturn\n\t\t;;\n\tesac\n"
				"\tif [[ $cur == -* ]]; then\n"
				"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
				"\telif [[ $operands == FILES ]]; then\n"
				"\t\tcompopt -o filenames 2>/dev/null\n"
				"\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
				"\telse\n"
				"\t\tCOMPREPLY=($(compgen -W \"$operands\" -- \"$cur\"))\n"
				"\tfi\n"
				"}\n"
				"complete -F _pyebpf pyebpf\n";

static void bash(const struct script *s)
{
	strbuf_puts(s->out, bash_head);
	append_command_names(s);
	strbuf_puts(s->out, " --help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n"
			    "\tcase ${COMP_WORDS[1]} in\n");
	for (const struct command *const *c = s->commands; *c; c++)
		cmd_describe(*c, bash_command, (void *)s);
	strbuf_puts(s->out, bash_tail);
}

/* zsh */

/* Help text inside [...] of an _arguments spec, which stands in '...'. */
static void zsh_help(struct strbuf *out, const char *text)
{
	_cleanup_(strbuf_releasep) struct strbuf escaped = STRBUF_INIT;

	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			strbuf_putc(&escaped, '\\');
		strbuf_putc(&escaped, *text);
	}
	cmd_put_quoted(out, strbuf_str(&escaped));
}

/* One spec a name: '*--freq=[help]:HZ:action'. */
static void zsh_spec(const struct script *s, const char *name, bool is_long,
		     const struct opt *meant)
{
	strbuf_appendf(s->out, "\t\t\t'*%s%s[", name,
		       !meant->arg   ? ""
		       : meant->bare ? "=-"
		       : is_long     ? "="
				     : "+");
	zsh_help(s->out, meant->help);
	strbuf_putc(s->out, ']');
	if (meant->arg) {
		strbuf_appendf(s->out, "%s%s:", meant->bare ? "::" : ":", meant->arg);
		switch (value_kind(meant)) {
		case VALUE_WORDS:
			strbuf_putc(s->out, '(');
			append_choices(s->out, meant);
			strbuf_putc(s->out, ')');
			break;
		case VALUE_FILE:
			strbuf_puts(s->out, "_files");
			break;
		case VALUE_DIR:
			strbuf_puts(s->out, "_files -/");
			break;
		case VALUE_NONE:
			break;
		}
	}
	strbuf_puts(s->out, "' \\\n");
}

static void zsh_option(const struct script *s, const struct opt *row, const struct opt *meant)
{
	char name[64];

	if (row->key) {
		snprintf(name, sizeof(name), "-%c", row->key);
		zsh_spec(s, name, false, meant);
	}
	if (row->name) {
		snprintf(name, sizeof(name), "--%s", row->name);
		zsh_spec(s, name, true, meant);
	}
}

static void zsh_command(const struct command *command, const struct opt *opts, void *context)
{
	const struct script *s = context;

	strbuf_appendf(s->out, "\t%s)\n\t\t_arguments \\\n", command->name);
	for_each_option(s, opts, zsh_option);
	strbuf_puts(s->out, "\t\t\t'*:operand:");
	if (!command->operands) {
		strbuf_puts(s->out, "_files");
	} else {
		strbuf_putc(s->out, '(');
		append_operands(s, command);
		strbuf_putc(s->out, ')');
	}
	strbuf_puts(s->out, "'\n\t\t;;\n");
}

static void zsh(const struct script *s)
{
	strbuf_puts(s->out, "#compdef pyebpf\n"
			    "_pyebpf() {\n"
			    "\tif ((CURRENT == 2)); then\n"
			    "\t\tlocal -a commands=(\n");
	for (const struct command *const *c = s->commands; *c; c++) {
		strbuf_appendf(s->out, "\t\t\t'%s:", (*c)->name);
		cmd_put_quoted(s->out, (*c)->summary);
		strbuf_puts(s->out, "'\n");
	}
	strbuf_puts(s->out, "\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
			    "\tlocal command=$words[2]\n"
			    "\twords=(\"${(@)words[2,-1]}\")\n\t((CURRENT--))\n"
			    "\tcase $command in\n");
	for (const struct command *const *c = s->commands; *c; c++)
		cmd_describe(*c, zsh_command, (void *)s);
	/* autoloaded from fpath the file is the function's body; sourced it registers itself */
	strbuf_puts(s->out, "\tesac\n}\n"
			    "if [[ $funcstack[1] == _pyebpf ]]; then\n"
			    "\t_pyebpf \"$@\"\n"
			    "else\n"
			    "\tcompdef _pyebpf pyebpf\n"
			    "fi\n");
}

/* fish */

static void append_fish_quoted(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			strbuf_putc(out, '\\');
		strbuf_putc(out, *text);
	}
}

static void fish_option(const struct script *s, const struct opt *row, const struct opt *meant)
{
	strbuf_appendf(s->out, "complete -c pyebpf -n '__fish_seen_subcommand_from %s'",
		       s->command->name);
	if (row->key)
		strbuf_appendf(s->out, " -s %c", row->key);
	if (row->name)
		strbuf_appendf(s->out, " -l %s", row->name);
	strbuf_puts(s->out, " -d '");
	append_fish_quoted(s->out, meant->help);
	strbuf_putc(s->out, '\'');
	if (meant->arg) {
		switch (value_kind(meant)) {
		case VALUE_WORDS:
			strbuf_puts(s->out, meant->bare ? " -f -a '" : " -x -a '");
			append_choices(s->out, meant);
			strbuf_putc(s->out, '\'');
			break;
		case VALUE_FILE:
			strbuf_puts(s->out, " -r -F");
			break;
		case VALUE_DIR:
			strbuf_puts(s->out, " -x -a '(__fish_complete_directories)'");
			break;
		case VALUE_NONE:
			strbuf_puts(s->out, " -x");
			break;
		}
	}
	strbuf_putc(s->out, '\n');
}

static void fish_command(const struct command *command, const struct opt *opts, void *context)
{
	struct script s = *(const struct script *)context;

	s.command = command;
	strbuf_appendf(s.out, "complete -c pyebpf -f -n __fish_use_subcommand -a %s -d '",
		       command->name);
	append_fish_quoted(s.out, command->summary);
	strbuf_puts(s.out, "'\n");
	if (command->operands) {
		strbuf_appendf(s.out,
			       "complete -c pyebpf -f -n '__fish_seen_subcommand_from %s' -a '",
			       command->name);
		append_operands(&s, command);
		strbuf_puts(s.out, "'\n");
	}
	for_each_option(&s, opts, fish_option);
}

static void fish(const struct script *s)
{
	strbuf_puts(s->out, "# fish completion for pyebpf\n");
	for (const struct command *const *c = s->commands; *c; c++)
		cmd_describe(*c, fish_command, (void *)s);
}

static int completions_run(struct call *call)
{
	static const struct {
		const char *name;
		void (*write)(const struct script *s);
	} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
	static const struct opt opts[] = { OPT_END };
	_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;
	struct script script = { .out = &out, .commands = call->commands };
	int status, r;

	if (!cmd_options(call, opts, &status))
		return status;
	if (call->operands.len != 1)
		return cmd_usage(call, "needs one shell: bash, zsh or fish");

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (!strcmp(shells[i].name, call->operands.items[0]))
			shells[i].write(&script);
	if (!out.len && !strbuf_error(&out))
		return cmd_usage(call, "unknown shell '%s': choose bash, zsh or fish",
				 call->operands.items[0]);
	r = strbuf_error(&out);
	if (!r)
		r = file_write_whole("-", out.bytes, out.len);
	return r < 0 ? cmd_fail(call, r) : EXIT_OK;
}

const struct command command_completions = {
	.name = "completions",
	.summary = "print completions for a shell",
	.usage = "bash|zsh|fish",
	.examples =
		"source <(pyebpf completions bash)\tin this shell\n"
		"pyebpf completions fish > ~/.config/fish/completions/pyebpf.fish\tin every fish",
	.operands = "bash zsh fish",
	.run = completions_run,
};
