/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/texts.h"

#define FORMAT_BYTES 65536
#define PATH_BYTES 512

static int held = -1; /* by tracefs_hold(), to the end of the process */

/* A new one that is mounted nowhere: Linux 5.2, CAP_SYS_ADMIN. */
static int mount_for_us(void)
{
	_cleanup_(closep) int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOEXEC);
}

void tracefs_hold(void)
{
	if (held < 0 && tracefs_open(&held) < 0)
		err_clear();
}

int tracefs_open(int *fd)
{
	static const char *const paths[] = { "/sys/kernel/tracing/events",
					     "/sys/kernel/debug/tracing/events" };
	_cleanup_(closep) int root = -1;
	int denied = 0;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		*fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (*fd >= 0)
			return 0;
		denied |= errno == EACCES || errno == EPERM;
	}
	if (held >= 0 && (*fd = fcntl(held, F_DUPFD_CLOEXEC, 0)) >= 0)
		return 0;
	if (!denied)
		root = mount_for_us();
	if (root >= 0)
		*fd = openat(root, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	if (denied || root == -EPERM)
		return err_set(-EPERM,
			       "tracepoints are listed in /sys/kernel/tracing, which may not "
			       "be read: sudo pyebpf, or as root mount -t tracefs -o mode=755 "
			       "tracefs /sys/kernel/tracing");
	return err_set(-EOPNOTSUPP, "this kernel has no tracepoints (CONFIG_EVENT_TRACING)");
}

/* One of the files of a tracepoint, malloc()ed; its format is the largest. */
static int read_text(int fd, const char *group, const char *name, const char *file, char **out)
{
	_cleanup_(freep) char *text = malloc(FORMAT_BYTES + 1);
	_cleanup_(closep) int file_fd = -1;
	char path[PATH_BYTES];
	ssize_t len;

	if (!text)
		return -ENOMEM;
	if (snprintf(path, sizeof(path), "%s/%s/%s", group, name, file) >= (int)sizeof(path))
		return -ENOENT;
	file_fd = openat(fd, path, O_RDONLY | O_CLOEXEC);
	if (file_fd < 0)
		return -errno;
	len = file_pread(file_fd, text, FORMAT_BYTES, 0);
	if (len < 0)
		return (int)len;
	text[len] = '\0';
	*out = take_ptr(text);
	return 0;
}

static int explain(int r, int fd, const char *group, const char *name)
{
	struct stat st;

	if (r == -EACCES || r == -EPERM)
		return err_set(-EPERM, "tracepoint %s:%s: may not be read: sudo pyebpf", group,
			       name);
	if (r != -ENOENT)
		return err_set(r, "tracepoint %s:%s: %s", group, name, strerror(-r));
	if (fstatat(fd, group, &st, 0) < 0)
		return err_set(-EINVAL,
			       "this kernel has no tracepoints of a group %s "
			       "(pyebpf doctor --events lists them)",
			       group);
	return err_set(-EINVAL,
		       "this kernel has no tracepoint %s:%s (pyebpf doctor --events lists "
		       "them)",
		       group, name);
}

int tracefs_id(int fd, const char *group, const char *name, uint64_t *id)
{
	_cleanup_(freep) char *text = NULL;
	int r = read_text(fd, group, name, "id", &text);

	if (r < 0)
		return explain(r, fd, group, name);
	*id = strtoull(text, NULL, 10);
	return 0;
}

DEFINE_CLEANUP(DIR *, closedir)

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Folders in a folder, sorted. */
static int list_folders(int fd, const char *path, struct texts *out)
{
	_cleanup_(closep) int folder = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return err_set(-errno, "list tracepoints: %s", strerror(errno));
	folder = -1; /* dir's */
	while (r >= 0 && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			r = texts_addf(out, "%s", entry->d_name);
	qsort(out->items, out->len, sizeof(out->items[0]), compare_names);
	return r;
}

static int list_group(int fd, const char *group,
		      int (*fn)(void *arg, const char *group, const char *name), void *arg)
{
	_cleanup_(texts_release) struct texts names = { 0 };
	int r = list_folders(fd, group, &names);

	for (size_t i = 0; i < names.len && r >= 0; i++)
		r = fn(arg, group, names.items[i]);
	return r;
}

int tracefs_list(int fd, int (*fn)(void *arg, const char *group, const char *name), void *arg)
{
	_cleanup_(texts_release) struct texts groups = { 0 };
	int r = list_folders(fd, ".", &groups);

	/* Those of "ftrace" are formats of its own records. */
	for (size_t i = 0; i < groups.len && r >= 0; i++)
		if (strcmp(groups.items[i], "ftrace"))
			r = list_group(fd, groups.items[i], fn, arg);
	return r;
}

/* "unsigned long args[6]" ends in a name, which may have a length behind it. */
static bool declares(const char *declaration, size_t len, const char *field)
{
	size_t name = strlen(field);

	if (len && declaration[len - 1] == ']' && memrchr(declaration, '[', len))
		len = (size_t)((const char *)memrchr(declaration, '[', len) - declaration);
	return len > name && !memcmp(declaration + len - name, field, name) &&
	       strchr(" *", declaration[len - name - 1]);
}

/* A line of the file: "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;" */
int tracefs_parse_field(const char *format, const char *field, struct tracefs_field *out)
{
	for (const char *at = strstr(format, "field:"); at; at = strstr(at, "field:")) {
		unsigned int offset, bytes, is_signed;
		size_t len;

		at += 6;
		len = strcspn(at, ";\n");
		if (!declares(at, len, field))
			continue;
		if (sscanf(at + len, "; offset:%u; size:%u; signed:%u;", &offset, &bytes,
			   &is_signed) != 3)
			return -EINVAL;
		if ((bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) || offset > UINT16_MAX ||
		    memmem(at, len, "__data_loc", 10) || memmem(at, len, "__rel_loc", 9) ||
		    memchr(at, '[', len))
			return -EINVAL;
		*out = (struct tracefs_field){ offset, (uint8_t)bytes, is_signed };
		return 0;
	}
	return -ENOENT;
}

/* Names of all that are numbers, but for those that every tracepoint has. */
static int put_fields(const char *format, struct strbuf *out)
{
	for (const char *at = strstr(format, "field:"); at; at = strstr(at, "field:")) {
		char name[PATH_BYTES] = "";
		struct tracefs_field field;
		size_t len, word;

		at += 6;
		len = strcspn(at, ";\n");
		for (word = len; word && !strchr(" *", at[word - 1]);)
			word--;
		if (len - word >= sizeof(name))
			continue;
		memcpy(name, at + word, len - word);
		if (!strncmp(name, "common_", 7) || tracefs_parse_field(format, name, &field) < 0)
			continue;
		if (strbuf_appendf(out, "%s%s", out->len ? ", " : "", name) < 0)
			return -ENOMEM;
	}
	return 0;
}

int tracefs_field(int fd, const char *group, const char *name, const char *field,
		  struct tracefs_field *out)
{
	_cleanup_(strbuf_releasep) struct strbuf fields = STRBUF_INIT;
	_cleanup_(freep) char *format = NULL;
	int r = read_text(fd, group, name, "format", &format);

	if (r < 0)
		return explain(r, fd, group, name);
	r = tracefs_parse_field(format, field, out);
	if (!r)
		return 0;
	if (put_fields(format, &fields) < 0)
		return -ENOMEM;
	return err_set(-EINVAL, "tracepoint %s:%s: %s %s; its numbers: %s", group, name,
		       r == -ENOENT ? "no field" : "no number:", field,
		       fields.len ? strbuf_str(&fields) : "none");
}
