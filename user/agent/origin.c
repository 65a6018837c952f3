/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/origin.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/utf8.h"
#include "target/cgroup.h"

#define CGROUP_BYTES_MAX 65536
#define ENVIRON_BYTES_MAX (1u << 20)
#define UID_LEN 36 /* 8-4-4-4-12 hex digits */

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

/* One of the interpreter's options the argument of which is the next word: python3 --help. */
static bool takes_word(const struct word *w)
{
	return w->len == 2 && strchr("XW", w->s[1]);
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
		while (next_word(&at, &w) && w.s[0] == '-') {
			if (w.len == 2 && w.s[1] == 'c')
				break; /* code, not a name */
			if (w.len == 2 && w.s[1] == 'm') {
				next_word(&at, &w);
				break;
			}
			if (takes_word(&w))
				next_word(&at, &w);
		}
		if (!w.len || w.s[0] == '-')
			w = program;
		strip_folder(&w);
		strip_suffix(&w, ".py");
	}
	copy_text(w.s, w.len, service, size);
}

static void find_pod(const char *path, size_t len, struct origin *out)
{
	for (size_t i = 0; i + 3 + UID_LEN <= len; i++) {
		size_t n = 0;

		if (memcmp(path + i, "pod", 3))
			continue;
		while (n < UID_LEN &&
		       (isxdigit((unsigned char)path[i + 3 + n]) || strchr("-_", path[i + 3 + n])))
			n++;
		if (n < UID_LEN)
			continue;
		for (n = 0; n < UID_LEN; n++)
			out->pod[n] = path[i + 3 + n] == '_' ? '-' : path[i + 3 + n];
		out->pod[UID_LEN] = '\0';
		return;
	}
}

void origin_of_cgroups(const char *text, size_t len, struct origin *out)
{
	const char *end = text + len;

	while (text < end) {
		size_t line = (size_t)((char *)(memchr(text, '\n', end - text) ?: end) - text);
		struct cgroup_container c;
		size_t at = 0;

		while (cgroup_path_next(text, line, &at, &c))
			if (c.id_len < sizeof(out->container))
				snprintf(out->container, sizeof(out->container), "%.*s",
					 (int)c.id_len, text + c.id);
		if (!*out->pod)
			find_pod(text, line, out);
		text += line + 1;
	}
}

/* The value of one variable of the environment, if it is there. */
static void read_variable(pid_t pid, const char *name, char *out, size_t size)
{
	_cleanup_(freep) char *environment = NULL;
	size_t len, name_len = strlen(name);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	if (file_read(path, ENVIRON_BYTES_MAX, &environment, &len) < 0) {
		err_clear(); /* it has ended, or has more than we read */
		return;
	}
	for (size_t at = 0; at < len; at += strlen(environment + at) + 1)
		if (!strncmp(environment + at, name, name_len) && environment[at + name_len] == '=')
			copy_text(environment + at + name_len + 1,
				  strlen(environment + at + name_len + 1), out, size);
	explicit_bzero(environment, len);
}

static void read_cgroups(pid_t pid, struct origin *out)
{
	_cleanup_(freep) char *text = NULL;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (file_read(path, CGROUP_BYTES_MAX, &text, &len) < 0) {
		err_clear(); /* it has ended */
		return;
	}
	origin_of_cgroups(text, len, out);
}

void origin_find(const struct origin_process *p, const char *env, struct origin *out)
{
	*out = (struct origin){ 0 };
	read_cgroups(p->pid, out);
	if (env)
		read_variable(p->pid, env, out->service, sizeof(out->service));
	if (!*out->service)
		origin_of_command(p->command_line, out->service, sizeof(out->service));
	if (!*out->service)
		copy_text(p->name, strlen(p->name), out->service, sizeof(out->service));
	if (!*out->service)
		copy_text("python", strlen("python"), out->service, sizeof(out->service));
}
