/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/pods.h"

#include <cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#define FILE_BYTES_MAX (1u << 20)

DEFINE_CLEANUP(DIR *, closedir)
DEFINE_CLEANUP(cJSON *, cJSON_Delete)

static void pod_release(struct pod *p)
{
	vec_release(&p->containers);
}

void pods_release(struct pods *p)
{
	for (size_t i = 0; i < p->len; i++)
		pod_release(&p->items[i]);
	vec_release(p);
}

const struct pod *pods_find(const struct pods *p, const char *uid)
{
	for (size_t i = 0; i < p->len; i++)
		if (!strcmp(p->items[i].names.uid, uid))
			return &p->items[i];
	return NULL;
}

static void take_label(const struct config *c, const char *key, const char *value, size_t len,
		       struct pod *out)
{
	if (c->service_label && !strcmp(key, c->service_label))
		pod_take_text(value, len, out->service, sizeof(out->service));
	for (size_t i = 0; i < c->pod_labels.len && i < CONFIG_LABELS_MAX; i++)
		if (!strcmp(key, c->pod_labels.items[i]))
			pod_take_text(value, len, out->labels[i], sizeof(out->labels[i]));
}

/* Takes over the pod, or frees it. */
static int add_pod(struct pods *pods, struct pod *pod)
{
	int r = 0;

	if (!*pod->names.uid || !*pod->names.name)
		pod_release(pod);
	else if (pods->len == PODS_MAX)
		r = err_set(-EFBIG, "more than %d pods", PODS_MAX);
	else
		r = vec_push(pods, *pod);
	if (r < 0)
		pod_release(pod);
	return r;
}

/* --- A list of the kubelet or the API server -------------------------------------------------- */

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key)) ?: "";
}

static void take_text(const cJSON *object, const char *key, char *out, size_t size)
{
	const char *text = text_of(object, key);

	pod_take_text(text, strlen(text), out, size);
}

/* "containerd://ID" */
static int take_containers(const cJSON *status, const char *key, struct pod *out)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(status, key))
	{
		const char *id = text_of(item, "containerID"), *bare = strstr(id, "://");
		struct pod_container c;

		if (!bare || out->containers.len == PODS_CONTAINERS_MAX)
			continue; /* it has not started */
		pod_take_text(bare + 3, strlen(bare + 3), c.id, sizeof(c.id));
		take_text(item, "name", c.name, sizeof(c.name));
		if (*c.id && *c.name && vec_push(&out->containers, c) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The list's own. A name of the next page that is cut or none would end in a list cut short. */
static int take_list_metadata(struct pods_reader *r)
{
	_cleanup_(cJSON_Deletep) cJSON *metadata =
		cJSON_ParseWithLength(r->object.bytes, r->object.len);
	const char *next = text_of(metadata, "continue");

	if (!metadata)
		return err_set(-EBADMSG, "the list's metadata are no JSON");
	pod_take_text(next, strlen(next), r->next, sizeof(r->next));
	return *next && !*r->next ? err_set(-EBADMSG, "the next page has no name") : 0;
}

/* Cuts "-" and `ending` off the end of a name that has more. */
static bool cut_ending(char *name, const char *ending)
{
	size_t len = strlen(name), cut = strlen(ending) + 1;

	if (len <= cut || name[len - cut] != '-' || strcmp(name + len - cut + 1, ending) != 0)
		return false;
	name[len - cut] = '\0';
	return true;
}

/* The scheduled minute that a CronJob's controller puts behind its jobs' names; "": it is none. */
static const char *scheduled_minute(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && strlen(dash + 1) >= 8 && !dash[1 + strspn(dash + 1, "0123456789")] ? dash + 1
											  : "";
}

/*
 * What a pod belongs to: the ReplicaSet of a Deployment is named by the pod's label
 * pod-template-hash, the Job of a CronJob by its minute. A node owns its static pods: that is none.
 */
static void take_workload(const cJSON *metadata, struct pod *out)
{
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(metadata, "labels"), *owner;
	const char *minute;

	cJSON_ArrayForEach(owner, cJSON_GetObjectItemCaseSensitive(metadata, "ownerReferences"))
	{
		if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(owner, "controller")) ||
		    !strcmp(text_of(owner, "kind"), "Node"))
			continue;
		take_text(owner, "name", out->workload, sizeof(out->workload));
		take_text(owner, "kind", out->kind, sizeof(out->kind));
	}
	minute = scheduled_minute(out->workload);
	if (!strcmp(out->kind, "ReplicaSet") &&
	    cut_ending(out->workload, text_of(labels, "pod-template-hash")))
		snprintf(out->kind, sizeof(out->kind), "Deployment");
	else if (!strcmp(out->kind, "Job") && *minute && cut_ending(out->workload, minute))
		snprintf(out->kind, sizeof(out->kind), "CronJob");
}

