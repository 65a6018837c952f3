/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_OBJECTS_H
#define COLLECT_OBJECTS_H

#include "collect/features.h"

struct bpf_object;

/*
 * How libbpf loads a BPF object without reading all of the kernel's types, which takes it tens of
 * milliseconds: it gets the few that the programs name as a file, and the functions that they
 * belong to are looked up by us.
 */
struct objects {
	const struct feature_probe *probe;
	int types_fd;        /* that file, in memory, and */
	char types_path[32]; /* its path, for bpf_object_open_opts.btf_custom_path */
	int handler;
};
#define OBJECTS_INIT ((struct objects){ .types_fd = -1, .handler = -1 })

/* Before an object is opened. probe has its types, and is borrowed. 0, or a negative errno with a
 * message. */
int objects_begin(struct objects *o, const struct feature_probe *probe);

/* When it is loaded, and its programs attached; or it failed. */
void objects_end(struct objects *o);

/* Of an open object, before it is loaded: puts in the kernel's functions, as far as it has them,
 * where programs call TASK_WORK_SCHEDULE and RDONLY_CAST. 0 or a negative errno. */
int objects_bind_functions(const struct objects *o, struct bpf_object *object);

/* Likewise: where the verifier takes no global functions whose parameter is a task (ANOTHER_TASK of
 * bpf/verifier.h), these become static ones. */
void objects_bind_tasks(const struct objects *o, struct bpf_object *object);

/* Likewise: writes the types of all structs that its programs name. 0 or a negative errno. */
int objects_write_types(const struct objects *o, const struct bpf_object *object);

/* Logs the memory of each map of a loaded object (-vv), as the kernel accounts for it. */
void objects_log_maps(const struct bpf_object *object);

#endif
