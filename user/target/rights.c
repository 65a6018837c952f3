/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

#define STATUS_BYTES_MAX 65536
#define READS_ALL (UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_DAC_READ_SEARCH)

/* --- whose ------------------------------------------------------------------------------------ */

/* What follows "\nNAME:", NULL: there is no such line. The text ends in NUL. */
static const char *line_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

/* The fourth number of a line "real effective saved file-system". */
static int parse_fs_id(const char *text, const char *name, uint32_t *out)
{
	const char *line = line_of(text, name);
	unsigned int fs;

	if (!line || sscanf(line, "%*u %*u %*u %u", &fs) != 1)
		return -EBADMSG;
	*out = fs;
	return 0;
}

int rights_parse(const char *text, size_t len, struct rights *out)
{
	_cleanup_(freep) char *copy = strndup(text, len);
	struct rights found = { 0 };
	const char *line;
	char *end;

	if (!copy)
		return -ENOMEM;
	line = line_of(copy, "\nGroups:");
	if (!line || parse_fs_id(copy, "\nUid:", &found.uid) < 0 ||
	    parse_fs_id(copy, "\nGid:", &found.gid) < 0)
		return -EBADMSG;
	for (;; line = end) {
		line += strspn(line, " \t");
		if (*line < '0' || *line > '9')
			break;
		found.may_have_more = found.group_count == RIGHTS_GROUPS_MAX;
		if (found.may_have_more)
			break;
		found.groups[found.group_count++] = (uint32_t)strtoul(line, &end, 10);
	}
	*out = found;
	return 0;
}

/* Capabilities count for files of the machine in the user namespace that pyebpf is in. */
static bool is_in_our_user_namespace(pid_t pid)
{
	struct stat theirs, ours;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return stat(path, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
	       theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

int rights_read(pid_t pid, struct rights *out)
{
	_cleanup_(freep) char *text = NULL;
	unsigned long long caps = 0;
	const char *line;
	char path[32];
	size_t len;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if ((r = file_read(path, STATUS_BYTES_MAX, &text, &len)) < 0)
		return r;
	if ((r = rights_parse(text, len, out)) < 0)
		return err_set(r, "%s: no user and group ids", path);
	line = line_of(text, "\nCapEff:");
	out->reads_all = line && sscanf(line, "%llx", &caps) == 1 && (caps & READS_ALL) &&
			 is_in_our_user_namespace(pid);
	return 0;
}

bool rights_are_equal(const struct rights *a, const struct rights *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->reads_all == b->reads_all &&
	       a->may_have_more == b->may_have_more && a->group_count == b->group_count &&
	       !memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups));
}

/* --- what they allow -------------------------------------------------------------------------- */

static bool is_in_group(const struct rights *who, uint32_t gid)
{
	bool found = who->gid == gid;

	for (uint32_t i = 0; i < who->group_count && !found; i++)
		found = who->groups[i] == gid;
	return found;
}

bool rights_allow(const struct rights *who, const struct stat *st, bool has_acl, unsigned int want)
{
	unsigned int bits = st->st_mode;

	if (who->reads_all)
		return true;
	if (who->uid == st->st_uid)
		bits >>= 6;
	else if (has_acl)
		return false;
	else if (is_in_group(who, st->st_gid))
		bits >>= 3;
	else if (who->may_have_more)
		bits &= bits >> 3;
	return (bits & want) == want;
}

/* fd: O_PATH. */
static bool allows(const struct rights *who, int fd, const struct stat *st, unsigned int want)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return rights_allow(who, st, getxattr(path, "system.posix_acl_access", NULL, 0) > 0, want);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Where an O_PATH fd is, without links, below the base; NULL: elsewhere, or its name is gone. */
static char *place_below(const char *base_link, int fd, char place[PATH_MAX])
{
	char link[32], base[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, place, PATH_MAX);
	if (n <= 0 || n >= PATH_MAX || place[0] != '/')
		return NULL;
	place[n] = '\0';
	n = readlink(base_link, base, sizeof(base));
	if (n <= 1 || n >= PATH_MAX)
		return place; /* "/" is no link, and a base in another mount namespace reads as "/"
			       */
	base[n] = '\0';
	return !strncmp(place, base, (size_t)n) && place[n] == '/' ? place + n : NULL;
}

/* One step down, from a directory that is to be searched. Returns an O_PATH fd. */
static int step(const struct rights *who, int directory, const char *name)
{
	struct stat st;
	int fd;

	if (fstat(directory, &st) < 0)
		return -errno;
	if (!allows(who, directory, &st, 1))
		return -EACCES;
	fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* From the base down to a place without links. Returns an O_PATH fd. */
static int walk(const struct rights *who, int base, char *place)
{
	_cleanup_(closep) int at = fcntl(base, F_DUPFD_CLOEXEC, 3);

	if (at < 0)
		return -errno;
	for (char *name; (name = strsep(&place, "/"));) {
		int below;

		if (!*name)
			continue;
		below = step(who, at, name);
		if (below < 0)
			return below;
		closep(&at);
		at = below;
	}
	return take_fd(at);
}

/* O_PATH: a device or a FIFO does nothing. */
static int locate(const char *base_link, const char *path, int *base)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	*base = open(base_link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*base < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, *base, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

int rights_open(const struct rights *who, const char *base_link, const char *path)
{
	_cleanup_(closep) int base = -1;
	_cleanup_(closep) int found = locate(base_link, path, &base);
	_cleanup_(closep) int walked = -1;
	char buffer[PATH_MAX], *place;
	struct stat st, there;

	if (found < 0)
		return found;
	if (fstat(found, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || file_is_of_kernel(found))
		return -EINVAL;
	place = place_below(base_link, found, buffer);
	if (!place)
		return -ESTALE;
	walked = walk(who, base, place);
	if (walked < 0)
		return walked;
	if (fstat(walked, &there) < 0)
		return -errno;
	if (there.st_dev != st.st_dev || there.st_ino != st.st_ino)
		return -ESTALE;
	if (!allows(who, walked, &there, 4))
		return -EACCES;
	return file_reopen(walked);
}
