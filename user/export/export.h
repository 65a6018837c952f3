/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "export/value_type.h"
#include "profile/cube.h"
#include "profile/profile.h"

struct folder;
struct gil;
struct kinds;
struct texts;

struct export_attribute {
	const char *key, *value; /* NUL-terminated, borrowed; keys are ASCII */
};

struct export_attributes {
	const struct export_attribute *items;
	size_t count;
};

/* Formats that leave something out, or put it in, where the user asks for it. */
struct export_opts {
	bool no_sources;             /* page, heatmap: without source text */
	const char *source_root;     /* and where it is, if the user says so; else NULL */
	bool no_lines;               /* functions, not lines */
	bool threads;                /* tell threads apart: exporter_axes() */
	bool processes;              /* tell processes apart: the same */
	bool labels;                 /* pprof, OTLP: tell them apart: the same */
	const char *const *left_out; /* but of these names, NULL last; NULL: all are written */
	enum value_names names;      /* pprof: of the types of values */
	bool header;                 /* collapsed: a first line that says how long one sample is */
	uint32_t limit;              /* JSON: so many paths, and functions, at most; 0: all */
	double min_percent;          /* JSON: and none that is less of all ticks than this */
	const struct texts *notes;   /* page: what its reader should know; NULL: nothing */
	/* OTLP: where the profile is from, "service.name" among them; none: the host. */
	struct export_attributes resource;
};

/* What is written, of what, where to. All but the state is borrowed. */
struct exporting {
	const struct profile *p;
	const struct cube *cube;   /* finished, for finish(); of exporters that take samples NULL */
	const struct gil *gil;     /* finished; NULL: not known */
	const struct kinds *kinds; /* which are shown first, of those that there are; NULL: ticks */
	const struct export_opts *o;
	FILE *out;             /* NULL: it is a folder */
	struct folder *folder; /* NULL: it is not */
	void *state;           /* the exporter's own, between begin() and release() */
};

/* An exporter that takes samples, one by one. Others take sums of them: enum cube_axis, at least */
#define EXPORT_NEEDS_SAMPLES (1U << 31)

/* One whose output is looked at: imports are folded unless the user wants them. */
#define EXPORT_FOLDS_IMPORTS (1U << 29)

/* One that takes samples, but of one kind, as ticks. */
#define EXPORT_OF_ONE_KIND (1U << 28)

/* One whose output is a folder of files. */
#define EXPORT_OF_FOLDERS (1U << 27)

/* One that also takes the table of contention, where there is one. */
#define EXPORT_NEEDS_GIL (1U << 30)

/*
 * Functions return 0 or a negative errno. Errors of the stream end them early and are left to
 * whoever closes that.
 */
struct exporter {
	const char *name;
	const char *const *suffixes; /* ".collapsed", NULL last */
	const char *help;            /* one line, lower case, no full stop */
	unsigned int needs;          /* with the bits above */
	/* With EXPORT_OF_FOLDERS only: as folder_open() has them. */
	const char *mark;
	bool (*is_own)(const char *name);

	/* With EXPORT_NEEDS_SAMPLES only: before the first; all that p holds now; in any case. */
	int (*begin)(struct exporting *x);
	int (*take)(struct exporting *x);
	void (*release)(struct exporting *x);

	int (*finish)(struct exporting *x); /* after the last: of sums, all there is to write */
};

/* All of them, NULL last. */
extern const struct exporter *const exporters[];

static inline bool exporter_needs_gil(const struct exporter *e)
{
	return e->needs & EXPORT_NEEDS_GIL;
}

static inline bool exporter_takes_samples(const struct exporter *e)
{
	return e->needs & EXPORT_NEEDS_SAMPLES;
}

static inline bool exporter_is_of_one_kind(const struct exporter *e)
{
	return e->needs & EXPORT_OF_ONE_KIND;
}

static inline bool exporter_makes_folders(const struct exporter *e)
{
	return e->needs & EXPORT_OF_FOLDERS;
}

static inline bool exporter_folds_imports(const struct exporter *e)
{
	return e->needs & EXPORT_FOLDS_IMPORTS;
}

/* Of the cube that it is to be given. */
unsigned int exporter_axes(const struct exporter *e, const struct export_opts *o);

/* Whether a label of a sample is not written. */
bool export_leaves_out(const struct export_opts *o, const struct profile *p,
		       const struct label_entry *label);

/* NULL if there is none of that name. */
const struct exporter *exporter_find(const char *name);

/* By the suffix of a file name; NULL if none writes such files. */
const struct exporter *exporter_for_path(const char *path);

/* What one that makes no folders, of sums, makes of these, which are finished, of p. As finish().
 */
int exporter_write(const struct exporter *e, const struct profile *p, const struct cube *c,
		   const struct export_opts *o, FILE *out);

/*
 * A file or a folder being written, which appears whole or not at all; path "-" is standard output,
 * of a file. Starts as
 * { .exporter, .path, .x.o }, ends in export_file_release(). Of an exporter of sums nothing is
 * taken, and export_file_finish() needs their cube.
 */
struct atomic_file;
struct export_file {
	const struct exporter *exporter;
	const char *path;         /* borrowed */
	uint64_t max_bytes;       /* as export_bytes_max() has them; 0: any number */
	struct exporting x;       /* its folder is owned */
	struct atomic_file *file; /* owned; NULL before the first samples, and of folders */
	bool has_begun;
};

/*
 * The most that is written of so many bytes of input, unless the user trusts them. Rows of a few
 * bits may each repeat a deep stack or a long name. The base is that large because real recordings
 * have a byte for a sample: an hour of one busy thread, 0.3 MB, is 0.5 GB with each sample's stack.
 */
#define EXPORT_BASE_BYTES (UINT64_C(1) << 30)
#define EXPORT_RATIO_MAX 64
uint64_t export_bytes_max(uint64_t input_bytes);

/* -E2BIG, with a message: the output at path was going to have more. */
int export_too_large(const char *path, uint64_t max_bytes);

/* Both 0 or a negative errno, -E2BIG beyond max_bytes, -EPIPE where the reader of our output has
 * left. */
int export_file_take(struct export_file *f, const struct profile *p);
int export_file_finish(struct export_file *f, const struct profile *p, const struct cube *c);
void export_file_release(struct export_file *f);

extern const struct exporter exporter_collapsed;
extern const struct exporter exporter_otlp;
extern const struct exporter exporter_pprof;
extern const struct exporter exporter_html;
extern const struct exporter exporter_heatmap;
extern const struct exporter exporter_svg;
/* In the table before json, whose suffix is the end of theirs. */
extern const struct exporter exporter_speedscope;
extern const struct exporter exporter_gecko;
extern const struct exporter exporter_perfetto;
extern const struct exporter exporter_pstats;
extern const struct exporter exporter_json;
extern const struct exporter exporter_jsonl;
extern const struct exporter exporter_script;

#endif