static int take_item(struct pods_reader *r)
{
	static const char *const kinds[] = { "containerStatuses", "initContainerStatuses",
					     "ephemeralContainerStatuses", NULL };
	_cleanup_(cJSON_Deletep) cJSON *item =
		cJSON_ParseWithLength(r->object.bytes, r->object.len);
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(item, "metadata"), *label;
	const cJSON *annotations = cJSON_GetObjectItemCaseSensitive(metadata, "annotations");
	const cJSON *status = cJSON_GetObjectItemCaseSensitive(item, "status");
	struct pod pod = { 0 };
	int error = 0;

	if (!item)
		return err_set(-EBADMSG, "a pod entry is not valid JSON");
	take_text(metadata, "uid", pod.names.uid, sizeof(pod.names.uid));
	/* A static pod's cgroups are named by its hash; the API server gives it another uid. */
	if (*text_of(annotations, "kubernetes.io/config.hash"))
		take_text(annotations, "kubernetes.io/config.hash", pod.names.uid,
			  sizeof(pod.names.uid));
	take_text(metadata, "namespace", pod.names.space, sizeof(pod.names.space));
	take_text(metadata, "name", pod.names.name, sizeof(pod.names.name));
	take_workload(metadata, &pod);
	cJSON_ArrayForEach(label, cJSON_GetObjectItemCaseSensitive(metadata, "labels"))
	{
		const char *value = cJSON_GetStringValue(label);

		if (value && label->string)
			take_label(r->config, label->string, value, strlen(value), &pod);
	}
	for (size_t i = 0; kinds[i] && !error; i++)
		error = take_containers(status, kinds[i], &pod);
	if (error < 0) {
		pod_release(&pod);
		return error;
	}
	return add_pod(&r->pods, &pod);
}

static bool key_is(const struct pods_reader *r, const char *key)
{
	return r->key_len == strlen(key) && !memcmp(r->key, key, r->key_len);
}

/* Read as a whole: the objects in the list's array "items", and its own "metadata". */
static bool begins_object(const struct pods_reader *r)
{
	if (r->object_depth || r->open[0] != '{')
		return false;
	return (r->depth == 2 && r->open[1] == '[' && key_is(r, "items")) ||
	       (r->depth == 1 && key_is(r, "metadata"));
}

static void open_bracket(struct pods_reader *r, char c)
{
	if (c == '{' && begins_object(r))
		r->object_depth = r->depth + 1;
	if (r->depth < sizeof(r->open))
		r->open[r->depth] = c;
	r->depth++;
}

static int close_bracket(struct pods_reader *r)
{
	int error = 0;

	if (r->object_depth == r->depth) {
		error = r->depth == 2 ? take_list_metadata(r) : take_item(r);
		strbuf_truncate(&r->object, 0);
		r->object_depth = 0;
	}
	r->depth--;
	r->has_ended = !r->depth;
	return error;
}

static void step_string(struct pods_reader *r, char c)
{
	if (r->is_escaped)
		r->is_escaped = false;
	else if (c == '\\')
		r->is_escaped = true;
	else if (c == '"')
		r->in_string = false;
	if (r->in_string && r->depth == 1 && r->key_len < sizeof(r->key))
		r->key[r->key_len++] = c;
}

