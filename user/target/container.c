/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/container.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "target/container_cgroup.h"
#include "target/pid_namespace.h"

#define CGROUP_BYTES_MAX 65536
#define MOUNTS_BYTES_MAX (1u << 20)
#define MOUNT_BYTES_MAX 1024 /* of a line */
#define UID_LEN 36           /* 8-4-4-4-12 hex digits */
#define STATIC_UID_LEN 32    /* of a pod from a file: a hash of it */
#define CONTAINER_ID_LEN 64  /* of those that mounts name */

_Static_assert(UID_LEN + 1 == POD_UID_BYTES, "a UID fits");

static size_t hex_digits(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && ((s[n] >= '0' && s[n] <= '9') || (s[n] >= 'a' && s[n] <= 'f')))
		n++;
	return n;
}

/* 8-4-4-4-12 digits with a dash (systemd's names: an underscore) between; static pods: 32. */
static bool read_uid(const char *s, size_t len, char out[UID_LEN + 1])
{
	static const size_t parts[] = { 8, 4, 4, 4, 12 };
	size_t at = 0;

	if (hex_digits(s, len) == STATIC_UID_LEN) {
		snprintf(out, UID_LEN + 1, "%.*s", STATIC_UID_LEN, s);
		return true;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (i && (at == len || (s[at] != '-' && s[at] != '_')))
			return false;
		at += i > 0;
		if (hex_digits(s + at, len - at) != parts[i])
			return false;
		at += parts[i];
	}
	for (size_t i = 0; i < UID_LEN; i++)
		out[i] = s[i] == '_' ? '-' : s[i];
	out[UID_LEN] = '\0';
	return true;
}

/* Behind "/pod" (cgroupfs) or "-pod" (systemd). */
static void find_pod(const char *path, size_t len, char out[UID_LEN + 1])
{
	for (size_t i = 1; i + 3 < len; i++)
		if (!memcmp(path + i, "pod", 3) && strchr("/-", path[i - 1]) && path[i - 1] &&
		    read_uid(path + i + 3, len - i - 3, out))
			return;
}

static void of_path(const char *path, size_t len, struct container *out)
{
	struct cgroup_container c;
	size_t at = 0;

	while (cgroup_path_next(path, len, &at, &c))
		if (c.id_len < sizeof(out->id))
			snprintf(out->id, sizeof(out->id), "%.*s", (int)c.id_len, path + c.id);
	if (!*out->pod.uid)
		find_pod(path, len, out->pod.uid);
}

void container_of_cgroups(const char *text, size_t len, const struct cgroup_namespace *ours,
			  struct container *out)
{
	const char *end = text + len;

	while (text < end) {
		_cleanup_(strbuf_releasep) struct strbuf path = STRBUF_INIT;
		size_t line = (size_t)((char *)(memchr(text, '\n', end - text) ?: end) - text);

		if (!cgroup_namespace_path(ours, text, line, &path))
			of_path(strbuf_str(&path), path.len, out);
		text += line + 1;
	}
}

struct word {
	const char *s;
	size_t len;
};

/* The name behind a folder of that name: of "/var/lib/kubelet/pods/UID/etc-hosts" the UID. */
static struct word behind_folder(const char *path, const char *folder)
{
	struct word w = { "", 0 };
	const char *at = strstr(path, folder);

	if (at) {
		w.s = at + strlen(folder);
		w.len = strcspn(w.s, "/");
	}
	return w;
}

/*
 * The kubelet mounts hosts and termination-log from its folder of the pod. Engines mount hostname
 * from one of the container, but in a pod from one of its sandbox, whose id is not the container's.
 */
static void of_mount(const char *root, const char *point, struct container *out)
{
	static const char *const folders[] = { "/containers/", "/overlay-containers/", NULL };
	struct word w;

	if (!strcmp(point, "/etc/hosts") || !strcmp(point, "/dev/termination-log")) {
		w = behind_folder(root, "/pods/");
		if (!*out->pod.uid)
			read_uid(w.s, w.len, out->pod.uid);
	}
	for (size_t i = 0; folders[i] && !strcmp(point, "/etc/hostname"); i++) {
		w = behind_folder(root, folders[i]);
		if (!*out->id && w.len == CONTAINER_ID_LEN &&
		    hex_digits(w.s, w.len) == CONTAINER_ID_LEN)
			snprintf(out->id, sizeof(out->id), "%.*s", CONTAINER_ID_LEN, w.s);
	}
}

void container_of_mounts(const char *text, size_t len, struct container *out)
{
	struct container found = *out;
	char line[MOUNT_BYTES_MAX], root[MOUNT_BYTES_MAX], point[64];

	for (size_t at = 0, n; at < len; at += n + 1) {
		n = (size_t)((char *)(memchr(text + at, '\n', len - at) ?: text + len) - text) - at;
		if (n >= sizeof(line))
			continue; /* none of those that are looked for */
		snprintf(line, sizeof(line), "%.*s", (int)n, text + at);
		/* ID PARENT DEVICE ROOT POINT ...: proc_pid_mountinfo(5) */
		if (sscanf(line, "%*s %*s %*s %1023s %63s", root, point) == 2)
			of_mount(root, point, &found);
	}
	if (*found.pod.uid && !*out->id)
		*found.id = '\0';
	*out = found;
}

/* NULL: it has ended, or has more than we read. */
static char *read_proc(pid_t pid, const char *name, size_t max, size_t *len)
{
	char path[64], *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	if (file_read_proc(path, max, &text, len) < 0)
		err_clear();
	return text;
}

/* The kubelet's folders are ours, or the host's: those of its first process, if that is ours. */
static void find_pod_name(struct pod_name *pod)
{
	uint32_t pid_namespace;

	if (pod_name_find("/var/log/pods", pod->uid, pod))
		return;
	if (pid_namespace_own(&pid_namespace) < 0)
		err_clear();
	else if (!pid_namespace)
		pod_name_find("/proc/1/root/var/log/pods", pod->uid, pod);
}

bool container_find(pid_t pid, const struct cgroup_namespace *ours, struct container *out)
{
	_cleanup_(freep) char *cgroups = NULL, *mounts = NULL;
	struct container found = { 0 };
	size_t len;

	cgroups = read_proc(pid, "cgroup", CGROUP_BYTES_MAX, &len);
	if (cgroups)
		container_of_cgroups(cgroups, len, ours, &found);
	if (!*found.id && !*found.pod.uid)
		mounts = read_proc(pid, "mountinfo", MOUNTS_BYTES_MAX, &len);
	if (mounts)
		container_of_mounts(mounts, len, &found);
	if (*found.pod.uid)
		find_pod_name(&found.pod);
	*out = found;
	return *found.id || *found.pod.uid;
}
