/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/workers.h"
#include "profile/imports.h"
#include "profile/module.h"

#define MODULE "<module>"

/* --- a text ----------------------------------------------------------------------------------- */

void source_text_release(struct source_text *t)
{
	strbuf_release(&t->bytes);
	vec_release(&t->starts);
}

static int find_lines(struct source_text *t)
{
	int e = vec_push(&t->starts, 0);

	for (size_t i = 0; i < t->bytes.len && !e; i++)
		if (t->bytes.bytes[i] == '\n')
			e = vec_push(&t->starts, i + 1);
	if (!e && t->starts.items[t->starts.len - 1] != t->bytes.len)
		e = vec_push(&t->starts, t->bytes.len);
	return e;
}

const char *source_text_line(const struct source_text *t, uint32_t line, size_t *len, bool *is_cut)
{
	const char *from = t->bytes.bytes + t->starts.items[line - 1];

	*len = t->starts.items[line] - t->starts.items[line - 1];
	while (*len && (from[*len - 1] == '\n' || from[*len - 1] == '\r'))
		--*len;
	*is_cut = *len > SOURCE_LINE_BYTES_MAX;
	if (*is_cut)
		*len = SOURCE_LINE_BYTES_MAX;
	while (*is_cut && *len && ((unsigned char)from[*len] & 0xc0) == 0x80)
		--*len; /* not inside a character */
	return from;
}

static size_t skip_blanks(const char **line, size_t len)
{
	for (; len && (**line == ' ' || **line == '\t' || **line == '\f'); len--)
		++*line;
	return len;
}

static bool begins_def(const char *line, size_t len)
{
	static const char *const words[] = { "def ", "async ", "class ", "@" };

	len = skip_blanks(&line, len);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (len >= strlen(words[i]) && !memcmp(line, words[i], strlen(words[i])))
			return true;
	return false;
}

static bool holds_code(const char *line, size_t len)
{
	len = skip_blanks(&line, len);
	return len && *line != '#';
}

bool source_text_fits(const struct source_text *t, const char *name, const struct frame *f)
{
	bool is_module = !strcmp(name, MODULE), is_cut;
	uint32_t line = is_module ? f->line : f->first_line;
	size_t len = strlen(name);
	const char *text;

	if (!line || !len || (name[len - 1] == '>' && !is_module) ||
	    !strncmp(name, IMPORT_PREFIX, strlen(IMPORT_PREFIX)))
		return true;
	if (line > source_text_lines(t))
		return false;
	text = source_text_line(t, line, &len, &is_cut);
	return is_module ? holds_code(text, len) : begins_def(text, len);
}

/* --- reading a file, on a thread that may be left behind ---------------------------------------
 */

struct reading {
	struct work work;
	char *path;
	char *root; /* of --source-root, owned; NULL: the machine's */
	enum source_status status;
	struct strbuf text;
};

static void reading_free(struct work *w)
{
	struct reading *g = (struct reading *)w;

	strbuf_release(&g->text);
	free(g->root);
	free(g->path);
	free(g);
}

/* O_PATH first: the path is foreign, and may lead to a device. Negative errno, maybe a message. */
static int open_source(const struct reading *g, struct stat *st)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(closep) int root = -1, place = -1;
	int r;

	if (g->root) {
		root = open(g->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		place = (int)syscall(SYS_openat2, root, g->path, &how, sizeof(how));
	} else {
		place = open(g->path, O_PATH | O_CLOEXEC);
	}
	if (place < 0)
		return -errno;
	r = file_check_regular(place, g->path, st);
	if (r < 0 || file_is_of_kernel(place))
		return r < 0 ? r : -EINVAL;
	return file_reopen(place);
}

static void read_source(struct work *w, void *context)
{
	struct reading *g = (struct reading *)w;
	struct stat st;
	_cleanup_(closep) int fd = open_source(g, &st);
	ssize_t n;

	(void)context;
	err_clear(); /* the page says so in its own words */
	g->status = SOURCE_MISSING;
	if (fd < 0)
		return;
	g->status = SOURCE_TOO_LARGE;
	if (st.st_size > SOURCE_FILE_BYTES_MAX || strbuf_reserve(&g->text, (size_t)st.st_size) < 0)
		return;
	n = file_pread(fd, g->text.bytes, (size_t)st.st_size, 0);
	g->text.len = n > 0 ? (size_t)n : 0;
	g->status = n < 0 ? SOURCE_MISSING : SOURCE_EMBEDDED;
}

/* --- which files ------------------------------------------------------------------------------ */

enum { VERSION_NONE, VERSION_KNOWN, VERSION_REFUSED };

struct version {
	uint64_t digest;
	uint8_t state; /* VERSION_*; refused: of several versions, or not for every process to read
			*/
};

struct use {
	uint32_t file, frame;
};

struct source_reader {
	const struct profile *p;
	struct workers *workers;
	struct version *versions; /* by string id */
	VEC(struct use) uses;     /* by file */
	const char *root;         /* NULL: none */
	bool is_given_up;         /* too many file systems do not answer */
	bool is_refused;          /* a limit on processes was met */
};

