/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/py_spy.h"

#include <string.h>

/* clang-format off */
static const struct {
	char key;
	const char *name, *here;
} options[] = {
	{ 's', "subprocesses", "not needed: child processes are recorded unless you pass --no-children" },
	{ 't', "threads", "not needed: recordings keep threads apart; use pyebpf report --by thread" },
	{ 'g', "gil", "use --mode gil; to see who waits for the GIL, use --mode wall" },
	{ 'i', "idle", "use --mode wall: records CPU time and what threads wait for" },
	{ 0, "nonblocking", "leave it out: the target is never paused" },
	{ 'f', "format", "set the format with the suffix: -o profile.html (flame graph), -o profile.collapsed (raw)" },
	{ 0, "function", "leave it out: pyebpf report shows functions, pyebpf report --lines lines" },
	{ 0, "nolineno", "leave it out: pyebpf export --no-lines writes functions" },
	{ 0, "full-filenames", "leave it out: recordings have the full names of files" },
};

static const struct {
	const char *name, *here, *try;
} commands[] = {
	{ "help", "there is no help command", "pyebpf --help, pyebpf record --help" },
};
/* clang-format on */

const char *py_spy_option(const char *command, const char *name, size_t len, char key)
{
	if (strcmp(command, "record"))
		return NULL;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (name ? strlen(options[i].name) == len && !memcmp(options[i].name, name, len)
			 : options[i].key == key)
			return options[i].here;
	return NULL;
}

const char *py_spy_command(const char *name, const char **try)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (!strcmp(commands[i].name, name)) {
			*try = commands[i].try;
			return commands[i].here;
		}
	}
	return NULL;
}
