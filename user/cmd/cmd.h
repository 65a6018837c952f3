/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "cmd/opt.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_RUNTIME = 1,
	EXIT_USAGE = 2,
	EXIT_NOTHING = 3, /* no Python process, or no samples */
	EXIT_DENIED = 4,  /* permission or kernel support missing */
	EXIT_REGRESSION = 5,
	EXIT_INCONCLUSIVE = 6,
};

struct call;

/* One subcommand: one of these in its .c file, one line in main.c. */
struct command {
	const char *name;
	const char *summary; /* one line, lower case, no full stop */

	/* What follows "pyebpf NAME", one line per form: "-p PID [OPTION]...\n-a [OPTION]..." */
	const char *usage;

	const char *about;    /* paragraphs for --help and the man page, or NULL */
	const char *examples; /* lines "COMMAND LINE\twhat it does", or NULL */

	/* What operands complete to: NULL files, "" nothing, "*" commands, else these words. */
	const char *operands;

	/*
	 * Calls cmd_options() before anything else, with its table on its own stack, and returns
	 * at once if that says so. Returns the exit code.
	 */
	int (*run)(struct call *call);
};

/* One use of a command. */
struct call {
	const struct command *command;
	const struct command *const *commands; /* all of them, NULL last */
	int argc;
	char **argv;              /* argv[0] is the command's name */
	struct operands operands; /* set by cmd_options() */

	/* For generators: if set, cmd_options() hands the table over and the command returns. */
	void (*describe)(const struct command *command, const struct opt *opts, void *context);
	void *context;
};

/* Appends what stands inside '...' for a POSIX shell and zsh. 0 or -ENOMEM. */
int cmd_put_quoted(struct strbuf *out, const char *text);

/* Appends a word of a command line: as it is if a shell takes it as that, else quoted. The same. */
int cmd_put_word(struct strbuf *out, const char *word);

/*
 * Reads the command line by the table. True: go on, options and call->operands are set. False:
 * return *status at once; help or an error was printed, or the table was only asked for.
 */
bool cmd_options(struct call *call, const struct opt *opts, int *status);

/* Runs describe(command, its table, context). */
void cmd_describe(const struct command *command,
		  void (*describe)(const struct command *, const struct opt *, void *),
		  void *context);

/*
 * Says what failed, "pyebpf record: MESSAGE OF r", and returns EXIT_RUNTIME. Silent EXIT_OK for
 * -EPIPE: who read our output has left. Commands with a better code return that instead.
 *
 * Where a limit was reached, of descriptors, memory or a disk, a second line says what to do about
 * it.
 */
int cmd_fail(const struct call *call, int r);
bool cmd_is_limit(int r);

/* Second line of an error: "try: TEXT". */
void cmd_try(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "pyebpf record: TEXT", then where the help is. Returns EXIT_USAGE. */
int cmd_usage(const struct call *call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The --help text, at most 80 columns wide. 0 or -ENOMEM. */
int cmd_help(const struct command *command, const struct opt *opts, struct strbuf *out);

/* Options as "-F, --freq HZ"; used by help and man page. */
int cmd_option_label(const struct opt *opt, struct strbuf *out);

/*
 * Looks argv[1] up and runs it; also --help and --version. SIGPIPE is ignored from here on:
 * whoever starts other programs sets it back in the child. Returns the exit code.
 */
int cmd_main(const struct command *const *commands, int argc, char **argv);

/* Those who are not in main.c's table are not reachable. */
extern const struct command command_agent;
extern const struct command command_record;
extern const struct command command_dump;
extern const struct command command_top;
extern const struct command command_export;
extern const struct command command_import;
extern const struct command command_cat;
extern const struct command command_report;
extern const struct command command_diff;
extern const struct command command_doctor;
extern const struct command command_guide;
extern const struct command command_completions;
extern const struct command command_man;

#endif
