/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/files.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
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

/* glob() orders by name, which is by time. */
static int remove_oldest(const struct config_output *c)
{
	_cleanup_(globfree) glob_t found = { 0 };
	_cleanup_(freep) char *pattern = NULL;

	if (!c->keep)
		return 0;
	if (asprintf(&pattern, "%s/pyebpf-*Z.pyebpf", c->directory) < 0) {
		pattern = NULL;
		return -ENOMEM;
	}
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i + c->keep < found.gl_pathc; i++)
		unlink(found.gl_pathv[i]);
	return 0;
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
	return remove_oldest(config);
}