static int step(struct pods_reader *r, char c)
{
	int error = 0;

	if (!r->depth && (c != '{' || r->has_ended))
		return memchr(" \t\r\n", c, 4) ? 0 : err_set(-EBADMSG, "not a list of pods");
	if (r->in_string) {
		step_string(r, c);
	} else if (c == '"') {
		r->in_string = true;
		r->key_len = r->depth == 1 ? 0 : r->key_len;
	} else if (c == '{' || c == '[') {
		open_bracket(r, c);
	}
	if (r->object_depth) {
		if (r->object.len == PODS_ITEM_BYTES)
			return err_set(-EFBIG, "a pod of more than %u bytes", PODS_ITEM_BYTES);
		error = strbuf_putc(&r->object, c);
	}
	if (!error && !r->in_string && (c == '}' || c == ']'))
		error = close_bracket(r);
	return error;
}

int pods_reader_feed(struct pods_reader *r, const char *bytes, size_t len)
{
	int error = 0;

	r->bytes += len;
	if (r->bytes > PODS_BYTES_MAX)
		return err_set(-EFBIG, "more than %u bytes", PODS_BYTES_MAX);
	for (size_t i = 0; i < len && !error; i++)
		error = step(r, bytes[i]);
	return error;
}

int pods_reader_finish(struct pods_reader *r)
{
	return r->has_ended ? 0 : err_set(-EBADMSG, "not a complete list of pods");
}

void pods_reader_next(struct pods_reader *r)
{
	*r->next = '\0';
	r->has_ended = false;
}

void pods_reader_release(struct pods_reader *r)
{
	pods_release(&r->pods);
	strbuf_release(&r->object);
}

/* --- Files ------------------------------------------------------------------------------------ */

int pods_read_logs(const char *directory, struct pods *out)
{
	_cleanup_(closedirp) DIR *dir = opendir(directory);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return err_set(-errno, "%s: %s", directory, strerror(errno));
	while (!r && (entry = readdir(dir))) {
		struct pod pod = { 0 };

		if (pod_name_of_folder(entry->d_name, &pod.names) && !pods_find(out, pod.names.uid))
			r = add_pod(out, &pod);
	}
	return r;
}

/* KEY="VALUE" lines; what Kubernetes allows in a label's value needs no escapes. */
void pod_read_labels(const struct config *c, const char *text, size_t len, struct pod *out)
{
	for (size_t at = 0, n; at < len; at += n + 1) {
		const char *line = text + at;
		char key[CONFIG_POD_LABEL_BYTES];
		const char *equals;

		n = (size_t)((char *)(memchr(line, '\n', len - at) ?: text + len) - line);
		equals = memchr(line, '=', n);
		if (!equals || n - (size_t)(equals - line) < 3 || equals[1] != '"' ||
		    line[n - 1] != '"')
			continue;
		pod_take_text(line, (size_t)(equals - line), key, sizeof(key));
		take_label(c, key, equals + 2, n - (size_t)(equals - line) - 3, out);
	}
}

static int read_below(const char *directory, const char *name, char **text, size_t *len)
{
	_cleanup_(strbuf_releasep) struct strbuf path = STRBUF_INIT;
	int r = strbuf_appendf(&path, "%s/%s", directory, name);

	return r < 0 ? r : file_read(strbuf_str(&path), FILE_BYTES_MAX, text, len);
}

int pods_read_downward(const struct config *c, const char *directory, struct pods *out)
{
	_cleanup_(freep) char *labels = NULL;
	struct pod pod = { 0 };
	const struct {
		const char *name;
		char *to;
		size_t size;
	} words[] = { { "uid", pod.names.uid, sizeof(pod.names.uid) },
		      { "name", pod.names.name, sizeof(pod.names.name) },
		      { "namespace", pod.names.space, sizeof(pod.names.space) } };
	size_t len;
	int r;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		_cleanup_(freep) char *text = NULL;

		if ((r = read_below(directory, words[i].name, &text, &len)) < 0)
			return r;
		pod_take_text(text, strcspn(text, "\n"), words[i].to, words[i].size);
	}
	r = read_below(directory, "labels", &labels, &len);
	if (!r)
		pod_read_labels(c, labels, len, &pod);
	else if (r == -ENOENT)
		err_clear(); /* it need not be there */
	else
		return r;
	return pods_find(out, pod.names.uid) ? 0 : add_pod(out, &pod);
}
