/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "base/workers.h"
#include "inspect/process.h"
#include "target/proc.h"

/* A file that was asked for. */
struct source {
	struct work work;
	pid_t pid, door;
	uint64_t start_ticks; /* of pid */
	struct rights rights;
	char *name;
	char *text; /* NULL: it cannot be read */
	size_t len;
	int64_t changed_ns;  /* 0: not known */
	VEC(uint32_t) lines; /* where each begins */
};

/* What came of it. */
struct answer {
	pid_t pid;
	char *name;            /* owned */
	struct source *source; /* owned; NULL: its file system does not answer */
};

struct sources {
	struct workers *workers;
	VEC(struct answer) answers;
	bool is_given_up; /* too many file systems do not answer */
	bool is_refused;  /* a limit on processes was met */
};

int sources_new(struct sources **out)
{
	const struct workers_kind kind = { .files = APART_NO_FILES };
	_cleanup_(sources_freep) struct sources *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = workers_new(&kind, &s->workers);
	if (r < 0)
		return r;
	*out = take_ptr(s);
	return 0;
}

static void source_free(struct work *w)
{
	struct source *f = (struct source *)w;

	vec_release(&f->lines);
	free(f->text);
	free(f->name);
	free(f);
}

void sources_free(struct sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->answers.len; i++) {
		if (s->answers.items[i].source)
			source_free(&s->answers.items[i].source->work);
		free(s->answers.items[i].name);
	}
	vec_release(&s->answers);
	if (s->workers)
		workers_free(s->workers);
	free(s);
}

/* --- On a thread of its own ------------------------------------------------------------------- */

/* No "..": of a relative name that would be another file. */
static int open_in(const struct source *f)
{
	_cleanup_(closep) int fd = -1;
	struct rights now;
	char base[48];

	if (*f->name != '/' && strstr(f->name, ".."))
		return -ENOENT;
	if (rights_read(f->door, &now) < 0 || !rights_are_equal(&now, &f->rights)) {
		err_clear();
		return -EACCES;
	}
	snprintf(base, sizeof(base), "/proc/%d/task/%d/%s", f->pid, f->door,
		 *f->name == '/' ? "root" : "cwd");
	fd = rights_open(&f->rights, base, f->name);
	return fd < 0 || proc_is(f->pid, f->start_ticks) ? take_fd(fd) : -ESRCH;
}

static int split_lines(struct source *f)
{
	const char *end = f->text + f->len;

	for (const char *at = f->text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (vec_push(&f->lines, (uint32_t)(at - f->text)) < 0)
			return -ENOMEM;
		at = newline ? newline + 1 : end;
	}
	return 0;
}

static void read_source(struct work *w, void *context)
{
	struct source *f = (struct source *)w;
	_cleanup_(closep) int fd = open_in(f);
	struct stat st;
	ssize_t n;

	(void)context;
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	f->changed_ns = (int64_t)timespec_ns(&st.st_mtim);
	if (st.st_size <= 0 || st.st_size > SOURCE_BYTES_MAX ||
	    !(f->text = malloc((size_t)st.st_size)))
		return;
	n = file_pread(fd, f->text, (size_t)st.st_size, 0);
	f->len = n > 0 ? (size_t)n : 0;
	if (split_lines(f) < 0)
		f->lines.len = 0;
}

/* --- Asking ----------------------------------------------------------------------------------- */

static struct source *source_new(const struct inspect_process *p, const char *name)
{
	struct source *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->work = (struct work){ .run = read_source, .free = source_free };
	f->pid = p->pid;
	f->door = p->door;
	f->start_ticks = p->start_ticks;
	f->rights = p->rights;
	f->name = strdup(name);
	if (f->name)
		return f;
	free(f);
	return NULL;
}

/* 0: f belongs to the answers, or to its reader. -ENOMEM: to the caller. */
static int ask(struct sources *s, const struct inspect_process *p, struct source *f)
{
	struct answer answer = { .pid = p->pid, .name = strdup(f->name), .source = f };
	uint64_t patience_ns = workers_patience_ns(s->workers);
	int r = -EAGAIN;

	if (!answer.name || vec_push(&s->answers, answer) < 0) {
		free(answer.name);
		return -ENOMEM;
	}
	if (patience_ns)
		r = workers_run_patiently(s->workers, &f->work, patience_ns);
	if (r == -EINPROGRESS)
		s->answers.items[s->answers.len - 1].source = NULL;
	s->is_given_up |= r == -EAGAIN;
	s->is_refused |= r == -EUSERS;
	return 0;
}

/* NULL: it could not be asked for. "<string>" and the like are no files. */
static const struct source *find(struct sources *s, const struct inspect_process *p,
				 const char *name)
{
	struct source *f;

	for (size_t i = s->answers.len; i-- > 0;)
		if (s->answers.items[i].pid == p->pid && !strcmp(s->answers.items[i].name, name))
			return s->answers.items[i].source;
	if (!*name || *name == '<' || !(f = source_new(p, name)))
		return NULL;
	if (ask(s, p, f) == 0)
		return s->answers.items[s->answers.len - 1].source;
	source_free(&f->work);
	return NULL;
}

bool sources_line(struct sources *s, const struct inspect_process *p, const char *file, int line,
		  struct source_line *out)
{
	const struct source *f = find(s, p, file);
	size_t start, end;

	if (!f || line < 1 || (size_t)line > f->lines.len)
		return false;
	start = f->lines.items[line - 1];
	end = (size_t)line < f->lines.len ? f->lines.items[line] : f->len;
	while (end > start && (f->text[end - 1] == '\n' || f->text[end - 1] == '\r'))
		end--;
	*out = (struct source_line){ .text = f->text + start, .len = end - start };
	return true;
}

int64_t sources_changed_ns(struct sources *s, const struct inspect_process *p, const char *file)
{
	const struct source *f = find(s, p, file);

	return f ? f->changed_ns : 0;
}

void sources_say_missing(const struct sources *s)
{
	for (size_t i = 0; i < s->answers.len; i++)
		if (!s->answers.items[i].source)
			log_warning(SOURCE_LATE_WORDS, s->answers.items[i].name);
	if (s->is_given_up)
		log_warning(SOURCES_LATE_WORDS);
	if (s->is_refused)
		log_warning(SOURCES_NONE_WORDS, err_message(workers_say(-EUSERS)));
}
