/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_DIFF_WORDS_H
#define EXPORT_DIFF_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.h"
#include "base/vec.h"
#include "diff/diff.h"
#include "diff/gate.h"

/* What a comparison says, in words for people: the terminal, Markdown and JUnit share them. */

/*
 * An amount of time, for ticks of current (base ticks: diff_baseline()), in what the comparison is
 * by: "1.2 ms" a run or a unit of work, "120 ms/s", "3.1%" of all, "2.1 MiB" or "1,200" of what is
 * counted; "87 samples" where a tick has no
 * known length.
 */
struct units_text diff_amount(const struct diff *d, double ticks);

/* For sentences: "slower", whatever the mark; "grown" of what is no time. */
const char *diff_class_word(const struct diff *d, uint8_t class);

/* What diff_amount() is of: "CPU time of a run". */
struct diff_amount_text {
	char s[80];
};
struct diff_amount_text diff_amount_words(const struct diff *d);

/* "+21%", "-50%", "x 12" from ten times on, "" for NAN. */
struct units_text diff_change(double ratio);

/* "+15% to +28%"; "" where it is not known. */
struct diff_interval_text {
	char s[2 * sizeof(struct units_text) + 8];
};
struct diff_interval_text diff_interval(double low, double high);

/* How sure a change is: "certain", "very likely", "likely", "unsure", "" for NAN. */
const char *diff_certainty(double q);

/* "noise within the runs": what it was measured by, or is presumed. */
struct diff_noise_text {
	char s[80];
};
struct diff_noise_text diff_noise(const struct diff *d);

/* Appends "different environments: CPU model: Xeon -> EPYC", as a note has it. 0 or -ENOMEM. */
struct difference;
struct strbuf;
int diff_put_difference(struct strbuf *out, const struct difference *d);

/* What the gate presumed of noise that one run a side cannot show; "" where it did not. */
struct diff_presumed_text {
	char s[256];
};
struct diff_presumed_text diff_presumed(const struct gate *g);

/* Where gate->is_blind. */
#define DIFF_BLIND_WORDS \
	"a uniform slowdown cannot be detected here: use --work, or record complete runs"

/*
 * The findings, each function once. By self time a function is slower for what it does itself, and
 * not for what it calls.
 */
enum diff_key { DIFF_KEY_SELF, DIFF_KEY_TOTAL };

enum diff_section {
	DIFF_SECTION_SLOWER,
	DIFF_SECTION_FASTER,
	DIFF_SECTION_NEW,
	DIFF_SECTION_REMOVED,
	DIFF_SECTION_UNTOLD, /* could have changed, the data cannot tell */
};
#define DIFF_SECTION_COUNT (DIFF_SECTION_UNTOLD + 1)
const char *diff_section_name(const struct diff *d, enum diff_section section); /* "slower" */

/* What is new or gone is so with all that it calls, whatever the others are told by. */
enum diff_key diff_section_key(enum diff_section section, enum diff_key key);

/* Indices of functions, largest change by that key first. Starts as { 0 }. */
struct diff_findings {
	struct diff_list {
		uint32_t *items; /* a VEC */
		size_t len;
		size_t cap;
	} section[DIFF_SECTION_COUNT];
};

/* 0 or -ENOMEM with *out empty. */
int diff_findings_make(const struct diff *d, enum diff_key key, struct diff_findings *out);
void diff_findings_release(struct diff_findings *f);

/* What a row shows of a function, by the key. */
struct diff_row {
	double before, after; /* ticks of current */
	const struct diff_measure *measure;
	uint8_t class;
};
struct diff_row diff_row(const struct diff *d, const struct diff_function *f, enum diff_key key);

/* The function's name, and the path of its file with its root stripped; "" for markers. Borrowed.
 */
const char *diff_name(const struct diff *d, const struct diff_function *f, size_t *len);
const char *diff_module(const struct diff *d, const struct diff_function *f, size_t *len);

/* Line of its def; 0: unknown. */
uint32_t diff_line(const struct diff *d, const struct diff_function *f);

#endif
