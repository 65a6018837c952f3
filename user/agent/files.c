/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/files.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "store/writer.h"

/* A second later where the name is taken. */
static int choose_path(const struct config_output *c, const struct profile *p, char **path)
{
	time_t start = (time_t)(profile_recording(p)->start_realtime_ns / NS_PER_SECOND);
	char stamp[32];
	struct tm utc;

	for (;; start++) {
		gmtime_r(&start, &utc);
		strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
		if (asprintf(path, "%s/pyebpf-%s.pyebpf", c->directory, stamp) < 0) {
			*path = NULL;
			return -ENOMEM;
		}
		if (access(*path, F_OK) < 0)
			return 0;
		free(*path);
	}
}

static int is_window(const struct dirent *entry)
{
	return !fnmatch("pyebpf-*Z.pyebpf", entry->d_name, 0);
}

/* Others may have files there, too. */
static bool is_own(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISREG(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == file_owner());
}

/* They are ordered by name, which is by time. */
static void remove_oldest(const struct config_output *c)
{
	struct dirent **found;
	int count = c->keep ? scandir(c->directory, &found, is_window, alphasort) : -1;
	uint64_t kept = 0;

	if (count < 0)
		return;
	while (count--) {
		_cleanup_(freep) char *path = NULL;

		if (asprintf(&path, "%s/%s", c->directory, found[count]->d_name) < 0)
			path = NULL;
		else if (is_own(path) && kept++ >= c->keep)
			unlink(path);
		free(found[count]);
	}
	free(found);
}

int files_write(const struct config_output *config, const struct profile *p)
{
	_cleanup_(writer_freep) struct writer *w = NULL;
	_cleanup_(freep) char *path = NULL;
	int r;

	if ((r = file_make_directory(config->directory, 0755)) < 0 ||
	    (r = choose_path(config, p, &path)) < 0 || (r = writer_open(path, p, &w)) < 0 ||
	    (r = writer_finish(w, p)) < 0)
		return r;
	remove_oldest(config);
	return 0;
}
