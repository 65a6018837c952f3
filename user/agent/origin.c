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
#include "target/process_context.h"

#define ENVIRON_BYTES_MAX (1u << 20)
#define ATTRIBUTES_BYTES_MAX 4096
#define CGROUPS_BYTES_MAX 65536

/* Copies as many characters as fit; utf8_is_control() and what is not UTF-8 become '_'. */
static void copy_text(const char *text, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		uint32_t c;
		size_t step = utf8_decode(text + i, len - i, &c);
		bool is_odd = utf8_is_control(c) || c == UTF8_REPLACEMENT;

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

/* A folder that is run, by Python or as FOLDER/__main__.py, has the name of the folder. */
static void name_of_script(struct word *w)
{
	strip_suffix(w, ".py");
	strip_suffix(w, "/__main__");
	strip_folder(w);
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
		name_of_script(&w);
		strip_suffix(&w, ".__main__"); /* python -m does not need it said */
	}
	copy_text(w.s, w.len, service, size);
}

void origin_attribute(const char *text, const char *key, char *value, size_t size)
{
	size_t key_len = strlen(key);

	*value = '\0';
	while (*text) {
		size_t len;

		text += strspn(text, " ");
		len = strcspn(text, ",");
		if (len > key_len && !strncmp(text, key, key_len) && text[key_len] == '=')
			copy_text(text + key_len + 1, len - key_len - 1, value, size);
		text += len + (text[len] == ',');
	}
}

void origin_of_attributes(const char *text, char *service, size_t size)
{
	origin_attribute(text, "service.name", service, size);
}

void origin_of_environment(const char *bytes, size_t len, const char *name, char *value,
			   size_t size)
{
	size_t name_len = strlen(name);

	for (size_t at = 0; at < len; at += strlen(bytes + at) + 1)
		if (!strncmp(bytes + at, name, name_len) && bytes[at + name_len] == '=')
			copy_text(bytes + at + name_len + 1, strlen(bytes + at + name_len + 1),
				  value, size);
}

/* Of a process, if it is there. */
static void read_variable(pid_t pid, const char *name, char *out, size_t size)
{
	_cleanup_(freep) char *environment = NULL;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/environ", proc_living_thread(pid));
	if (file_read(path, ENVIRON_BYTES_MAX, &environment, &len) < 0) {
		err_clear(); /* it has ended, or has more than we read */
		return;
	}
	origin_of_environment(environment, len, name, out, size);
	explicit_bzero(environment, len);
}

/* What the process publishes for readers outside (OTEP 4719), where it is not known yet. */
static void read_published(pid_t pid, struct origin *out)
{
	const struct {
		const char *name;
		char *text;
		size_t size;
	} wanted[] = {
		{ "service.name", out->service, sizeof(out->service) },
		{ "service.version", out->version, sizeof(out->version) },
		{ "deployment.environment.name", out->environment, sizeof(out->environment) },
		{ "deployment.environment", out->environment, sizeof(out->environment) },
	};
	struct process_context c = { 0 };

	if (process_context_read(pid, &c) < 0)
		err_clear();
	for (size_t i = 0; i < c.attributes.len; i++) {
		const struct process_attribute *a = &c.attributes.items[i];

		for (size_t j = 0; j < sizeof(wanted) / sizeof(wanted[0]); j++)
			if (!strcmp(a->name, wanted[j].name) && !*wanted[j].text)
				copy_text(a->value, strlen(a->value), wanted[j].text,
					  wanted[j].size);
	}
	process_context_release(&c);
}

void origin_find(const struct origin_process *p, const char *env,
		 const struct cgroup_namespace *ours, struct origin *out)
{
	char attributes[ATTRIBUTES_BYTES_MAX] = "";

	*out = (struct origin){ 0 };
	(void)owner_find(p->pid, ours, &out->owner);
	snprintf(out->container, sizeof(out->container), "%s", p->container);
	snprintf(out->pod, sizeof(out->pod), "%s", p->pod);
	if (env)
		read_variable(p->pid, env, out->service, sizeof(out->service));
	if (env)
		read_variable(p->pid, "OTEL_RESOURCE_ATTRIBUTES", attributes, sizeof(attributes));
	if (!*out->service)
		origin_of_attributes(attributes, out->service, sizeof(out->service));
	origin_attribute(attributes, "service.version", out->version, sizeof(out->version));
	origin_attribute(attributes, "deployment.environment", out->environment,
			 sizeof(out->environment));
	read_published(p->pid, out);
	out->is_named = *out->service;
	if (!*out->service)
		origin_of_command(p->command_line, out->service, sizeof(out->service));
	if (!*out->service)
		copy_text(p->name, strlen(p->name), out->service, sizeof(out->service));
	if (!*out->service)
		copy_text("python", strlen("python"), out->service, sizeof(out->service));
}

void origin_read_cgroup(pid_t pid, const struct cgroup_namespace *ours,
			char out[ORIGIN_CGROUP_BYTES])
{
	_cleanup_(strbuf_releasep) struct strbuf known = STRBUF_INIT;
	_cleanup_(freep) char *text = NULL;
	char path[64];
	size_t len;

	*out = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (file_read(path, CGROUPS_BYTES_MAX, &text, &len) < 0)
		err_clear(); /* it has ended */
	else if (!cgroup_path_of_text(ours, text, len, &known))
		copy_text(strbuf_str(&known), known.len, out, ORIGIN_CGROUP_BYTES);
}
