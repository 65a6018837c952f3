/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_LABEL_SETS_H
#define COLLECT_LABEL_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/context_labels.h"
#include "profile/profile.h"

/* What the kernel sends once of each set of labels, and the set that it is in the profile. */
struct label_sets;

/* Both are borrowed and must outlive it. labels: NULL: those of tasks alone come. */
int label_sets_new(const struct context_label_list *labels, struct profile *profile,
		   struct label_sets **out);
void label_sets_free(struct label_sets *t);
DEFINE_CLEANUP(struct label_sets *, label_sets_free)

/* A record of the ring. 0, -EBADMSG: it is not what it says it is, -ENOMEM. */
int label_sets_add(struct label_sets *t, const struct labels_event *e, size_t size);

/*
 * What a thread's attribute is called by its process (LABEL_ATTRIBUTE); NULL: nothing. changes:
 * another number when names may have changed; borrowed.
 */
typedef const char *(*label_sets_name_fn)(void *arg, uint64_t process, uint8_t key);
void label_sets_set_names(struct label_sets *t, label_sets_name_fn fn, void *arg,
			  const uint32_t *changes);

/*
 * The set that samples have, by its identity, with what is in *set; that is left alone where it is
 * not known. 0, -ENOMEM or -EOVERFLOW.
 */
int label_sets_find(struct label_sets *t, uint64_t labels, uint32_t *set);

/* Samples whose set was not known: what had been sent of it was lost. */
uint64_t label_sets_lost(const struct label_sets *t);

/* Was any variable of this label met? */
bool label_sets_has_met(const struct label_sets *t, size_t number);

/*
 * Forgets all ids in the profile, and the sets that no sample has had since the last time. Returns
 * whether any were: the kernel has to send them again, if they come up.
 */
bool label_sets_forget_ids(struct label_sets *t);

/* There were too many: all is forgotten, and the kernel has to send them again. */
bool label_sets_has_overflown(struct label_sets *t);

size_t label_sets_bytes(const struct label_sets *t);

#endif
