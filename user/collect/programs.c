/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "collect/event_links.h"
#include "collect/features.h"
#include "collect/objects.h"
#include "collect/walked_tasks.h"
#include "pyebpf.skel.h"
#include "target/proc.h"

#define NO_LOOPS                                                                                 \
	"ticks alone can, where they are taken as before Linux 5.17: boot Linux 5.18 or newer, " \
	"built with CONFIG_DEBUG_INFO_BTF=y"

DEFINE_CLEANUP(struct pyebpf *, pyebpf__destroy)

#define LOG_STATS 4 /* BPF_LOG_STATS of kernel/bpf/verifier.c */

/* Of ticks those that the modes ask for; 0: all of them. */
static uint32_t ticks_flags(unsigned int modes)
{
	if (!modes || modes & MODE_CPU)
		return 0;
	return (modes & MODE_GIL ? SAMPLE_HOLDS_GIL : 0) |
	       (modes & MODE_EXCEPTION ? SAMPLE_HANDLES : 0);
}

/* Each source that is on gets its work spaces. */
static void give_scratch(struct session_config *c, const struct session_opts *opts)
{
	for (int i = 0; i < SOURCE_COUNT_; i++)
		if (session_opts_have_source(opts, i))
			c->scratch_row[i] = c->scratch_rows++;
}

static void give_labels(struct pyebpf *skel, const struct context_label_list *labels)
{
	struct session_config *c = (struct session_config *)&skel->rodata->session;
	struct label_config *configs = (struct label_config *)skel->rodata->label_configs;

	c->label_count = labels ? (__u8)labels->len : 0;
	c->has_thread_contexts = labels && labels->has_otel;
	for (size_t i = 0; i < c->label_count; i++)
		configs[i] = labels->items[i].config;
}

/* By which the kernel knows it, too. */
static int cgroup_inode(const struct cgroup *cgroup, __u64 *inode)
{
	struct stat st;

	if (fstat(cgroup->fd, &st) < 0)
		return err_set(-errno, "%s: %s", cgroup->path, strerror(errno));
	*inode = st.st_ino;
	return 0;
}

/* By which the kernel tells who sees the files that pyebpf sees. */
static int give_place(struct session_config *c)
{
	struct statx root;

	if (statx(AT_FDCWD, "/", AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID, &root) < 0)
		return err_set(-errno, "find the own root directory: %s", strerror(errno));
	c->root_inode = root.stx_ino;
	c->root_mount = root.stx_mask & STATX_MNT_ID ? (uint32_t)root.stx_mnt_id : UINT32_MAX;
	return 0;
}

/* Threads in system calls hold entries of spans that are handed over until they come back. */
static uint32_t task_works_needed(const struct session_config *c)
{
	if (!c->has_task_work)
		return 1; /* the kernel verifies what uses it all the same */
	return c->has_spans && c->has_exit_work ? TASK_WORKS_MAX : TASK_WORKS_OF_PAGES;
}

/* A quarter of the CPUs walk if the sampler takes all of its share, a quarter of each. */
static uint32_t task_scratches_needed(const struct session_config *c)
{
	uint32_t scratches = TASK_SCRATCHES_MIN;

	if (!c->has_task_work)
		return 1; /* the kernel verifies what uses it all the same */
	while (scratches < c->cpus / 2 && scratches < TASK_SCRATCHES_MAX)
		scratches *= 2;
	return scratches;
}

