/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/cmd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/process_limit.h"
#include "base/units.h"
#include "cmd/memory_limit.h"
#include "cmd/py_spy.h"

/* Limits of the process or of a disk, and what to do about each. */
static const struct {
	int error;
	const char *advice;
} limits[] = {
	{ EMFILE, "ulimit -n 1024, then the same again" },
	{ ENFILE, "sysctl fs.file-max, which this machine has reached" },
	{ ENOSPC, "df -h, then -o FILE on a file system with more space" },
	{ EDQUOT, "quota, then -o FILE on a file system with more space" },
	{ EFBIG, "ulimit -f unlimited, then the same again" },
};

static const char *advice_on(int r)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (r == -limits[i].error)
			return limits[i].advice;
	return NULL;
}

bool cmd_is_limit(int r)
{
	return r == -ENOMEM || advice_on(r);
}

/* Tells the limit that an allocation met. Every file that takes much memory is refused by one. */
static void add_memory_limit(int r)
{
	uint64_t bytes;
	enum memory_limit_kind kind = memory_limit(&bytes);
	char text[ERR_BYTES];

	snprintf(text, sizeof(text), "%s", err_message(r));
	if (kind == MEMORY_LIMIT_DATA)
		err_set(r, "%s: the limit is %s; --max-memory SIZE sets another", text,
			units_bytes(bytes).s);
	else if (kind == MEMORY_LIMIT_ADDRESS_SPACE)
		err_set(r, "%s: the address space is limited to %s", text, units_bytes(bytes).s);
}

static void try_processes(enum process_limit_kind kind)
{
	if (kind == PROCESS_LIMIT_CGROUP)
		cmd_try("a higher limit: --pids-limit of docker and podman, TasksMax= of systemd");
	else if (kind == PROCESS_LIMIT_USER)
		cmd_try("ulimit -u unlimited, then the same again");
	else
		cmd_try("sysctl kernel.threads-max kernel.pid_max, which this machine has reached");
}

static void try_memory(void)
{
	uint64_t bytes;
	enum memory_limit_kind kind = memory_limit(&bytes);

	if (kind == MEMORY_LIMIT_ADDRESS_SPACE)
		cmd_try("ulimit -v unlimited, then the same again");
	else if (kind == MEMORY_LIMIT_NONE)
		cmd_try("free -h, for what uses the memory");
}

/* Memory and processes run out as -ENOMEM alike. */
static void say_what_ran_out(const char *prefix, int r)
{
	enum process_limit_kind kind = process_limit_met();

	if (kind == PROCESS_LIMIT_NONE)
		add_memory_limit(r);
	log_line(prefix, err_message(r));
	if (kind == PROCESS_LIMIT_NONE)
		try_memory();
	else
		try_processes(kind);
}

int cmd_fail(const struct call *call, int r)
{
	char prefix[64];

	if (r == -EPIPE)
		return EXIT_OK;
	snprintf(prefix, sizeof(prefix), "pyebpf %s: ", call->command->name);
	if (r == -ENOMEM) {
		say_what_ran_out(prefix, r);
		return EXIT_RUNTIME;
	}
	log_line(prefix, err_message(r));
	if (cmd_is_limit(r))
		cmd_try("%s", advice_on(r));
	return EXIT_RUNTIME;
}

int cmd_put_quoted(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			strbuf_puts(out, "'\\''");
		else
			strbuf_putc(out, *text);
	}
	return strbuf_error(out);
}

int cmd_put_word(struct strbuf *out, const char *word)
{
	bool is_plain = *word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789_-+=.,/:@%") == strlen(word);

	if (is_plain)
		return strbuf_puts(out, word);
	strbuf_putc(out, '\'');
	cmd_put_quoted(out, word);
	return strbuf_putc(out, '\'');
}

