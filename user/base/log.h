/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Progress and warnings on stderr, one line per call: "pyebpf: warning: TEXT". The only code
 * outside cmd/ that writes to the terminal. Lines of several threads never mix. Controls
 * (utf8_is_control()) and bytes that are not UTF-8 become '?': names from targets must not drive
 * the terminal. Of lines longer than 1,000 bytes the middle is left out.
 */
enum log_level {
	LOG_LEVEL_ERROR,   /* -q: nothing but errors */
	LOG_LEVEL_WARNING, /* the default */
	LOG_LEVEL_NOTE,    /* -v: what a user may want to know, e.g. a target that appeared */
	LOG_LEVEL_DEBUG,   /* -vv */
};

/* Call before threads start. Levels outside the enum are clamped to it. */
void log_set_level(int level);
enum log_level log_level(void);

/*
 * From now on lines with a level are JSON, for a service's log: {"time":"2026-01-31T09:30:00.123Z",
 * "level":"warning","message":TEXT}, level one of error, warning, info, debug.
 */
void log_set_json(bool is_json);

/* Leaves errno alone. */
void log_print(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * One line, whatever the level: prefix (at most 100 bytes), text (defused and cut as above),
 * newline. For what a command says when it fails.
 */
void log_line(const char *prefix, const char *text);

/*
 * Text of many lines, each as a line of its own. Only the last lines_max (> 0) of them, after one
 * that says how many there were before: a long log ends in its verdict.
 */
void log_lines(enum log_level level, const char *text, size_t lines_max);

/* Arguments are not evaluated where the level is off. */
#define log_at(level, ...)                               \
	do {                                             \
		if ((level) <= log_level())              \
			log_print((level), __VA_ARGS__); \
	} while (0)

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_note(...) log_at(LOG_LEVEL_NOTE, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
