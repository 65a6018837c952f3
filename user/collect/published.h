/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_PUBLISHED_H
#define COLLECT_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/discover.h"
#include "collect/session.h"
#include "profile/profile.h"

/*
 * What processes publish of themselves for readers outside (OTEP 4719, 4947), as labels of their
 * samples. They may begin to, or change it, at any time: each is looked at when it is first met,
 * after a second, and then after twice as long each time, up to a minute, as long as it has
 * samples.
 */
struct publications;

/* All are borrowed and must outlive it; has_resources: resource attributes are labels, too. */
int publications_new(struct session *session, struct discovery *discovery, struct profile *profile,
		     bool has_resources, struct publications **out);
void publications_free(struct publications *ps);
DEFINE_CLEANUP(struct publications *, publications_free)

/* A process that has a sample: it may be looked at. 0 or -ENOMEM. */
int publications_meet(struct publications *ps, const struct sample_event *e);

/* Whether the first look has not come back. */
bool publications_is_awaited(const struct publications *ps, uint64_t process);

/* The set of labels that all samples of a process have; *set is left alone if it is not known. */
int publications_labels(struct publications *ps, uint64_t process, uint32_t *set);

/* As label_sets_name_fn; arg: the publications. publications_changes(): as that has it. */
const char *publications_name(void *arg, uint64_t process, uint8_t key);
const uint32_t *publications_changes(const struct publications *ps);

/* Forgets ids in the profile, and processes that discovery_has() not. 0 or -ENOMEM. */
int publications_forget_ids(struct publications *ps);

#endif