void cmd_try(const char *fmt, ...)
{
	char text[ERR_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_line("try: ", text);
}

int cmd_usage(const struct call *call, const char *fmt, ...)
{
	char prefix[64], text[ERR_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(prefix, sizeof(prefix), "pyebpf %s: ", call->command->name);
	log_line(prefix, text);
	cmd_try("pyebpf %s --help", call->command->name);
	return EXIT_USAGE;
}

bool cmd_options(struct call *call, const struct opt *opts, int *status)
{
	_cleanup_(strbuf_releasep) struct strbuf help = STRBUF_INIT;
	int r;

	*status = EXIT_OK;
	if (call->describe) {
		call->describe(call->command, opts, call->context);
		return false;
	}
	r = opt_parse(opts, call->argc, call->argv, &call->operands);
	if (r > 0)
		return true;
	if (r == 0) {
		r = cmd_help(call->command, opts, &help);
		if (r < 0)
			*status = cmd_fail(call, r);
		else
			fputs(strbuf_str(&help), stdout);
		return false;
	}
	*status = r == -ENOMEM ? cmd_fail(call, r) : cmd_usage(call, "%s", err_message(r));
	return false;
}

void cmd_describe(const struct command *command,
		  void (*describe)(const struct command *, const struct opt *, void *),
		  void *context)
{
	struct call call = { .command = command, .describe = describe, .context = context };

	command->run(&call);
}

static void print_overview(const struct command *const *commands, FILE *out)
{
	fprintf(out, "Usage: pyebpf COMMAND [OPTION]... [OPERAND]...\n\n"
		     "Profiles Python processes from inside the kernel, without stopping them.\n\n"
		     "Commands:\n");
	for (; *commands; commands++)
		fprintf(out, "  %-12s %s\n", (*commands)->name, (*commands)->summary);
	fprintf(out, "\npyebpf COMMAND --help explains one. pyebpf --version shows the version.\n");
}

static int unknown_command(const struct command *const *commands, const char *typed)
{
	VEC(const char *) names = VEC_INIT;
	const char *near = NULL, *next = NULL, *here = py_spy_command(typed, &next);
	char text[160];
	int r = 0;

	if (here) {
		snprintf(text, sizeof(text), "unknown command %s: %s", typed, here);
		log_line("pyebpf: ", text);
		cmd_try("%s", next);
		return EXIT_USAGE;
	}
	for (; *commands && !r; commands++)
		r = vec_push(&names, (*commands)->name);
	if (!r)
		r = vec_push(&names, NULL);
	if (!r)
		near = opt_nearest(typed, names.items);
	vec_release(&names);

	snprintf(text, sizeof(text), "unknown %s %.64s%s%s%s",
		 typed[0] == '-' ? "option" : "command", typed, near ? "; did you mean " : "",
		 near ? near : "", near ? "?" : "");
	log_line("pyebpf: ", text);
	cmd_try("pyebpf --help");
	return EXIT_USAGE;
}

static int dispatch(const struct command *const *commands, int argc, char **argv)
{
	if (argc < 2) {
		print_overview(commands, stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		print_overview(commands, stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version")) {
		printf("pyebpf %s\n", PYEBPF_VERSION);
		return EXIT_OK;
	}
	for (const struct command *const *c = commands; *c; c++) {
		struct call call = {
			.command = *c, .commands = commands, .argc = argc - 1, .argv = argv + 1
		};

		if (!strcmp((*c)->name, argv[1]))
			return (*c)->run(&call);
	}
	return unknown_command(commands, argv[1]);
}

/* Errors of earlier writes left no errno: ask the pipe itself. */
static bool stdout_reader_left(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int cmd_main(const struct command *const *commands, int argc, char **argv)
{
	int status;

	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an errno, and no error */
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is one, too: ulimit -f */
	status = dispatch(commands, argc, argv);
	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && !stdout_reader_left()) {
		log_line("pyebpf: standard output: ", errno ? strerror(errno) : "write failed");
		if (status == EXIT_OK)
			status = EXIT_RUNTIME;
	}
	return status;
}
