/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_LAUNCH_H
#define CMD_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

/* A command of the user's, held before its exec until the recorder is ready for it. */
struct launch {
	pid_t pid;    /* 0: none */
	int gate;     /* a byte written here lets it go */
	int exec_err; /* errno of a failed exec comes back here; end of file: it runs */
	int status;   /* of waitpid(), once has_ended */
	bool has_ended;
	bool leaves_terminal; /* its standard streams that are a terminal become /dev/null */
};

#define LAUNCH_INIT                                  \
	{                                            \
		.pid = 0, .gate = -1, .exec_err = -1 \
	}

/*
 * argv as for execvp(), NULL at the end. -ENOENT, -EACCES with a message for a command that the
 * PATH does not lead to, before anything is started.
 */
int launch_prepare(struct launch *l, char **argv);

/* Lets it go. -ENOENT, -EACCES, ... with a message if it cannot be run. */
int launch_go(struct launch *l, const char *name);

/* Reaps it if it has ended (should_wait: waits for that). */
int launch_reap(struct launch *l, bool should_wait);

/* What a shell would report: the exit status, or 128 + the signal that ended it. */
int launch_exit_code(const struct launch *l);

/* A command that was never let go ends here; one that runs is left alone. */
void launch_release(struct launch *l);

#endif
