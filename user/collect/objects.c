/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/objects.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "bpf/events.h"

#define LIBBPF_LOG_LINES 100 /* of one message: the last instructions, and the verdict */

#define FDINFO_BYTES_MAX 4096

#define LOAD_LOG "PROG LOAD LOG" /* in the message that has what the verifier says */

/*
 * libbpf's own words go to --verbose: what failed is said in ours. A verifier's log has MiBs, but
 * where all goes well and it is asked for (BPF_LOG_STATS) only how much work it was.
 */
__attribute__((format(printf, 2, 0))) static int libbpf_log(enum libbpf_print_level level,
							    const char *fmt, va_list ap)
{
	_cleanup_(freep) char *text = NULL;

	if (log_level() < LOG_LEVEL_DEBUG || (level == LIBBPF_DEBUG && !strstr(fmt, LOAD_LOG)))
		return 0;
	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL;
		return 0;
	}
	log_lines(LOG_LEVEL_DEBUG, text, LIBBPF_LOG_LINES);
	return 0;
}

/* What stands for a function of the kernel's, and which that is here; 0: there is none. */
struct stand_in {
	int number;
	uint32_t function;
};

/*
 * Has a program call the kernel's functions in place of what stands for them. Where there is none
 * the call stays, in code that the verifier sees is never reached.
 */
static int bind_functions(struct bpf_program *program, const struct feature_probe *probe)
{
	const struct stand_in rows[] = {
		{ TASK_WORK_SCHEDULE, feature_task_work(probe) },
		{ RDONLY_CAST, feature_rdonly_cast(probe) },
	};
	size_t count = bpf_program__insn_cnt(program);
	_cleanup_(freep) struct bpf_insn *insns = malloc(count * sizeof(*insns));

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(program), count * sizeof(*insns));
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < sizeof(rows) / sizeof(*rows); j++) {
			if (insns[i].code != (BPF_JMP | BPF_CALL) || insns[i].src_reg ||
			    insns[i].imm != rows[j].number || !rows[j].function)
				continue;
			insns[i].src_reg = BPF_PSEUDO_KFUNC_CALL;
			insns[i].imm = (int)rows[j].function;
		}
	return bpf_program__set_insns(program, insns, count);
}

int objects_bind_functions(const struct objects *o, struct bpf_object *object)
{
	struct bpf_program *program = NULL;
	int r = 0;

	while (!r && (program = bpf_object__next_program(object, program)))
		if (bpf_program__autoload(program))
			r = bind_functions(program, o->probe);
	return r;
}

/* The kernel refuses the tag on a static function, and takes one of another name for a comment. */
static void make_static(struct btf *btf, struct btf_type *tag)
{
	struct btf_type *function = (struct btf_type *)btf__type_by_id(btf, tag->type);

	function->info = BTF_KIND_FUNC << 24 | BTF_FUNC_STATIC; /* linux/btf.h: struct btf_type */
	tag->name_off += strcspn(TRUSTED_TAG, ":") + 1;
}

void objects_bind_tasks(const struct objects *o, struct bpf_object *object)
{
	struct btf *btf = bpf_object__btf(object);

	if (feature_task_arguments(o->probe))
		return;
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		struct btf_type *t = (struct btf_type *)btf__type_by_id(btf, id);

		if (btf_is_decl_tag(t) &&
		    !strcmp(btf__name_by_offset(btf, t->name_off), TRUSTED_TAG))
			make_static(btf, t);
	}
}

int objects_write_types(const struct objects *o, const struct bpf_object *object)
{
	const struct kernel_types *k = o->probe->types;
	const struct btf *btf = bpf_object__btf(object);
	VEC(struct kernel_type) structs = VEC_INIT;
	int r = 0;

	for (uint32_t id = 1; id < btf__type_cnt(btf) && !r; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (btf_is_composite(t) && t->name_off)
			r = vec_push(&structs,
				     ((struct kernel_type){ btf__name_by_offset(btf, t->name_off),
							    btf_kind(t), 0 }));
	}
	if (!r) {
		kernel_types_find(k, structs.items, structs.len);
		r = kernel_types_write(k, structs.items, structs.len, o->types_fd);
	}
	vec_release(&structs);
	return r;
}

