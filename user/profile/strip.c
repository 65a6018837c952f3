/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/strip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "profile/module.h"

void strip_release(struct strip *s)
{
	strtab_free(s->seen);
	strtab_free(s->names);
	numbered_release(&s->bases);
	vec_release(&s->name_of);
}

static const char *base_name(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);

	return slash ? slash + 1 : path;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Where the folder that is not told of a library's path ends: the part that tells it is one stays.
 */
static const char *library_path(const char *path, size_t len)
{
	static const char *const marks[] = { "/site-packages/", "/dist-packages/", "/lib/python",
					     "/lib64/python" };
	size_t root_len = module_library_root(path, len);

	for (size_t i = 0; root_len && i < sizeof(marks) / sizeof(marks[0]); i++) {
		size_t n = strlen(marks[i]);

		for (size_t at = root_len > n ? root_len - n + 1 : 1; at-- > 0;)
			if (!strncmp(path + at, marks[i], n))
				return path + at;
	}
	return NULL;
}

/* "orders.py", and of further files of this name "2/orders.py", "3/orders.py"... */
static int choose_name(struct strip *s, const char *base, size_t len, uint32_t *name)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	uint32_t number = 0;
	int r = numbered_next(&s->bases, base, len, &number);

	number += !len; /* "" stands for no file */
	if (!r && number > 1)
		strbuf_appendf(&text, "%u/", number);
	if (!r)
		r = strbuf_append(&text, base, len);
	return r ? r : strtab_intern(s->names, strbuf_str(&text), text.len, name);
}

static int own_file(struct strip *s, const char *path, size_t len, uint32_t *name)
{
	const char *base = base_name(path, len);
	uint32_t id;
	int r = 0;

	if (!s->seen)
		r = strtab_new(&s->seen);
	if (!r && !s->names)
		r = strtab_new(&s->names);
	if (!r)
		r = strtab_intern(s->seen, path, len, &id);
	while (!r && s->name_of.len <= id)
		r = vec_push(&s->name_of, 0);
	if (!r && !s->name_of.items[id])
		r = choose_name(s, base, (size_t)(path + len - base), &s->name_of.items[id]);
	if (!r)
		*name = s->name_of.items[id];
	return r;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* What a path in a text can stand behind, and what ends it. */
static bool is_around_path(char c)
{
	return !c || strchr(" \t\n\"'`([{<=,:;|)]}>", c);
}

/* Absolute paths in it lose their folders. */
static int put_without_folders(const char *text, size_t len, struct strbuf *out)
{
	for (size_t i = 0; i < len; i++) {
		size_t end = i;

		if (text[i] == '/' && (!i || is_around_path(text[i - 1]))) {
			while (end < len && !is_around_path(text[end]))
				end++;
			i = (size_t)(base_name(text + i, end - i) - text);
			strbuf_append(out, text + i, end - i);
			i = end - 1;
			continue;
		}
		strbuf_putc(out, text[i]);
	}
	return strbuf_error(out);
}

int strip_text(struct strip *s, const struct profile *from, uint32_t text, struct profile *to,
	       uint32_t *id)
{
	const char *bytes = strtab_get(from->strings, text);
	size_t len = strtab_len(from->strings, text);
	_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;

	if (!s || !s->paths || !memchr(bytes, '/', len))
		return strtab_intern(to->strings, bytes, len, id);
	if (put_without_folders(bytes, len, &out) < 0)
		return -ENOMEM;
	return strtab_intern(to->strings, strbuf_str(&out), out.len, id);
}

int strip_file(struct strip *s, const struct profile *from, uint32_t file, uint8_t kind,
	       struct profile *to, uint32_t *id)
{
	const char *path = strtab_get(from->strings, file);
	size_t len = strtab_len(from->strings, file);
	const char *kept = path;
	uint32_t name;
	int r;

	if (s && s->paths && len)
		kept = kind != FRAME_PYTHON ? base_name(path, len) : library_path(path, len);
	if (kept)
		return strtab_intern(to->strings, kept, (size_t)(path + len - kept), id);
	r = own_file(s, path, len, &name);
	return r ? r
		 : strtab_intern(to->strings, strtab_get(s->names, name),
				 strtab_len(s->names, name), id);
}

/* --- who and where ---------------------------------------------------------------------------- */

void strip_process(const struct strip *s, struct process *p)
{
	if (!strip_is_active(s))
		return;
	p->command_line = 0;
	if (s->paths)
		p->container = p->pod_uid = p->pod_name = p->pod_namespace = 0;
}

/* "pid 412, pid 413" and "all processes" tell nothing; commands, cgroups and containers do. */
static bool tells_nothing(const char *target)
{
	return !strcmp(target, "all processes") ||
	       strspn(target, "pid ,0123456789") == strlen(target);
}

static int strip_recording_text(char **text)
{
	_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;

	if (!*text || !strchr(*text, '/'))
		return 0;
	if (put_without_folders(*text, strlen(*text), &out) < 0)
		return -ENOMEM;
	return recording_set_text(text, strbuf_str(&out));
}

int strip_recording(const struct strip *s, struct recording *r)
{
	int e;

	if (!strip_is_active(s))
		return 0;
	if (r->target && !tells_nothing(r->target))
		recording_set_text(&r->target, NULL);
	recording_set_text(&r->command, NULL);
	recording_set_text(&r->part, NULL);
	if (!s->paths)
		return 0;
	recording_set_text(&r->host, NULL);
	/* of an event: uprobe:/usr/lib/libc.so.6:malloc */
	e = strip_recording_text(&r->mode);
	return e ? e : strip_recording_text(&r->event);
}
