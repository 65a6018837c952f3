/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/context_labels.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"

#define SOURCE "contextvar:"

void context_labels_release(struct context_label_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		free(list->items[i].name);
	*list = (struct context_label_list){ 0 };
}

static bool is_name(const char *text, size_t len)
{
	if (!len || !(isalpha((unsigned char)*text) || *text == '_'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("_.-", text[i]))
			return false;
	return true;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

static bool is_taken(const char *name)
{
	static const char *const taken[] = { PROFILE_HANDLES_EXCEPTION, PROFILE_WAIT, PROFILE_TASK,
					     PROFILE_INTERPRETER };

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!strcmp(name, taken[i]))
			return true;
	return false;
}

bool context_label_is_name(const char *name)
{
	return is_name(name, strlen(name)) && !is_taken(name);
}

static int check_name(const struct context_label_list *list, const char *name)
{
	if (is_taken(name))
		return err_set(-EEXIST, "%s is a label that samples have anyway", name);
	for (size_t i = 0; i < list->len; i++)
		if (!strcmp(name, list->items[i].name))
			return err_set(-EEXIST, "%s is given twice", name);
	return 0;
}

static int append(struct context_label_list *list, const char *name, size_t name_len,
		  const char *variable, enum label_part part)
{
	struct context_label *label = &list->items[list->len];
	size_t len = strlen(variable);
	char *copy;
	int r;

	if (list->len == CONTEXT_LABELS_MAX)
		return err_set(-EOVERFLOW, "more than %d labels", CONTEXT_LABELS_MAX);
	copy = strndup(name, name_len);
	if (!copy)
		return -ENOMEM;
	r = check_name(list, copy);
	if (r < 0) {
		free(copy);
		return r;
	}
	*label = (struct context_label){ .name = copy,
					 .config = { .name_bytes = (__u32)len, .part = part } };
	memcpy(label->config.name, variable, len);
	if (!strcmp(copy, PROFILE_TRACE_ID))
		label->id_bytes = PROFILE_TRACE_ID_BYTES;
	if (!strcmp(copy, PROFILE_SPAN_ID))
		label->id_bytes = PROFILE_SPAN_ID_BYTES;
	list->len++;
	return 0;
}

/* Of opentelemetry/context/contextvars_context.py. */
static int append_otel(struct context_label_list *list)
{
	static const char variable[] = "current_context";
	int r = append(list, PROFILE_TRACE_ID, strlen(PROFILE_TRACE_ID), variable, LABEL_TRACE_ID);

	list->has_otel = true;
	return r < 0 ? r
		     : append(list, PROFILE_SPAN_ID, strlen(PROFILE_SPAN_ID), variable,
			      LABEL_SPAN_ID);
}

int context_labels_add(struct context_label_list *list, const char *text)
{
	const char *equals = strchr(text, '=');
	const char *variable = equals ? equals + 1 + strlen(SOURCE) : NULL;

	if (!strcmp(text, CONTEXT_LABELS_OTEL))
		return append_otel(list);
	if (!equals || !is_name(text, (size_t)(equals - text)) ||
	    strncmp(equals + 1, SOURCE, strlen(SOURCE)) != 0 || !*variable)
		return err_set(-EINVAL,
			       "'%s' is no label such as route=contextvar:route, where the program "
			       "has ContextVar(\"route\"), and not " CONTEXT_LABELS_OTEL,
			       text);
	if (!is_ascii(variable) || strlen(variable) > LABEL_NAME_BYTES)
		return err_set(-EINVAL, "%s: names of variables are ASCII, at most %d characters",
			       text, LABEL_NAME_BYTES);
	return append(list, text, (size_t)(equals - text), variable, LABEL_WHOLE);
}
