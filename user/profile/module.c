/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FROZEN "<frozen "

/* A directory with its final slash. */
struct root {
	const char *path; /* borrowed from the profile */
	size_t len;
};

struct roots {
	struct root *items; /* a VEC */
	size_t len;
	size_t cap;
};

static void roots_release(struct roots *r)
{
	vec_release(r);
}

void modules_release(struct modules *m)
{
	vec_release(&m->items);
	free(m->of_file);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Bytes of path up to and with the last `folder`, 0 without one. */
static size_t after_folder(const char *path, size_t len, const char *folder)
{
	size_t n = strlen(folder), found = 0;

	for (const char *at = path; (at = memmem(at, (size_t)(path + len - at), folder, n));
	     at += n)
		found = (size_t)(at - path) + n;
	return found;
}

/* The same for `/lib/python3.12/`, `/lib64/python3.13t/`, `/lib/python312.zip/`. */
static size_t after_standard_library(const char *path, size_t len)
{
	static const char *const folders[] = { "/lib/python", "/lib64/python" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t at = after_folder(path, len, folders[i]);

		while (at && at < len && path[at] && strchr("0123456789.t", path[at]))
			at++;
		if (at && len - at > strlen("zip") && !memcmp(path + at, "zip", strlen("zip")))
			at += strlen("zip");
		if (at && at < len && path[at] == '/')
			return at + 1;
	}
	return 0;
}

size_t module_library_root(const char *path, size_t len)
{
	size_t at = after_folder(path, len, "/site-packages/");

	if (!at)
		at = after_folder(path, len, "/dist-packages/");
	return at ? at : after_standard_library(path, len);
}

bool path_ends_in(const char *path, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len >= end_len && !memcmp(path + len - end_len, end, end_len);
}

bool path_has_tail(const char *path, size_t len, const char *tail)
{
	size_t tail_len = strlen(tail);

	return path_ends_in(path, len, tail) &&
	       (len == tail_len || path[len - tail_len - 1] == '/');
}

bool module_is_source(const char *path, size_t len)
{
	return len && path[0] == '/' && !strstr(path, "//") && !strstr(path, "/./") &&
	       (path_ends_in(path, len, ".py") || path_ends_in(path, len, ".pyw"));
}

size_t module_name_len(const char *path, size_t len)
{
	static const char *const ends[] = { ".pyc", ".py", "/__init__" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (path_ends_in(path, len, ends[i]))
			len -= strlen(ends[i]);
	return len;
}

bool module_is_frozen(const char *path, size_t len)
{
	return path_ends_in(path, len, ">") && !strncmp(path, FROZEN, strlen(FROZEN));
}

int module_put_name(const char *path, size_t len, size_t root_len, struct strbuf *out)
{
	const char *slash;

	if (module_is_frozen(path, len))
		return strbuf_append(out, path + strlen(FROZEN), len - strlen(FROZEN) - 1);
	if (!len || *path == '<')
		return strbuf_error(out);
	slash = memrchr(path, '/', len);
	if (!root_len && *path == '/') /* of no known root */
		root_len = (size_t)(slash - path) + 1;
	path += root_len;
	len = module_name_len(path, len - root_len);
	for (size_t i = 0; i < len; i++)
		strbuf_putc(out, path[i] == '/' ? '.' : path[i]);
	return strbuf_error(out);
}

/* --- whose code ------------------------------------------------------------------------------- */

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* importlib's own files and frozen modules, and what stands around it. */
static bool is_import_machinery(const char *path, size_t len)
{
	static const char *const frozen[] = { "importlib", "zipimport", "runpy" };
	size_t root_len = after_standard_library(path, len);

	for (size_t i = 0; i < sizeof(frozen) / sizeof(frozen[0]); i++)
		if (module_is_frozen(path, len) && has_prefix(path + strlen(FROZEN), frozen[i]))
			return true;
	path += root_len;
	return root_len &&
	       (!strcmp(path, "importlib/__init__.py") || has_prefix(path, "importlib/_bootstrap"));
}

/* Of text that tells native functions by "name [library]" and kernel's by "name [kernel]". */
static enum origin origin_by_name(const char *name, size_t len)
{
	if (path_ends_in(name, len, " [kernel]"))
		return ORIGIN_KERNEL;
	return path_ends_in(name, len, "]") && strstr(name, " [") ? ORIGIN_NATIVE : ORIGIN_MARKER;
}

static enum origin origin_of_file(const char *path, size_t len)
{
	size_t standard = after_standard_library(path, len);

	if (is_import_machinery(path, len))
		return ORIGIN_IMPORT;
	if (module_is_frozen(path, len))
		return ORIGIN_STDLIB;
	if (module_library_root(path, len) != standard)
		return ORIGIN_LIBRARY;
	return standard ? ORIGIN_STDLIB : ORIGIN_OWN;
}

static struct string_facts string_facts(const struct profile *p, uint32_t string)
{
	struct string_facts *known = profile_string_facts(p, string), facts;
	const char *text = strtab_get(p->strings, string);
	size_t len = strtab_len(p->strings, string);

	if (known && known->is_known)
		return *known;
	facts = (struct string_facts){
		.library_root = (uint32_t)module_library_root(text, len),
		.file_origin = (uint8_t)origin_of_file(text, len),
		.name_origin = (uint8_t)origin_by_name(text, len),
		.is_known = true,
	};
	if (known)
		*known = facts;
	return facts;
}

size_t profile_library_root(const struct profile *p, uint32_t file)
{
	return string_facts(p, file).library_root;
}

enum origin origin_of(const struct profile *p, uint32_t name, uint32_t file, enum frame_type kind)
{
	static const enum origin of_kind[FRAME_TYPE_COUNT] = {
		[FRAME_NATIVE] = ORIGIN_NATIVE,
		[FRAME_KERNEL] = ORIGIN_KERNEL,
		[FRAME_MARKER] = ORIGIN_MARKER,
		[FRAME_TASK] = ORIGIN_TASK,
	};
	const char *path = strtab_get(p->strings, file);

	if (kind != FRAME_PYTHON)
		return of_kind[kind];
	if (!*path || !strcmp(path, "~"))
		return string_facts(p, name).name_origin;
	return string_facts(p, file).file_origin;
}

/* --- roots of files --------------------------------------------------------------------------- */

/* Code of nobody's project: a library's, a frozen module's, none of Python. */
static bool is_foreign(const struct profile *p, const struct frame *f)
{
	const char *file = strtab_get(p->strings, f->file);

	return f->kind != FRAME_PYTHON || !*file || *file == '<' ||
	       profile_library_root(p, f->file);
}

static int add_root(const struct modules *m, struct roots *roots, uint32_t file)
{
	const char *path = strtab_get(m->p->strings, file), *slash = strrchr(path, '/');
	struct root root = { path, slash ? (size_t)(slash - path) + 1 : 0 };

	for (size_t i = 0; i < roots->len; i++)
		if (roots->items[i].len == root.len &&
		    !memcmp(roots->items[i].path, path, root.len))
			return 0;
	return root.len ? vec_push(roots, root) : 0;
}

static int compare_root_lengths(const void *a, const void *b)
{
	const struct root *x = a, *y = b;

	return x->len > y->len ? -1 : x->len < y->len;
}

/* Scripts: `<module>` frames with nothing but foreign ones outside of them. The longest first. */
static int find_roots(const struct modules *m, const uint64_t *totals, struct roots *roots)
{
	const struct stack_entry *entries = stacktab_entries(m->p->stacks);
	uint32_t count = stacktab_count(m->p->stacks);
	_cleanup_(freep) bool *is_outside = calloc(count, sizeof(*is_outside));
	int r = 0;

	if (!is_outside)
		return -ENOMEM;
	is_outside[0] = true;
	for (uint32_t i = 1; i < count && !r; i++) {
		const struct frame *f = frametab_get(m->p->frames, entries[i].frame);

		if ((totals && !totals[i]) || !is_outside[entries[i].parent])
			continue;
		is_outside[i] = is_foreign(m->p, f);
		if (!is_outside[i] && !strcmp(strtab_get(m->p->strings, f->name), "<module>"))
			r = add_root(m, roots, f->file);
	}
	if (roots->len)
		qsort(roots->items, roots->len, sizeof(struct root), compare_root_lengths);
	return r;
}

static int add_module(struct modules *m, uint32_t file, const struct roots *roots)
{
	const char *path = strtab_get(m->p->strings, file);
	size_t len = strtab_len(m->p->strings, file), root_len = profile_library_root(m->p, file);
	struct module made = { .file = file, .is_library = root_len };
	int r;

	if (m->of_file[file])
		return 0;
	for (size_t i = 0; i < roots->len && !root_len; i++) {
		const struct root *root = &roots->items[i];

		if (root->len < len && !memcmp(root->path, path, root->len))
			root_len = root->len;
	}
	made.root_len = (uint32_t)root_len;
	r = vec_push(&m->items, made);
	if (!r)
		m->of_file[file] = (uint32_t)m->items.len;
	return r;
}

/* --- files stay apart ------------------------------------------------------------------------- */

static int compare_modules(const void *a, const void *b, void *modules)
{
	const struct modules *m = modules;
	const struct module *x = &m->items.items[*(const uint32_t *)a],
			    *y = &m->items.items[*(const uint32_t *)b];
	int order = strcmp(module_path(m, x), module_path(m, y));

	return order ? order : x->file < y->file ? -1 : x->file > y->file;
}

/* Times that a name gets a component more. Beyond that it is the whole path. */
#define LENGTHENED_MAX 64

/* A component of the root more; of a whole path there is none. */
static void lengthen(const struct modules *m, struct module *module)
{
	const char *path = strtab_get(m->p->strings, module->file);
	uint32_t at = module->lengthened++ < LENGTHENED_MAX ? module->root_len - 1 : 0;

	while (at && path[at - 1] != '/')
		at--;
	module->root_len = at;
}

/*
 * Of one name: each takes a component more, unless it is the only one of a library. Whether any
 * did.
 */
static bool lengthen_all(struct modules *m, const uint32_t *same, size_t count)
{
	bool has_lengthened = false;
	size_t libraries = 0;

	for (size_t i = 0; i < count; i++)
		libraries += m->items.items[same[i]].is_library;
	for (size_t i = 0; i < count; i++) {
		struct module *module = &m->items.items[same[i]];

		if (!module->root_len || (module->is_library && libraries == 1))
			continue;
		lengthen(m, module);
		has_lengthened = true;
	}
	return has_lengthened;
}

/* Until no two have the same name; whole paths differ, so there is an end. */
static int keep_apart(struct modules *m)
{
	size_t count = m->items.len, end;
	_cleanup_(freep) uint32_t *order = calloc(count + 1, sizeof(*order));
	bool has_lengthened = count;

	if (!order)
		return -ENOMEM;
	while (has_lengthened) {
		has_lengthened = false;
		for (uint32_t i = 0; i < count; i++)
			order[i] = i;
		qsort_r(order, count, sizeof(*order), compare_modules, m);
		for (size_t i = 0; i < count; i = end) {
			const char *path = module_path(m, &m->items.items[order[i]]);

			for (end = i + 1; end < count; end++)
				if (strcmp(path, module_path(m, &m->items.items[order[end]])) != 0)
					break;
			if (end - i > 1)
				has_lengthened |= lengthen_all(m, order + i, end - i);
		}
	}
	return 0;
}

int modules_find(struct modules *out, const struct profile *p, const bool *has_frame,
		 const uint64_t *totals)
{
	_cleanup_(roots_release) struct roots roots = { 0 };
	int r;

	out->p = p;
	r = find_roots(out, totals, &roots);
	out->of_file = calloc(strtab_count(p->strings), sizeof(*out->of_file));
	if (!out->of_file)
		return -ENOMEM;
	for (uint32_t i = 0; i < frametab_count(p->frames) && !r; i++)
		if (!has_frame || has_frame[i])
			r = add_module(out, frametab_get(p->frames, i)->file, &roots);
	return r ? r : keep_apart(out);
}

int modules_put_name(const struct modules *m, uint32_t file, struct strbuf *out)
{
	const struct module *module = module_of(m, file);
	const char *path = strtab_get(m->p->strings, file);
	size_t len = strtab_len(m->p->strings, file);

	return module_put_name(
		path, len, module->is_library ? profile_library_root(m->p, file) : module->root_len,
		out);
}