static int configure(struct pyebpf *skel, const struct session_opts *opts, int cpus,
		     const struct feature_probe *probe, bool is_old)
{
	struct session_config *c = (struct session_config *)&skel->rodata->session;
	uint32_t inode = 0;
	int r = pid_namespace_own(&inode);

	if (r < 0 || (r = give_place(c)) < 0)
		return r;
	c->has_task_work = feature_task_work(probe) && !opts->no_task_work && !is_old;
	c->pidns_inode = inode;
	c->cpus = cpus;
	c->wakeup_bytes = opts->ring_bytes / 4;
	c->own_pid = getpid();
	c->page_shift = (__u8)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	c->has_cgroup = opts->cgroup && opts->cgroup->is_v2;
	if (c->has_cgroup && (r = cgroup_inode(opts->cgroup, &c->cgroup_id)) < 0)
		return r;
	c->has_filter = !opts->is_system_wide && !c->has_cgroup;
	c->follow_children = opts->follow_children;
	c->ticks_flags = ticks_flags(opts->modes);
	c->has_opcodes = opts->has_opcodes || opts->has_native;
	c->has_gc = !opts->no_gc;
	c->has_spans = session_opts_have_source(opts, SOURCE_SWITCHES);
	if (c->has_spans && !feature_switches(probe))
		return err_set(-EOPNOTSUPP, "waiting cannot be recorded: this kernel has no "
					    "btf_trace_sched_switch: boot Linux 5.17 or newer with "
					    "CONFIG_DEBUG_INFO_BTF=y");
	if (c->has_spans && is_old)
		return err_set(-EOPNOTSUPP, "waiting cannot be recorded: " NO_LOOPS);
	if (session_opts_have_source(opts, SOURCE_EVENTS) && is_old)
		return err_set(-EOPNOTSUPP, "events cannot be recorded: " NO_LOOPS);
	if (opts->has_async && is_old)
		return err_set(-EOPNOTSUPP, "tasks cannot be recorded: " NO_LOOPS);
	if (opts->labels && opts->labels->has_otel && is_old)
		return err_set(-EOPNOTSUPP, "OpenTelemetry's ids cannot be recorded: " NO_LOOPS);
	if (c->has_spans && !feature_remote_memory(probe))
		return err_set(-EOPNOTSUPP, "waiting cannot be recorded: this kernel has no "
					    "bpf_copy_from_user_task: boot Linux 5.18 or newer");
	c->has_exit_hook = feature_exit_hook(probe) && !opts->no_exit_hook;
	c->has_exit_work = c->has_exit_hook && c->has_task_work;
	c->has_slots = c->has_spans && c->has_exit_work && probe->functions[KERNEL_SCHED_FREE].id &&
		       !opts->no_slots;
	if (c->has_exit_work && feature_rdonly_cast(probe)) {
		c->regs_type = probe->functions[KERNEL_PT_REGS].id;
		c->task_type = probe->functions[KERNEL_TASK].id;
	}
	c->task_works = task_works_needed(c);
	c->task_scratches = task_scratches_needed(c);
	give_scratch(c, opts);
	give_labels(skel, opts->labels);
	c->has_async = opts->has_async;
	c->span_ns = NS_PER_SECOND / opts->freq_hz;
	skel->bss->spans_stride = 1;
	if (opts->pid_namespace) {
		c->target_pidns = opts->pid_namespace->inode;
		c->target_pidns_depth = opts->pid_namespace->depth;
	}
	return 0;
}

static int set_cgroup(struct pyebpf *skel, const struct cgroup *cgroup)
{
	uint32_t zero = 0;

	if (bpf_map_update_elem(bpf_map__fd(skel->maps.cgroups), &zero, &cgroup->fd, BPF_ANY) < 0)
		return err_set(-errno, "choose the cgroup %s: %s", cgroup->path, strerror(errno));
	return 0;
}

/* Maps that the session's modes do without are not made. */
static int choose_maps(struct pyebpf *skel, const struct session_opts *opts)
{
	const struct session_config *c = &skel->rodata->session;
	const struct {
		struct bpf_map *map;
		bool is_needed;
	} rows[] = {
		{ skel->maps.cpu_ticks, session_opts_have_source(opts, SOURCE_TICKS) },
		{ skel->maps.cgroups, c->has_cgroup },
		{ skel->maps.asyncio_rows, c->has_async },
		{ skel->maps.thread_contexts, c->has_thread_contexts },
		{ skel->maps.thread_times, c->has_spans },
		{ skel->maps.gil_counts, c->has_spans },
		{ skel->maps.times_slots, c->has_slots },
		{ skel->maps.walked_tasks, opts->btf },
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(rows) / sizeof(*rows); i++)
		r = bpf_map__set_autocreate(rows[i].map, rows[i].is_needed);
	return r < 0 ? err_set(r, "choose the BPF maps: %s", strerror(-r)) : 0;
}

