/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/partial.h"

struct folder {
	char *path; /* without slashes at its end */
	char *tmp;  /* NULL: nothing is to be removed */
	int fd;     /* of the folder at tmp */
	const char *mark;
	bool (*is_own)(const char *name);
	FILE *file;    /* NULL: none is open */
	int file_fd;   /* its own */
	int error;     /* of the first write to it that failed: stdio forgets errno */
	uint64_t left; /* bytes that may be written */
};

static int fail(const struct folder *f, int error)
{
	return err_set(error, "%s: %s", f->path, strerror(-error));
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/*
 * Calls act with each name, until one is not 0. That, or a negative errno. Names are removed by
 * this, so a symbolic link at path is not followed.
 */
static int for_each_name(const char *path, int (*act)(const struct folder *f, int fd, const char *),
			 const struct folder *f)
{
	int r = 0, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		r = -errno;
		closep(&fd);
		return r;
	}
	while (!r && (e = readdir(dir)))
		if (!is_dot(e->d_name))
			r = act(f, dirfd(dir), e->d_name);
	closedir(dir);
	return r;
}

static int find_foreign(const struct folder *f, int fd, const char *name)
{
	bool is_ours = f->is_own(name) || !strcmp(name, f->mark);
	struct stat st;

	if (is_ours && !faccessat(fd, f->mark, F_OK, AT_SYMLINK_NOFOLLOW) &&
	    !fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
		return 0;
	return err_set(-EEXIST,
		       "%s already exists and contains %s, which pyebpf did not write: choose "
		       "another directory",
		       f->path, name);
}

/* What is at the target may go: nothing, an empty folder, or one that one of us has written. */
static int check_target(const struct folder *f)
{
	struct stat st;
	int r;

	if (lstat(f->path, &st) < 0)
		return errno == ENOENT ? 0 : fail(f, -errno);
	if (!S_ISDIR(st.st_mode))
		return err_set(-EEXIST, "%s already exists and is not a directory", f->path);
	r = file_check_own(f->path, &st);
	return r < 0 ? r : for_each_name(f->path, find_foreign, f);
}

static int put_mark(struct folder *f)
{
	FILE *file;
	int r = folder_begin_file(f, f->mark, &file);

	return r < 0 ? r : folder_end_file(f);
}

static int make_partial(struct folder *f)
{
	sigset_t signals;
	uint32_t random;
	int error;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_set(-EIO, "no random bytes from the kernel");
	if (asprintf(&f->tmp, "%s.%08x.partial", f->path, random) < 0) {
		f->tmp = NULL;
		return -ENOMEM;
	}
	partial_begin(&signals);
	error = mkdir(f->tmp, 0755) < 0 ? errno : 0;
	partial_made(error ? NULL : f->tmp, &signals);
	if (error) {
		free(take_ptr(f->tmp));
		return fail(f, -error);
	}
	f->fd = open(f->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (f->fd < 0)
		return fail(f, -errno);
	file_give_to_caller(f->fd); /* where that fails, root's */
	return put_mark(f);
}

int folder_open(const char *path, const char *mark, bool (*is_own)(const char *name),
		struct folder **out)
{
	_cleanup_(folder_freep) struct folder *f = calloc(1, sizeof(*f));
	size_t len = strlen(path);
	int r;

	if (!f)
		return -ENOMEM;
	f->fd = -1;
	f->left = UINT64_MAX;
	f->mark = mark;
	f->is_own = is_own;
	while (len > 1 && path[len - 1] == '/')
		len--;
	f->path = strndup(path, len);
	if (!f->path)
		return -ENOMEM;
	if ((r = check_target(f)) < 0 || (r = make_partial(f)) < 0)
		return r;
	*out = take_ptr(f);
	return 0;
}

static ssize_t write_file(void *cookie, const char *bytes, size_t len)
{
	struct folder *f = cookie;

	if (!f->error && len > f->left)
		f->error = -E2BIG;
	if (!f->error)
		f->error = file_write(f->file_fd, bytes, len);
	f->left -= f->error ? 0 : len;
	return f->error ? 0 : (ssize_t)len;
}

int folder_begin_file(struct folder *f, const char *name, FILE **out)
{
	static const cookie_io_functions_t functions = { .write = write_file };
	_cleanup_(closep) int fd = openat(
		f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, OUTPUT_MODE);

	if (fd < 0)
		return fail(f, -errno);
	file_give_to_caller(fd);
	f->file = fopencookie(f, "w", functions);
	if (!f->file)
		return -ENOMEM;
	f->error = 0;
	f->file_fd = take_fd(fd);
	*out = f->file;
	return 0;
}

void folder_limit(struct folder *f, uint64_t bytes)
{
	f->left = bytes;
}

int folder_end_file(struct folder *f)
{
	fclose(take_ptr(f->file));
	if (close(f->file_fd) < 0 && !f->error)
		f->error = -errno;
	return f->error ? fail(f, f->error) : 0;
}

static int remove_name(const struct folder *f, int fd, const char *name)
{
	(void)f;
	return unlinkat(fd, name, 0) < 0 ? -errno : 0;
}

static void remove_partial(struct folder *f)
{
	for_each_name(f->tmp, remove_name, f);
	rmdir(f->tmp);
	partial_forget(f->tmp);
	free(take_ptr(f->tmp));
}

/* The one that was there goes where the new one was made, and from there. */
static int replace(struct folder *f)
{
	int r = check_target(f); /* again: it has been a while */

	if (r < 0)
		return r;
	if (renameat2(AT_FDCWD, f->tmp, AT_FDCWD, f->path, RENAME_EXCHANGE) < 0)
		return fail(f, -errno);
	remove_partial(f);
	return 0;
}

int folder_commit(struct folder *f)
{
	int r = 0;

	if (rename(f->tmp, f->path) == 0) { /* nothing is there, or an empty folder */
		partial_forget(f->tmp);
		free(take_ptr(f->tmp));
	} else {
		r = errno == ENOTEMPTY || errno == EEXIST ? replace(f) : fail(f, -errno);
	}
	if (!r)
		file_sync_directory_of(f->path);
	return r;
}

void folder_free(struct folder *f)
{
	if (!f)
		return;
	if (f->file)
		folder_end_file(f);
	if (f->tmp)
		remove_partial(f);
	closep(&f->fd);
	free(f->path);
	free(f);
}
