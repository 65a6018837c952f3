/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/process_limit.h"
#include "target/command.h"

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++)
		if (isatty(fd))
			dup2(null, fd);
}

/* In the child: the signal state a program expects, then wait, then exec. Never returns. */
static void run_child(const struct launch *l, int gate, int exec_err, char **argv)
{
	sigset_t none;
	char go;
	int e;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (l->leaves_terminal)
		leave_terminal();
	if (read(gate, &go, 1) != 1)
		_exit(127); /* the recorder gave up */
	execvp(argv[0], argv);
	e = errno;
	if (write(exec_err, &e, sizeof(e)) != sizeof(e))
		_exit(126);
	_exit(127);
}

/* It may still fail later, which launch_go() tells. */
static int check_command(const char *name)
{
	char path[PATH_MAX];
	int r = command_find(name, path);

	return r < 0 ? err_set(r, "%s: %s", name, r == -ENOENT ? "command not found" : strerror(-r))
		     : 0;
}

int launch_prepare(struct launch *l, char **argv)
{
	int gate[2], exec_err[2], r;

	r = check_command(argv[0]);
	if (r < 0)
		return r;
	if (pipe2(gate, O_CLOEXEC) < 0)
		return err_set(-errno, "pipe: %s", strerror(errno));
	if (pipe2(exec_err, O_CLOEXEC) < 0) {
		close(gate[0]);
		close(gate[1]);
		return err_set(-errno, "pipe: %s", strerror(errno));
	}
	l->pid = fork();
	if (!l->pid) {
		close(gate[1]);
		run_child(l, gate[0], exec_err[1], argv);
	}
	close(gate[0]);
	close(exec_err[1]);
	l->gate = gate[1];
	l->exec_err = exec_err[0];
	if (l->pid < 0) {
		l->pid = 0;
		return process_limit_say(errno == EAGAIN ? -EUSERS : -ENOMEM, argv[0]);
	}
	return 0;
}

int launch_go(struct launch *l, const char *name)
{
	int e = 0;

	if (write(l->gate, "", 1) != 1)
		return err_set(-EPIPE, "%s: killed before it could start", name);
	if (read(l->exec_err, &e, sizeof(e)) == sizeof(e)) {
		launch_reap(l, true);
		return err_set(-e, "%s: %s", name, strerror(e));
	}
	return 0;
}

int launch_reap(struct launch *l, bool should_wait)
{
	pid_t r;

	if (!l->pid || l->has_ended)
		return 0;
	do
		r = waitpid(l->pid, &l->status, should_wait ? 0 : WNOHANG);
	while (r < 0 && errno == EINTR);
	l->has_ended = r == l->pid;
	return r < 0 ? -errno : 0;
}

int launch_exit_code(const struct launch *l)
{
	if (WIFSIGNALED(l->status))
		return 128 + WTERMSIG(l->status);
	return WEXITSTATUS(l->status);
}

void launch_release(struct launch *l)
{
	closep(&l->gate);
	closep(&l->exec_err);
	launch_reap(l, false);
}
