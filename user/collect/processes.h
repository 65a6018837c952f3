/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_PROCESSES_H
#define COLLECT_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "bpf/events.h"
#include "collect/discover.h"
#include "profile/profile.h"

/*
 * The processes that samples are of, by the identity that the kernel gives them, and what is known
 * of each. They come into the profile when their id is asked for.
 */
struct processes;

struct known_process {
	struct process_event event; /* without its arguments */
	char *command_line;         /* owned, "" if unknown */
	bool has_title;             /* which the process has written over its arguments */
	bool is_cut;                /* its command line: it goes on behind where that was */
	struct container *place;    /* owned, NULL: in no container or pod */
	VEC(uint64_t) gils;         /* addresses */
	uint64_t active;            /* see struct threading_process */
	uint64_t looked_ns;         /* when its title was asked for last, or it was met */
	uint64_t wait_ns;           /* from then to the next time */
	uint32_t id;                /* in the profile, UINT32_MAX: not yet */
	bool is_asked;              /* what is not known of it yet */
	bool is_final;              /* that is the last time */
	bool is_awaited;            /* its samples wait for that */
	bool is_title_asked;        /* its title, for which nothing waits */
	bool is_seen;               /* it has samples since its title was asked for */
	bool is_kept;               /* at the next processes_forget_ids() */
	bool was_gone;              /* at the last processes_forget_ids() */
};

/* Both are borrowed and must outlive it. */
int processes_new(struct discovery *discovery, struct profile *profile, struct processes **out);
void processes_free(struct processes *ps);
DEFINE_CLEANUP(struct processes *, processes_free)

/*
 * A process at its first sample, or known already, with its arguments this time. 0, -ENOMEM, or
 * -EBADMSG: the record ends before its arguments do.
 */
int processes_add(struct processes *ps, const struct process_event *e, size_t size);

/* NULL if it is not known. Borrowed: valid until the next processes_add() or _forget_ids(). */
struct known_process *processes_find(const struct processes *ps, uint64_t process);

/*
 * The sample's process, if it is not known: its record was lost, or it had none, so that it is
 * there by its numbers alone, and by the kernel's name of its thread (COMM_BYTES) unless that is
 * NULL. 0 or -ENOMEM.
 */
int processes_introduce(struct processes *ps, const struct sample_event *e, const char *comm);

/* Whether its container or its command line may come yet. */
bool processes_is_awaited(const struct processes *ps, uint64_t process);

/*
 * A process may give itself a title at any time: it is asked for at samples, ever more seldom.
 * now_ns: CLOCK_MONOTONIC. 0 or -ENOMEM.
 */
int processes_ask_title(struct processes *ps, uint64_t process, uint64_t now_ns);

/* Its kernel's name is another one: so may its title be, which is asked for soon. */
void processes_renamed(struct processes *ps, uint64_t process);

/*
 * Asks for the last time for what is awaited; is_last: and for the titles of those that have
 * samples since they were asked for. 0 or -ENOMEM.
 */
int processes_settle(struct processes *ps, bool is_last);

/* One that is known, in the profile. 0 or -ENOMEM. */
int processes_id(struct processes *ps, uint64_t process, uint32_t *id);

/* The number of a GIL of a process that is known, from 1; 0: of no address, or there are too many.
 * 0 or -ENOMEM. */
int processes_gil(struct processes *ps, uint64_t process, uint64_t gil, uint16_t *number);

/*
 * Forgets all ids, and altogether the processes that discovery_has() not, but for those that are to
 * be kept, or that it had at the last call: samples of one that has ended since may still be in the
 * ring. 0 or -ENOMEM.
 */
int processes_forget_ids(struct processes *ps);

/* met: so far, exited ones included; contained: those of them in a container or pod. */
void processes_count(const struct processes *ps, uint64_t *met, uint64_t *contained);

size_t processes_bytes(const struct processes *ps);

#endif