/* Programs that the session's modes do without are not loaded. */
static int choose_programs(struct pyebpf *skel, const struct session_opts *opts,
			   const struct feature_probe *probe, bool is_old)
{
	const struct session_config *c = &skel->rodata->session;
	bool has_ticks = session_opts_have_source(opts, SOURCE_TICKS);
	const struct {
		struct bpf_program *program;
		bool is_needed;
	} rows[] = {
		{ skel->progs.sample, has_ticks && !is_old },
		{ skel->progs.sample_old, has_ticks && is_old },
		{ skel->progs.list_tasks, !opts->btf },
		{ skel->progs.list_cpu_time, !opts->btf },
		{ skel->progs.walk_tasks, opts->btf },
		{ skel->progs.on_switch, c->has_spans },
		{ skel->progs.on_switched, c->has_spans && c->has_exit_hook && !c->has_exit_work },
		{ skel->progs.on_thread, c->has_spans },
		{ skel->progs.on_free, c->has_slots },
		{ skel->progs.on_migrate,
		  c->has_spans && c->has_exit_work && probe->functions[KERNEL_SCHED_MIGRATE].id },
		{ skel->progs.on_exec_times, c->has_spans },
		{ skel->progs.list_thread_times, c->has_spans },
		{ skel->progs.note_waited, c->has_spans },
		{ skel->progs.visit_thread, c->has_spans },
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(rows) / sizeof(*rows); i++)
		r = bpf_program__set_autoload(rows[i].program, rows[i].is_needed);
	if (!r)
		r = bpf_program__set_flags(skel->progs.visit_thread, BPF_F_SLEEPABLE);
	return r < 0 ? err_set(r, "choose the BPF programs: %s", strerror(-r)) : 0;
}

static int attach(struct pyebpf *skel, const struct session_opts *opts)
{
	int r = pyebpf__attach(skel); /* the sampler waits for its events */

	if (r < 0 || opts->btf)
		return r;
	skel->links.list_tasks = bpf_program__attach_iter(skel->progs.list_tasks, NULL);
	if (!skel->links.list_tasks)
		return -errno;
	skel->links.list_cpu_time = bpf_program__attach_iter(skel->progs.list_cpu_time, NULL);
	if (!skel->links.list_cpu_time)
		return -errno;
	if (!skel->rodata->session.has_spans)
		return 0;
	skel->links.list_thread_times =
		bpf_program__attach_iter(skel->progs.list_thread_times, NULL);
	return skel->links.list_thread_times ? 0 : -errno;
}

static int size_processes(struct bpf_map *procs, const struct feature_probe *probe)
{
	_cleanup_(pids_releasep) struct pids pids = VEC_INIT;
	int r = proc_list(&pids);

	if (!r && feature_growing_maps(probe))
		r = bpf_map__set_map_flags(procs, BPF_F_NO_PREALLOC);
	return r < 0 ? r : bpf_map__set_max_entries(procs, feature_process_rows(probe, pids.len));
}

