/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "store/writer.h"

#define NAMES_MAX 100000 /* looked at in a directory that others may fill */
#define SECONDS_TRIED 60 /* for a name that is not taken */

#define WINDOW_NAME_BYTES sizeof("pyebpf-20260101T000000Z.pyebpf")

struct window_name {
	char text[WINDOW_NAME_BYTES];
};

struct window_names {
	VEC(struct window_name) list;
};

static void window_names_release(struct window_names *names)
{
	vec_release(&names->list);
}

DEFINE_CLEANUP(DIR *, closedir)

static void name_window(time_t start, char name[WINDOW_NAME_BYTES])
{
	struct tm utc;

	gmtime_r(&start, &utc);
	strftime(name, WINDOW_NAME_BYTES, "pyebpf-%Y%m%dT%H%M%SZ.pyebpf", &utc);
}

/* A second later where the name is taken. */
static int choose_path(const struct config_output *c, const struct profile *p, char **path)
{
	const time_t start = (time_t)(profile_recording(p)->start_realtime_ns / NS_PER_SECOND);
	struct stat st;
	char name[WINDOW_NAME_BYTES];

	for (time_t at = start; at < start + SECONDS_TRIED; at++) {
		name_window(at, name);
		if (asprintf(path, "%s/%s", c->directory, name) < 0) {
			*path = NULL;
			return -ENOMEM;
		}
		if (lstat(*path, &st) < 0)
			return 0;
		free(*path);
		*path = NULL;
	}
	name_window(start, name);
	return err_set(-EEXIST, "%s: has files from %s on, for each second of a minute",
		       c->directory, name);
}

/* Others may have files there, too. */
static bool is_own_window(int directory, const char *name)
{
	struct stat st;

	return strlen(name) == WINDOW_NAME_BYTES - 1 && !fnmatch("pyebpf-*Z.pyebpf", name, 0) &&
	       !fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       file_is_own(&st);
}

/* Returns how many names of the directory were looked at, or -ENOMEM. */
static int find_windows(DIR *dir, struct window_names *out)
{
	const struct dirent *entry;
	struct window_name name;
	int seen = 0;

	while (seen < NAMES_MAX && (entry = readdir(dir))) {
		seen++;
		if (!is_own_window(dirfd(dir), entry->d_name))
			continue;
		memcpy(name.text, entry->d_name, sizeof(name.text));
		if (vec_push(&out->list, name) < 0)
			return -ENOMEM;
	}
	return seen;
}

/* Names are by time. */
static int compare_names(const void *a, const void *b)
{
	const struct window_name *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static int remove_oldest(const struct config_output *c)
{
	_cleanup_(window_names_release) struct window_names found = { 0 };
	_cleanup_(closedirp) DIR *dir = c->keep ? opendir(c->directory) : NULL;
	int seen = dir ? find_windows(dir, &found) : 0;

	if (seen < 0)
		return seen;
	if (seen == NAMES_MAX)
		log_warning("%s: only %d of its files are looked at: older windows may stay",
			    c->directory, NAMES_MAX);
	if (found.list.len)
		qsort(found.list.items, found.list.len, sizeof(struct window_name), compare_names);
	for (size_t i = 0; i + c->keep < found.list.len; i++)
		unlinkat(dirfd(dir), found.list.items[i].text, 0);
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
