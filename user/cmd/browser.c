/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/memory_limit.h"
#include "export/export.h"
#include "target/proc.h"

extern char **environ;

/* Detached from our terminal: it may outlive us, and has nothing to say to our user. */
static int spawn(char *const argv[])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t pid;
	int r;

	if (posix_spawn_file_actions_init(&actions) || posix_spawnattr_init(&attributes))
		return -1;
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	for (int fd = 0; fd <= 2; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	r = posix_spawnp(&pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

void browser_open(const char *path)
{
	const char *uid = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	_cleanup_(freep) char *real = realpath(path, NULL);
	_cleanup_(freep) char *user = NULL;
	char *plain[] = { (char *)"xdg-open", real, NULL };
	char *as_user[] = { (char *)"sudo",     (char *)"-u", NULL, (char *)"--",
			    (char *)"xdg-open", real,         NULL };

	if (uid && asprintf(&user, "#%s", uid) > 0)
		as_user[2] = user;
	memory_limit_lift();
	if (!real || spawn(user ? as_user : plain))
		log_warning("cannot start a browser (xdg-open): open file://%s yourself",
			    real ? real : path);
}

/* --- from another machine --------------------------------------------------------------------- */

static bool has_environment(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return true;
	}
	return false;
}

/* sudo leaves no variable of ssh's: then its server is among those that started us. */
static bool is_child_of_ssh(void)
{
	struct proc_stat st;
	pid_t pid = getppid();

	while (pid > 1 && !proc_stat(pid, &st)) {
		if (!strncmp(st.comm, "sshd", strlen("sshd")) || !strcmp(st.comm, "dropbear"))
			return true;
		pid = st.ppid;
	}
	err_clear();
	return false;
}

static bool is_elsewhere(void)
{
	static const char *const windows[] = { "DISPLAY", "WAYLAND_DISPLAY", NULL };
	static const char *const ssh[] = { "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", NULL };

	return isatty(STDERR_FILENO) && !has_environment(windows) &&
	       (has_environment(ssh) || is_child_of_ssh());
}

/* What a browser opens by itself, or on the page of its viewer. */
static bool is_for_browsers(const struct exporter *e)
{
	return e == &exporter_html || e == &exporter_svg || e == &exporter_speedscope ||
	       e == &exporter_gecko;
}

/* What to type there: two shells read the name of the file, that one and ours. */
static int put_remote_command(const struct exporter *e, const char *path, struct strbuf *out)
{
	_cleanup_(strbuf_releasep) struct strbuf command = STRBUF_INIT;
	_cleanup_(freep) char *real = realpath(path, NULL);

	strbuf_puts(&command, e ? "cat " : "pyebpf export -f html -o - ");
	cmd_put_word(&command, real ? real : path);
	return strbuf_error(&command) ? -ENOMEM : cmd_put_word(out, strbuf_str(&command));
}

/* app.html */
static int put_local_file(const struct exporter *e, const char *path, struct strbuf *out)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = e ? NULL : strrchr(base, '.');

	strbuf_append(&name, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
	strbuf_puts(&name, e ? "" : ".html");
	return strbuf_error(&name) ? -ENOMEM : cmd_put_word(out, strbuf_str(&name));
}

void browser_tell_how(const char *path)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	const struct exporter *e = exporter_for_path(path);
	char host[256] = "";

	if (log_level() < LOG_LEVEL_WARNING || !strcmp(path, "-") || (e && !is_for_browsers(e)) ||
	    !is_elsewhere() || gethostname(host, sizeof(host) - 1) < 0)
		return;
	strbuf_appendf(&text, "ssh %s ", host);
	put_remote_command(e, path, &text);
	strbuf_puts(&text, " > ");
	put_local_file(e, path, &text);
	if (!strbuf_error(&text))
		log_line("to view it on your own machine: ", strbuf_str(&text));
}
