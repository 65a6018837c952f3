/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_CONTEXT_LABELS_H
#define COLLECT_CONTEXT_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/events.h"

/*
 * Labels that `record --label` asks for: NAME=contextvar:VAR is the value, a str or an int, of the
 * context variable that is called VAR, ContextVar("VAR"), where the thread is; `otel` is trace_id
 * and span_id of the span of OpenTelemetry that it is in.
 */
struct context_label {
	char *name;            /* of the label; owned */
	unsigned int id_bytes; /* of trace and span ids: an int is told in so many; else 0 */
	struct label_config config;
};

/* Starts as { 0 }, ends in context_labels_release(). */
struct context_label_list {
	struct context_label items[CONTEXT_LABELS_MAX];
	size_t len;
	bool has_otel;     /* what processes publish for OpenTelemetry is wanted, too, */
	bool no_resources; /* but for resource attributes */
};

void context_labels_release(struct context_label_list *list);

#define CONTEXT_LABELS_OTEL "otel"

/* May a label be called that? As selections and other formats take it without quotes: route,
 * http.route, tenant-id; and samples have none of that name anyway. */
bool context_label_is_name(const char *name);

/*
 * Appends the labels that the text asks for. -EINVAL: the text asks for none, -EEXIST: there is one
 * of that name, or samples have it for something else, -EOVERFLOW: too many; with a message.
 * -ENOMEM. The list is then as it was, or has the first of two.
 */
int context_labels_add(struct context_label_list *list, const char *text);

#endif
