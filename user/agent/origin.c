/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/origin.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#define CGROUP_BYTES_MAX 65536
#define ENVIRON_BYTES_MAX (1u << 20)
#define MOUNTS_BYTES_MAX (1u << 20)
#define MOUNT_BYTES_MAX 1024 /* of a line */
#define ATTRIBUTES_BYTES_MAX 4096
#define UID_LEN 36        /* 8-4-4-4-12 hex digits */
#define STATIC_UID_LEN 32 /* of a pod from a file: a hash of it */
#define CONTAINER_ID_LEN 64

/* Copies as many characters as fit; controls and what is not UTF-8 become '_'. */
static void copy_text(const char *text, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		uint32_t c;
		size_t step = utf8_decode(text + i, len - i, &c);
		bool is_odd = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == UTF8_REPLACEMENT;

		if (n + step >= size)
			break;
		if (is_odd)
			out[n++] = '_';
		for (size_t j = 0; j < step && !is_odd; j++)
			out[n++] = text[i + j];
		i += step;
	}
	out[n] = '\0';
}

struct word {
	const char *s;
	size_t len;
};

static bool next_word(const char **at, struct word *w)
{
	*at += strspn(*at, " ");
	w->s = *at;
	w->len = strcspn(*at, " ");
	*at += w->len;
	return w->len > 0;
}

static void strip_folder(struct word *w)
{
	const char *slash = memrchr(w->s, '/', w->len);

	if (slash && slash + 1 < w->s + w->len) {
		w->len -= (size_t)(slash + 1 - w->s);
		w->s = slash + 1;
	}
}

static void strip_suffix(struct word *w, const char *suffix)
{
	size_t len = strlen(suffix);

	if (w->len > len && !memcmp(w->s + w->len - len, suffix, len))
		w->len -= len;
}

/*
 * One word of the interpreter's options, such as -u, -um or -Xdev; what belongs to it is taken too.
 * True: the name is found: that of the module, or "" where code or nothing names the program.
 */
static bool take_options(const char **at, const struct word *options, struct word *name)
{
	const struct word none = { "", 0 };
	struct word rest;

	for (size_t i = 1; i < options->len && options->s[1] != '-'; i++) {
		if (!strchr("cmXW", options->s[i]))
			continue;
		rest = (struct word){ options->s + i + 1, options->len - i - 1 };
		if (options->s[i] != 'c' && !rest.len)
			next_word(at, &rest);
		*name = options->s[i] == 'm' ? rest : none;
		return strchr("cm", options->s[i]);
	}
	if (options->len > 1)
		return false;
	*name = none; /* "-": standard input */
	return true;
}

void origin_of_command(const char *command_line, char *service, size_t size)
{
	const char *at = command_line;
	struct word w, program;

	*service = '\0';
	if (!next_word(&at, &program))
		return;
	strip_folder(&program);
	strip_suffix(&program, ":"); /* a title the program gave itself: "gunicorn: master [app]" */
	w = program;
	if (program.len >= 6 && !memcmp(program.s, "python", 6)) {
		while (next_word(&at, &w) && w.s[0] == '-')
			if (take_options(&at, &(struct word){ w.s, w.len }, &w))
				break;
		if (!w.len || w.s[0] == '-')
			w = program;
		strip_folder(&w);
		strip_suffix(&w, ".py");
	}
	copy_text(w.s, w.len, service, size);
}

void origin_of_attributes(const char *text, char *service, size_t size)
{
	static const char key[] = "service.name=";

	*service = '\0';
	while (*text) {
		size_t len;

		text += strspn(text, " ");
		if (!strncmp(text, key, sizeof(key) - 1))
			copy_text(text + sizeof(key) - 1, strcspn(text + sizeof(key) - 1, ","),
				  service, size);
		len = strcspn(text, ",");
		text += len + (text[len] == ',');
	}
}

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

