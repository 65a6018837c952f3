/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_SELECT_OPTS_H
#define CMD_SELECT_OPTS_H

#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "profile/select.h"
#include "profile/strip.h"

/*
 * Options that tell which samples are looked at: the same rows in each command. Starts as zeros,
 * ends in select_opts_release().
 */
struct select_opts {
	struct opt_list patterns[SELECT_KEYS];
	const char *time_range, *kind;
	unsigned int merge; /* enum select_merge */
	bool collapses_stdlib, leaves_idle_out;
	bool folds_imports, keeps_imports; /* neither: as the command does */
};

/* clang-format off */
/* Rows of it, for commands that have containers as targets, too. */
#define SELECT_PATTERNS(o)                                                                                \
	OPT_LIST(0, "focus", &(o)->patterns[SELECT_FOCUS], "FUNCTION",                                    \
		 "keep samples with a matching function on the stack"),                           \
	OPT_LIST(0, "ignore", &(o)->patterns[SELECT_IGNORE], "FUNCTION", "drop samples with a matching function on the stack"),      \
	OPT_LIST(0, "hide", &(o)->patterns[SELECT_HIDE], "FUNCTION",                                      \
		 "remove matching frames; their time goes to the caller"),                                    \
	OPT_LIST(0, "module", &(o)->patterns[SELECT_MODULE], "MODULE",                                    \
		 "keep samples with this module or package on the stack"),                                      \
	OPT_LIST(0, "file", &(o)->patterns[SELECT_FILE], "FILE", "keep samples with this file on the stack (path or end of path)"),         \
	OPT_LIST(0, "thread", &(o)->patterns[SELECT_THREAD], "THREAD", "keep samples of this thread (name or TID)"),                 \
	OPT_LIST(0, "process", &(o)->patterns[SELECT_PROCESS], "PROCESS", "keep samples of this process (name or PID)")

#define SELECT_CONTAINERS(o)                                                                              \
	OPT_LIST(0, "container", &(o)->patterns[SELECT_CONTAINER], "ID",                                  \
		 "keep samples of this container (start of id) or pod (NAMESPACE/POD)")

#define SELECT_LABELS(o)                                                                                  \
	OPT_LIST(0, "label", &(o)->patterns[SELECT_LABEL], "NAME=VALUE",                                   \
		 "keep samples with this label; !NAME, !NAME=VALUE: without it"),                            \
	OPT_FLAG(0, "collapse-stdlib", &(o)->collapses_stdlib,                                            \
		 "fold calls inside the standard library into the first one"),                       \
	OPT_FLAG(0, "no-idle", &(o)->leaves_idle_out,                                                     \
		 "leave out idle threads: pool workers, event loops, servers")

#define SELECT_OPTIONS(o)                                                                                 \
	OPT_GROUP("Selection (GLOBs; each may repeat)"),                                                  \
	SELECT_PATTERNS(o),                                                                               \
	SELECT_CONTAINERS(o),                                                                             \
	SELECT_LABELS(o),                                                                                 \
	OPT_STR(0, "time-range", &(o)->time_range, "A..B",                                                \
		"keep this part of each recording: ..5s, 1m.., 10s..20s"),                               \
	OPT_STR(0, "kind", &(o)->kind, "KIND", "show this kind of sample; wall: cpu plus off-cpu"),         \
	OPT_ENUM(0, "merge", &(o)->merge, "BY", select_merge_names, "merge frames by line, function, file or module (default: line)"),  \
	OPT_FLAG(0, "fold-imports", &(o)->folds_imports,                                                  \
		 "show each import as one frame (default for reports and comparisons)"),                         \
	OPT_FLAG(0, "no-fold-imports", &(o)->keeps_imports,                                               \
		 "show importlib's frames (default for other formats)")

/* For commands that show source text. */
#define OPT_SOURCE_ROOT(to)                                                                               \
	OPT_STR(0, "source-root", to, "DIR",                                                              \
		"show source files found below DIR, for a recording from elsewhere")

/* Rows of a struct strip, for commands whose output may leave the house. */
#define STRIP_OPTIONS(s)                                                                                  \
	OPT_FLAG(0, "strip-paths", &(s)->paths,                                                           \
		 "remove directories, host, containers, source text and command lines"),                    \
	OPT_FLAG(0, "strip-source", &(s)->source, "remove source text and command lines")
/* clang-format on */

/* But for times and imports: they are of recordings. *q borrows the patterns. */
struct select_query select_opts_query(const struct select_opts *o);

/* *q borrows the patterns. EXIT_OK; EXIT_USAGE or another exit code, with a message. */
int select_opts_read(const struct call *call, const struct select_opts *o, struct select_query *q);

/* Whether import statements become one frame each: profile/imports.h. */
bool select_opts_folds_imports(const struct select_opts *o, bool by_default);

/* Appends them as they could be typed: "--focus 'parse*' --thread main". 0 or -ENOMEM. */
int select_put_query(const struct select_query *q, struct strbuf *out);

/*
 * Appends what is left and by what: "1,234 of 5,678 samples (21.7%): --focus 'parse*'".
 * of: what they are of; ticks are counted, other kinds are not. 0 or -ENOMEM.
 */
int select_put_sum(const struct select_query *q, const struct select_sum *sum, struct value_unit of,
		   struct strbuf *out);

/* Is it worth a word that there are samples of other kinds? */
static inline bool select_has_others(const struct select *s)
{
	return s->others && !s->query.kind;
}

/* Appends "125 samples of other kinds, see them by --kind: off-cpu". 0 or -ENOMEM. */
int select_put_others(const struct select *s, const struct profile *p, struct strbuf *out);

/* Appends "22.5 s: pool worker 13.5 s, event loop 9 s", of what was left out. 0 or -ENOMEM. */
int select_put_idle(const struct select *s, struct strbuf *out);

void select_opts_release(struct select_opts *o);

#endif