static int find_versions(struct source_reader *r, const struct source_uses *uses)
{
	r->versions = calloc(strtab_count(r->p->strings) + 1, sizeof(*r->versions));
	if (!r->versions)
		return -ENOMEM;
	for (size_t i = 0; i < r->p->sources.len; i++) {
		const struct source_version *s = &r->p->sources.items[i];
		struct version *v = &r->versions[s->file];

		if (uses->recordings && !uses->recordings[s->recording])
			continue;
		if (!s->digest || (v->state == VERSION_KNOWN && v->digest != s->digest))
			v->state = VERSION_REFUSED;
		else if (v->state == VERSION_NONE)
			*v = (struct version){ s->digest, VERSION_KNOWN };
	}
	return 0;
}

static int compare_uses(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static int find_uses(struct source_reader *r, const struct source_uses *uses)
{
	uint32_t count = frametab_count(r->p->frames);

	for (uint32_t i = 0; i < count; i++) {
		const struct frame *f = frametab_get(r->p->frames, i);

		if (f->kind == FRAME_PYTHON && f->file && (!uses->frames || uses->frames[i]) &&
		    vec_push(&r->uses, ((struct use){ f->file, i })) < 0)
			return -ENOMEM;
	}
	if (r->uses.len)
		qsort(r->uses.items, r->uses.len, sizeof(*r->uses.items), compare_uses);
	return 0;
}

int source_reader_new(const struct source_uses *uses, struct source_reader **out)
{
	const struct workers_kind kind = { .files = APART_NO_FILES };
	_cleanup_(source_reader_freep) struct source_reader *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->p = uses->p;
	r->root = uses->root;
	if (r->root && access(r->root, X_OK) < 0)
		return err_set(-errno, "--source-root %s: %s", r->root, strerror(errno));
	if ((e = workers_new(&kind, &r->workers)) < 0 || (e = find_versions(r, uses)) < 0 ||
	    (e = find_uses(r, uses)) < 0)
		return e;
	*out = take_ptr(r);
	return 0;
}

void source_reader_free(struct source_reader *r)
{
	if (!r)
		return;
	if (r->workers)
		workers_free(r->workers);
	free(r->versions);
	vec_release(&r->uses);
	free(r);
}

/* --- one of them ------------------------------------------------------------------------------ */

/* Returns like workers_run_patiently(). */
static int run(struct source_reader *r, struct work *w)
{
	uint64_t patience_ns = workers_patience_ns(r->workers);

	return patience_ns ? workers_run_patiently(r->workers, w, patience_ns) : -EAGAIN;
}

/* The whole file, or why not. */
static int read_file(struct source_reader *r, const char *path, struct source_text *t,
		     enum source_status *status)
{
	struct reading *g = calloc(1, sizeof(*g));
	int e;

	if (!g)
		return -ENOMEM;
	*g = (struct reading){ .work = { .run = read_source, .free = reading_free } };
	g->path = strdup(path);
	g->root = r->root ? strdup(r->root) : NULL;
	e = g->path && (g->root || !r->root) ? run(r, &g->work) : -ENOMEM;
	if (e == -EINPROGRESS)
		log_warning(SOURCE_LATE_WORDS, path);
	if (e == -EAGAIN && !r->is_given_up)
		log_warning(SOURCES_LATE_WORDS);
	if (e == -EUSERS && !r->is_refused)
		log_warning(SOURCES_NONE_WORDS, err_message(workers_say(e)));
	r->is_given_up |= e == -EAGAIN;
	r->is_refused |= e == -EUSERS;
	*status = e ? SOURCE_MISSING : g->status;
	if (!e && g->status == SOURCE_EMBEDDED) {
		t->bytes = g->text;
		g->text = (struct strbuf)STRBUF_INIT;
	}
	if (e != -EINPROGRESS)
		reading_free(&g->work);
	return e == -ENOMEM ? e : 0;
}

static bool fits(const struct source_reader *r, uint32_t file, const struct source_text *t)
{
	size_t low = 0, high = r->uses.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->uses.items[middle].file < file)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i < r->uses.len && r->uses.items[i].file == file; i++) {
		const struct frame *f = frametab_get(r->p->frames, r->uses.items[i].frame);

		if (!source_text_fits(t, strtab_get(r->p->strings, f->name), f))
			return false;
	}
	return true;
}

int source_reader_read(struct source_reader *r, uint32_t file, struct source_text *t,
		       enum source_status *status)
{
	const char *path = strtab_get(r->p->strings, file);
	const struct version *v = &r->versions[file];
	int e;

	*status = SOURCE_UNKNOWN;
	if (!module_is_source(path, strtab_len(r->p->strings, file)) ||
	    (v->state != VERSION_KNOWN && !r->root))
		return 0;
	if ((e = read_file(r, path, t, status)) < 0 || *status != SOURCE_EMBEDDED)
		return e;
	if (v->state == VERSION_KNOWN && digest_of(t->bytes.bytes, t->bytes.len) != v->digest)
		*status = SOURCE_CHANGED;
	else if ((e = find_lines(t)) < 0 || !fits(r, file, t))
		*status = SOURCE_CHANGED;
	if (*status != SOURCE_EMBEDDED)
		source_text_release(t);
	return e;
}
