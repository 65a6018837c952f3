/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_ACCOUNT_H
#define CMD_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cmd/load.h"
#include "cmd/terminal.h"
#include "collect/source.h"
#include "profile/loss.h"

/*
 * CPU time of what was recorded, ns: as the scheduler counted it, where the recorder knew whose,
 * and with what did not run Python; else that of the samples. 0: not known.
 */
uint64_t account_cpu_ns(const struct profile *p, uint64_t ticks);

/*
 * "1.2 s of CPU time in 8 s", of a CPU time that is known, and where the scheduler counted it also
 * what was no Python's, and whether it mostly waited. wall_ns 0: not known.
 */
void account_put_cpu(struct line *l, const struct profile *p, uint64_t ticks, uint64_t wall_ns);

/* What samples of a source stand for, as it counts: each may be worth more than one event. */
uint64_t account_taken(const struct profile *p, enum sample_source source);

/*
 * Ticks that the samples stand for, as the recorder counted them; else, as many as there are said
 * to be: where waiting is recorded values are ns.
 */
uint64_t account_ticks(const struct profile *p, uint64_t ticks);

/*
 * Adds, as sentences, what was lost and which samples are less than whole, unless it is nothing.
 * side: whose, with a capital letter; "": there is but one. 0 or -ENOMEM.
 */
int account_note(const struct profile *p, uint64_t ticks, const char *side, struct texts *notes);

/*
 * "12 of 2,982 (0.4%): ring buffer full 10, thread state not readable 2", of a source's losses and
 * of what is in the samples; unit: enum sample_unit, of what is counted. sum > 0.
 */
void account_put_lost(struct line *l, const struct profile *p, const struct loss_row *rows,
		      uint64_t taken, uint8_t unit);

/* "ring buffer full 10, thread state not readable 2": rows that are not 0. */
void account_put_rows(struct line *l, const struct profile *p, const struct loss_row *rows,
		      uint8_t unit);

/*
 * Why a recording has no samples: what its ticks were instead, "477 ticks, 475 in processes without
 * Python, 2 in processes not identified", "no CPU time used". Returns 0 or -ENOMEM; *next: what to
 * try, static.
 */
int account_put_nothing(struct strbuf *out, const struct profile *p, const char **next);

/* "0.4%", "<0.1%", "100%": part of a whole > 0. */
struct share_text {
	char s[16];
};
struct share_text share_text(uint64_t part, uint64_t whole);

#endif
