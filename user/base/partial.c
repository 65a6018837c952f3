/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/partial.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PARTIALS_MAX 8 /* more are left behind */
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

/* A signal handler has no other place to look at. */
static struct {
	char name[PATH_MAX];
	volatile sig_atomic_t is_there;
} partials[PARTIALS_MAX];

/* readdir() is not for signal handlers. */
static void remove_files_in(int folder)
{
	_Alignas(struct dirent64) char room[8192];
	long len;

	while ((len = syscall(SYS_getdents64, folder, room, sizeof(room))) > 0) {
		for (long at = 0; at < len;) {
			const struct dirent64 *e = (const struct dirent64 *)(room + at);

			unlinkat(folder, e->d_name, 0);
			at += e->d_reclen;
		}
	}
}

static void on_signal(int number)
{
	for (size_t i = 0; i < PARTIALS_MAX; i++) {
		int folder;

		if (!partials[i].is_there || !unlink(partials[i].name))
			continue;
		folder = open(partials[i].name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (folder < 0)
			continue;
		remove_files_in(folder);
		rmdir(partials[i].name);
	}
	raise(number); /* as it was before us */
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESETHAND | SA_NODEFER };
	struct sigaction before;

	for (size_t i = 0; i < SIGNALS; i++)
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
}

void partial_begin(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < SIGNALS; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, before);
}

void partial_made(const char *name, const sigset_t *before)
{
	size_t i = 0, size = name ? strlen(name) + 1 : 0;

	while (name && i < PARTIALS_MAX && partials[i].is_there)
		i++;
	if (name && i < PARTIALS_MAX && size <= sizeof(partials[i].name)) {
		memcpy(partials[i].name, name, size);
		partials[i].is_there = 1;
		handle_signals();
	}
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

void partial_forget(const char *name)
{
	for (size_t i = 0; i < PARTIALS_MAX; i++)
		if (partials[i].is_there && !strcmp(partials[i].name, name))
			partials[i].is_there = 0;
}
