/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/imports.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/strbuf.h"
#include "profile/module.h"

enum import_frame {
	IMPORT_OTHER,
	IMPORT_MACHINERY,
	IMPORT_MODULE, /* a module's top level */
	IMPORT_NATIVE, /* C between it and its machinery, or within that */
};

/* CPython's own, 3.6 to 3.15: frozen, or run from its files. */
static const char *const machinery[] = {
	"<frozen importlib._bootstrap>",
	"<frozen importlib._bootstrap_external>",
	"<frozen zipimport>",
};
static const char *const machinery_files[] = {
	"/importlib/_bootstrap.py",
	"/importlib/_bootstrap_external.py",
	"/zipimport.py",
};

void import_fold_release(struct import_fold *fold)
{
	vec_release(&fold->paths);
	vec_release(&fold->kinds);
}

static enum import_frame kind_of(const struct profile *p, const struct frame *f)
{
	const char *file = strtab_get(p->strings, f->file);
	size_t len = strtab_len(p->strings, f->file);

	if (f->kind == FRAME_MARKER && !strcmp(strtab_get(p->strings, f->name), PROFILE_NATIVE))
		return IMPORT_NATIVE;
	if (f->kind != FRAME_PYTHON)
		return IMPORT_OTHER;
	for (size_t i = 0; i < sizeof(machinery) / sizeof(machinery[0]); i++)
		if (!strcmp(file, machinery[i]) || path_ends_in(file, len, machinery_files[i]))
			return IMPORT_MACHINERY;
	return strcmp(strtab_get(p->strings, f->name), "<module>") ? IMPORT_OTHER : IMPORT_MODULE;
}

static int classify_frames(struct import_fold *fold, const struct profile *p)
{
	for (uint32_t i = (uint32_t)fold->kinds.len; i < frametab_count(p->frames); i++) {
		enum import_frame kind = kind_of(p, frametab_get(p->frames, i));

		if (vec_push(&fold->kinds, (uint8_t)kind) < 0)
			return -ENOMEM;
		fold->has_machinery |= kind == IMPORT_MACHINERY;
	}
	return 0;
}

/* The last name in path, up to *len, which becomes its length. */
static const char *last_name(const char *path, size_t *len)
{
	const char *slash = memrchr(path, '/', *len);
	const char *name = slash ? slash + 1 : path;

	*len -= (size_t)(name - path);
	return name;
}

/* "json." of the folder json, if the module imported around it is json or one below. 0 or -ENOMEM.
 */
static int put_package(const char *folder, size_t len, const char *around, struct strbuf *out)
{
	for (const char *word = around; len && *word;) {
		size_t word_len = strcspn(word, ".");

		if (word_len == len && !memcmp(word, folder, len)) {
			int r = strbuf_append(out, around, (size_t)(word - around) + len);

			return r ? r : strbuf_putc(out, '.');
		}
		word += word_len + (word[word_len] == '.');
	}
	return 0;
}

/*
 * What is imported from a file: of /usr/lib/python3.12/json/decoder.py "json.decoder"; of
 * /srv/shop/cart.py "shop.cart" while shop, or a module of it, is imported, and else "cart".
 */
static int put_module(const struct profile *p, const struct frame *f, uint32_t around,
		      struct strbuf *out)
{
	const char *path = strtab_get(p->strings, f->file), *name;
	size_t path_len = strtab_len(p->strings, f->file), len = module_name_len(path, path_len);
	size_t root_len = profile_library_root(p, f->file), name_len = len, folder_len;
	int r;

	if (root_len || module_is_frozen(path, path_len))
		return module_put_name(path, path_len, root_len, out);
	name = last_name(path, &name_len);
	folder_len = name > path ? (size_t)(name - path) - 1 : 0;
	path = last_name(path, &folder_len);
	r = put_package(path, folder_len, strtab_get(p->strings, around), out);
	return r ? r : strbuf_append(out, name, name_len);
}

/* The frame that stands for the module of f; *name gets its dotted name. */
static int import_frame(struct profile *p, const struct frame *f, uint32_t around, uint32_t *name,
			uint32_t *frame)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	const size_t head = strlen(IMPORT_PREFIX);
	struct frame made = *f;
	int r = strbuf_puts(&text, IMPORT_PREFIX);

	if (!r)
		r = put_module(p, f, around, &text);
	if (!r)
		r = strtab_intern(p->strings, strbuf_str(&text) + head, text.len - head, name);
	if (!r)
		r = strtab_intern(p->strings, strbuf_str(&text), text.len, &made.name);
	return r ? r : frametab_intern(p->frames, &made, frame);
}

static int unknown_frame(struct profile *p, uint32_t *frame)
{
	struct frame f = { .kind = FRAME_MARKER };
	int r = strtab_intern(p->strings, "import", strlen("import"), &f.name);

	return r ? r : frametab_intern(p->frames, &f, frame);
}

/* Machinery hangs below who imports, not below the C that the statement called. */
static uint32_t importer(const struct import_fold *fold, const struct profile *p, uint32_t stack)
{
	const struct stack_entry e = stacktab_entries(p->stacks)[stack];

	if (stack && fold->kinds.items[e.frame] == IMPORT_NATIVE)
		stack = e.parent;
	return fold->paths.items[stack].folded;
}

/* Of a stack whose parent's path is known. */
static int fold_entry(struct import_fold *fold, struct profile *p, struct stack_entry e)
{
	struct import_path around = fold->paths.items[e.parent], path = around;
	const struct frame f = *frametab_get(p->frames, e.frame);
	uint32_t below = around.folded, frame = e.frame;
	int r = 0;

	path.below = IMPORT_OUTSIDE;
	switch (fold->kinds.items[e.frame]) {
	case IMPORT_NATIVE:
		if (around.below != IMPORT_OUTSIDE)
			return vec_push(&fold->paths, around);
		break;
	case IMPORT_MACHINERY:
		path.below =
			around.below != IMPORT_OUTSIDE ? around.below : importer(fold, p, e.parent);
		below = path.below;
		r = unknown_frame(p, &frame);
		break;
	case IMPORT_MODULE:
		if (around.below == IMPORT_OUTSIDE)
			break;
		below = around.below;
		r = import_frame(p, &f, around.inside, &path.inside, &frame);
		break;
	}
	if (below == e.parent && frame == e.frame)
		path.folded = (uint32_t)fold->paths.len; /* itself */
	else if (!r)
		r = stacktab_intern(p->stacks, below, frame, &path.folded);
	return r ? r : vec_push(&fold->paths, path);
}

int import_fold_samples(struct import_fold *fold, struct profile *p)
{
	uint32_t count = stacktab_count(p->stacks);
	int r = classify_frames(fold, p);

	if (r < 0 || !fold->has_machinery)
		return r; /* as most recordings: nothing to fold, and no memory for it */
	if (!fold->paths.len)
		r = vec_push(&fold->paths, ((struct import_path){ 0, IMPORT_OUTSIDE, 0 }));
	/* What the folding itself brings comes next time, and stays as it is: no frame is
	 * importlib's. */
	for (uint32_t i = (uint32_t)fold->paths.len; i < count && !r; i++)
		r = fold_entry(fold, p, stacktab_entries(p->stacks)[i]);
	for (size_t i = 0; i < p->samples.len && !r; i++)
		p->samples.items[i].stack = fold->paths.items[p->samples.items[i].stack].folded;
	return r;
}