static void of_path(const char *path, size_t len, struct origin *out)
{
	struct cgroup_container c;
	size_t at = 0;

	while (cgroup_path_next(path, len, &at, &c))
		if (c.id_len < sizeof(out->container))
			snprintf(out->container, sizeof(out->container), "%.*s", (int)c.id_len,
				 path + c.id);
	if (!*out->pod)
		find_pod(path, len, out->pod);
}

void origin_of_cgroups(const char *text, size_t len, const struct cgroup_namespace *ours,
		       struct origin *out)
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
static void of_mount(const char *root, const char *point, struct origin *out)
{
	static const char *const folders[] = { "/containers/", "/overlay-containers/", NULL };
	struct word w;

	if (!strcmp(point, "/etc/hosts") || !strcmp(point, "/dev/termination-log")) {
		w = behind_folder(root, "/pods/");
		if (!*out->pod)
			read_uid(w.s, w.len, out->pod);
	}
	for (size_t i = 0; folders[i] && !strcmp(point, "/etc/hostname"); i++) {
		w = behind_folder(root, folders[i]);
		if (!*out->container && w.len == CONTAINER_ID_LEN &&
		    hex_digits(w.s, w.len) == CONTAINER_ID_LEN)
			snprintf(out->container, sizeof(out->container), "%.*s", CONTAINER_ID_LEN,
				 w.s);
	}
}

void origin_of_mounts(const char *text, size_t len, struct origin *out)
{
	struct origin found = *out;
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
	if (*found.pod && !*out->container)
		*found.container = '\0';
	*out = found;
}

/* NULL: it has ended, or has more than we read. */
static char *read_proc(pid_t pid, const char *name, size_t max, size_t *len)
{
	char path[64], *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	if (file_read(path, max, &text, len) < 0)
		err_clear();
	return text;
}

/* The value of one variable of the environment, if it is there. */
static void read_variable(pid_t pid, const char *name, char *out, size_t size)
{
	size_t len, name_len = strlen(name);
	_cleanup_(freep) char *environment = read_proc(pid, "environ", ENVIRON_BYTES_MAX, &len);

	if (!environment)
		return;
	for (size_t at = 0; at < len; at += strlen(environment + at) + 1)
		if (!strncmp(environment + at, name, name_len) && environment[at + name_len] == '=')
			copy_text(environment + at + name_len + 1,
				  strlen(environment + at + name_len + 1), out, size);
	explicit_bzero(environment, len);
}

static void find_container(pid_t pid, const struct cgroup_namespace *ours, struct origin *out)
{
	_cleanup_(freep) char *cgroups = NULL, *mounts = NULL;
	size_t len;

	cgroups = read_proc(pid, "cgroup", CGROUP_BYTES_MAX, &len);
	if (cgroups)
		origin_of_cgroups(cgroups, len, ours, out);
	if (*out->container || *out->pod)
		return;
	mounts = read_proc(pid, "mountinfo", MOUNTS_BYTES_MAX, &len);
	if (mounts)
		origin_of_mounts(mounts, len, out);
}

void origin_find(const struct origin_process *p, const char *env,
		 const struct cgroup_namespace *ours, struct origin *out)
{
	char attributes[ATTRIBUTES_BYTES_MAX] = "";

	*out = (struct origin){ 0 };
	find_container(p->pid, ours, out);
	if (env)
		read_variable(p->pid, env, out->service, sizeof(out->service));
	if (env && !*out->service) {
		read_variable(p->pid, "OTEL_RESOURCE_ATTRIBUTES", attributes, sizeof(attributes));
		origin_of_attributes(attributes, out->service, sizeof(out->service));
	}
	out->is_named = *out->service;
	if (!*out->service)
		origin_of_command(p->command_line, out->service, sizeof(out->service));
	if (!*out->service)
		copy_text(p->name, strlen(p->name), out->service, sizeof(out->service));
	if (!*out->service)
		copy_text("python", strlen("python"), out->service, sizeof(out->service));
}
