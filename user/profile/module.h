/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_MODULE_H
#define PROFILE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/profile.h"

/*
 * Which module a file is, and whose code: what names, rankings and comparisons go by. A module is
 * its file's path without its root, the folder that Python looks for modules in:
 *
 *	.../site-packages/, .../dist-packages/, .../lib/python3.12/, .../lib/python312.zip/
 *	the directory of the script: of the outermost `<module>` that is no library's
 */

/* Of "<frozen zipimport>". */
bool module_is_frozen(const char *path, size_t len);

/*
 * Could the path, as a code object has it, be that of a file of Python source? "//" and "/./" are
 * in none: a file has one name, so that a recording written by hand has one guess at its digest.
 */
bool module_is_source(const char *path, size_t len);

bool path_ends_in(const char *path, size_t len, const char *end);
/* path_ends_in(), by whole components: "b/c.py" is a tail of "/a/b/c.py". */
bool path_has_tail(const char *path, size_t len, const char *tail);

/* Bytes of the path that are a library's root, its last slash included; 0: no library's. */
size_t module_library_root(const char *path, size_t len);

/*
 * Bytes of the path, behind its root, that name the module: of "json/decoder.py" those of
 * "json/decoder", of "json/__init__.py" those of "json".
 */
size_t module_name_len(const char *path, size_t len);

/*
 * Appends the module's name as import statements have it: "json.decoder" of
 * /usr/lib/python3.12/json/decoder.py, "zipimport" of <frozen zipimport>; nothing of a file that is
 * none: "<string>", "". 0 or -ENOMEM.
 */
int module_put_name(const char *path, size_t len, size_t root_len, struct strbuf *out);

/* Whose code a frame is. */
enum origin {
	ORIGIN_OWN,
	ORIGIN_IMPORT,  /* the machinery of the import statement */
	ORIGIN_LIBRARY, /* an installed package's */
	ORIGIN_STDLIB,
	ORIGIN_NATIVE,
	ORIGIN_KERNEL,
	ORIGIN_MARKER,
	ORIGIN_TASK,
};
#define ORIGIN_COUNT (ORIGIN_TASK + 1)
enum origin origin_of(const struct profile *p, uint32_t name, uint32_t file, enum frame_type kind);

/* module_library_root() of a string of the profile, whose text is read once. */
size_t profile_library_root(const struct profile *p, uint32_t file);

struct module {
	uint32_t file;     /* string id in the profile */
	uint32_t root_len; /* bytes of its path */
	bool is_library;
	uint8_t lengthened; /* how often, to keep it apart */
};

/* All files of frames. */
struct modules {
	const struct profile *p; /* borrowed */
	VEC(struct module) items;
	uint32_t *of_file; /* by string id of the file: index + 1; 0: none */
};

/*
 * Roots are taken off only as far as files stay apart: of `/srv/a/main.py` and `/srv/b/main.py` the
 * modules are `a/main.py` and `b/main.py`; a library's file keeps the name that it would have
 * alone. has_frame: by frame id, which to look at, NULL: all; totals: by stack id, not 0 where a
 * stack counts, NULL: all do. 0, -ENOMEM or -EOVERFLOW; release out in any case.
 */
int modules_find(struct modules *out, const struct profile *p, const bool *has_frame,
		 const uint64_t *totals);
void modules_release(struct modules *m);

/* Of a frame that was looked at. */
static inline const struct module *module_of(const struct modules *m, uint32_t file)
{
	return &m->items.items[m->of_file[file] - 1];
}

/*
 * Appends what module_put_name() makes of it: below the script's folder as far as files stay apart,
 * a library's by its name there. 0 or -ENOMEM.
 */
int modules_put_name(const struct modules *m, uint32_t file, struct strbuf *out);

static inline const char *module_path(const struct modules *m, const struct module *module)
{
	return strtab_get(m->p->strings, module->file) + module->root_len;
}

#endif