static int size_maps(struct pyebpf *skel, const struct session_opts *opts,
		     const struct feature_probe *probe, int cpus)
{
	const struct session_config *c = &skel->rodata->session;
	uint32_t spare = session_opts_have_source(opts, SOURCE_EVENTS) ? EVENT_SPARE_SLOTS : 0;
	uint32_t remote = c->has_spans * REMOTE_SCRATCHES;
	int r;

	if ((r = size_processes(skel->maps.procs, probe)) < 0 ||
	    (r = bpf_map__set_max_entries(skel->maps.events, opts->ring_bytes)) < 0 ||
	    (r = bpf_map__set_max_entries(skel->maps.scratch, c->scratch_rows * cpus +
								      c->task_scratches + remote +
								      spare)) < 0 ||
	    (r = bpf_map__set_max_entries(skel->maps.task_samples, c->task_works)) < 0 ||
	    (r = bpf_map__set_max_entries(skel->maps.task_slots, c->task_works)) < 0 ||
	    (r = bpf_map__set_max_entries(skel->maps.walked_tasks, WALKED_TASKS_MAX)) < 0 ||
	    (r = bpf_map__set_max_entries(skel->maps.cpu_ticks, cpus)) < 0)
		return err_set(r, "size the BPF maps: %s", strerror(-r));
	return 0;
}

static int open_programs(const struct objects *o, uint32_t kernel_log_level, struct pyebpf **out)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = o->types_path);

	opts.kernel_log_level = kernel_log_level;
	*out = pyebpf__open_opts(&opts);
	return *out ? 0 : err_set(-errno, "open the BPF object: %s", strerror(errno));
}

static int load_programs(struct pyebpf *skel, const struct session_opts *opts)
{
	int r = pyebpf__load(skel);

	/* libbpf takes a probe of its own that finds no descriptor for a kernel that lacks it. */
	if (r == -EINVAL && feature_has_few_files())
		r = -EMFILE;
	if (opts->btf && (r == -EINVAL || r == -EACCES)) /* what the verifier says */
		return walked_tasks_misfit(opts->btf);
	if (r < 0)
		return err_set(r, "the kernel refused the BPF programs: %s (-vv shows its log)",
			       strerror(-r));
	objects_log_maps(skel->obj);
	if (opts->cgroup && opts->cgroup->is_v2 && (r = set_cgroup(skel, opts->cgroup)) < 0)
		return r;
	r = attach(skel, opts);
	return r < 0 ? err_set(r, "attach the BPF programs: %s", strerror(-r)) : 0;
}

static int start_programs(const struct session_opts *opts, struct feature_probe *probe,
			  uint32_t kernel_log_level, struct pyebpf **out)
{
	_cleanup_(objects_end) struct objects o = OBJECTS_INIT;
	_cleanup_(pyebpf__destroyp) struct pyebpf *skel = NULL;
	static const struct event_list no_events;
	bool is_old = feature_is_old(probe);
	int cpus = libbpf_num_possible_cpus(), r;

	if ((r = objects_begin(&o, probe)) < 0 ||
	    (r = open_programs(&o, kernel_log_level, &skel)) < 0 ||
	    (r = configure(skel, opts, cpus, probe, is_old)) < 0 ||
	    (r = choose_maps(skel, opts)) < 0 ||
	    (r = choose_programs(skel, opts, probe, is_old)) < 0 ||
	    (r = event_links_configure(skel, opts->events ? opts->events : &no_events, cpus)) < 0)
		return r;
	objects_bind_tasks(&o, skel->obj);
	if (skel->rodata->session.has_task_work)
		r = objects_bind_functions(&o, skel->obj);
	if (r < 0 || (r = size_maps(skel, opts, probe, cpus)) < 0 ||
	    (r = objects_write_types(&o, skel->obj)) < 0 || (r = load_programs(skel, opts)) < 0)
		return r;
	*out = take_ptr(skel);
	return 0;
}

int programs_start(const struct session_opts *opts, struct pyebpf **out)
{
	_cleanup_(feature_probe_release) struct feature_probe probe = { .is_old = opts->old_kernel,
									.btf = opts->btf };
	int r = features_check(&probe);

	if (r < 0 || (r = feature_kernel_types(&probe)) < 0)
		return r;
	if (log_level() < LOG_LEVEL_DEBUG)
		return start_programs(opts, &probe, 0, out);
	r = start_programs(opts, &probe, LOG_STATS, out);
	if (r < 0) {
		err_clear();
		r = start_programs(opts, &probe, 0, out); /* libbpf has all of the log told */
	}
	return r;
}
