/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

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
	if (!real || spawn(user ? as_user : plain))
		log_warning("no browser to open (xdg-open): open file://%s by hand",
			    real ? real : path);
}