/* Bytes, of /proc/self/fdinfo; 0: not known. */
static unsigned long long map_memory(int fd)
{
	_cleanup_(freep) char *text = NULL;
	const char *line;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (file_read(path, FDINFO_BYTES_MAX, &text, &len) < 0) {
		err_clear();
		return 0;
	}
	line = strstr(text, "memlock:");
	return line ? strtoull(line + strlen("memlock:"), NULL, 10) : 0;
}

void objects_log_maps(const struct bpf_object *object)
{
	struct bpf_map *map;

	if (log_level() < LOG_LEVEL_DEBUG)
		return;
	bpf_object__for_each_map(map, object)
	{
		int fd = bpf_map__fd(map);

		if (fd >= 0)
			log_debug("map %s: %u entries, %llu bytes", bpf_map__name(map),
				  bpf_map__max_entries(map), map_memory(fd));
	}
}

/* Sections of programs that belong to a function or a tracepoint of the kernel's. */
static const struct traced_section {
	const char *name;
	enum kernel_function function;
	enum bpf_attach_type type;
} traced_sections[] = {
	{ "iterator/task", KERNEL_ITER_TASK, BPF_TRACE_ITER },
	{ "traced/sched_switch", KERNEL_SCHED_SWITCH, BPF_TRACE_RAW_TP },
	{ "traced/sched_exit_tp", KERNEL_SCHED_EXIT, BPF_TRACE_RAW_TP },
	{ "traced/sched_process_fork", KERNEL_SCHED_FORK, BPF_TRACE_RAW_TP },
	{ "traced/sched_migrate_task", KERNEL_SCHED_MIGRATE, BPF_TRACE_RAW_TP },
	{ "traced/sched_process_free", KERNEL_SCHED_FREE, BPF_TRACE_RAW_TP },
};

/*
 * What register_traced() has undone, for the load. The functions that the program calls are behind
 * it now, and call the kernel's too.
 */
static int become_traced(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	const struct feature_probe *probe = (const struct feature_probe *)cookie;
	int r;

	for (size_t i = 0; i < sizeof(traced_sections) / sizeof(*traced_sections); i++) {
		const struct traced_section *s = &traced_sections[i];

		if (strcmp(s->name, bpf_program__section_name(prog)))
			continue;
		opts->expected_attach_type = s->type;
		opts->attach_btf_id = probe->functions[s->function].id;
		r = bind_functions(prog, probe);
		return r ? r : bpf_program__set_type(prog, BPF_PROG_TYPE_TRACING);
	}
	return -ENOENT;
}

/*
 * For an iterator, and for a tracepoint's program that knows the types of its arguments, libbpf
 * reads all of the kernel's types, to find the function it belongs to, which we know. So while
 * libbpf prepares it, it is of a type that belongs to none. Returns a handler for sections that
 * libbpf has none for, to be unregistered when the programs are attached: the one kind of handler
 * that libbpf 1.1 can register again after that without using memory it has freed.
 */
static int register_traced(const struct feature_probe *probe)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = become_traced,
		    .cookie = (long)probe);

	return libbpf_register_prog_handler(NULL, BPF_PROG_TYPE_RAW_TRACEPOINT, 0, &opts);
}

int objects_begin(struct objects *o, const struct feature_probe *probe)
{
	*o = OBJECTS_INIT;
	libbpf_set_print(libbpf_log);
	o->probe = probe;
	o->types_fd = memfd_create("pyebpf_types", MFD_CLOEXEC);
	if (o->types_fd < 0)
		return err_set(-errno, "open the BPF object: %s", strerror(errno));
	snprintf(o->types_path, sizeof(o->types_path), "/proc/self/fd/%d", o->types_fd);
	o->handler = register_traced(probe);
	return o->handler < 0
		       ? err_set(o->handler, "open the BPF object: %s", strerror(-o->handler))
		       : 0;
}

void objects_end(struct objects *o)
{
	if (o->handler > 0)
		libbpf_unregister_prog_handler(o->handler);
	if (o->types_fd >= 0)
		close(o->types_fd);
	*o = OBJECTS_INIT;
}
