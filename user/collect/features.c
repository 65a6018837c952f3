/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/features.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "collect/privilege.h"
#include "target/pid_namespace.h"
#include "target/proc.h"

#define USER_NS_INIT_INO 0xEFFFFFFDu /* include/linux/proc_ns.h, PROC_USER_INIT_INO */
#define SAMPLE_RATE_MIN 10000   /* Hz: what is measured to work; above it few will want to go */
#define MEMLOCK_OWN (64u << 20) /* bytes: maps, of which the ring is the largest, and programs */
#define NOFILE_OWN 128          /* maps, programs, links, files: beside an event a CPU */
#define YAMA_NO_ATTACH 3        /* security/yama/yama_lsm.c */
#define PROCESS_ROWS_MIN 16384
#define PROCESS_ROWS_EASY                                                                        \
	(1u << 18)                  /* 4 MB of the kernel's memory, where rows take theirs later \
				     */
#define PROCESS_ROWS_MAX (1u << 20) /* 100 MB, where all rows have theirs */

static void found(struct feature_probe *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void found(struct feature_probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->found, sizeof(p->found), fmt, ap);
	va_end(ap);
}

/* --- Permissions ------------------------------------------------------------------------------ */

static bool is_initial_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino == USER_NS_INIT_INO;
}

static enum feature_state probe_user_namespace(struct feature_probe *p)
{
	(void)p;
	return is_initial_user_namespace() ? FEATURE_OK : FEATURE_MISSING;
}

/* Capability numbers above 31 are in the second word (linux/capability.h, version 3). */
static bool has_capability(unsigned cap)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { 0 };

	if (syscall(SYS_capget, &head, sets) < 0)
		return false;
	return sets[cap / 32].effective >> cap % 32 & 1;
}

static enum feature_state probe_capability(unsigned cap, struct feature_probe *p)
{
	if (has_capability(cap))
		return FEATURE_OK;
	if (cap == CAP_SYS_PTRACE || !has_capability(CAP_SYS_ADMIN))
		return FEATURE_MISSING;
	found(p, "by CAP_SYS_ADMIN");
	return FEATURE_OK;
}

/* In a user namespace of its own the kernel does not count them. */
static bool has_right(unsigned cap)
{
	return (has_capability(cap) || has_capability(CAP_SYS_ADMIN)) &&
	       is_initial_user_namespace();
}

static enum feature_state probe_cap_bpf(struct feature_probe *p)
{
	return probe_capability(CAP_BPF, p);
}

static enum feature_state probe_cap_perfmon(struct feature_probe *p)
{
	return probe_capability(CAP_PERFMON, p);
}

static enum feature_state probe_cap_ptrace(struct feature_probe *p)
{
	return probe_capability(CAP_SYS_PTRACE, p);
}

static enum feature_state probe_cap_checkpoint(struct feature_probe *p)
{
	return probe_capability(CAP_CHECKPOINT_RESTORE, p) ? FEATURE_LIMITED : FEATURE_OK;
}

static enum feature_state probe_cap_dac(struct feature_probe *p)
{
	(void)p;
	return has_capability(CAP_DAC_READ_SEARCH) || has_capability(CAP_DAC_OVERRIDE)
		       ? FEATURE_OK
		       : FEATURE_LIMITED;
}

/* All that is asked of /proc is asked by PIDs that are ours. */
static enum feature_state probe_proc(struct feature_probe *p)
{
	char self[16] = "";

	(void)p;
	if (readlink("/proc/self", self, sizeof(self) - 1) < 0)
		return FEATURE_MISSING;
	return strtol(self, NULL, 10) == getpid() ? FEATURE_OK : FEATURE_MISSING;
}

static enum feature_state probe_pid_namespace(struct feature_probe *p)
{
	uint32_t inode = 0;
	int r = pid_namespace_own(&inode);

	if (r < 0)
		err_clear();
	if (r < 0 || inode)
		return FEATURE_LIMITED;
	found(p, "the machine's own");
	return FEATURE_OK;
}

static enum feature_state probe_yama(struct feature_probe *p)
{
	long scope;

	if (!file_number("/proc/sys/kernel/yama/ptrace_scope", &scope)) {
		found(p, "no Yama");
		return FEATURE_OK;
	}
	found(p, "%ld", scope);
	return scope >= YAMA_NO_ATTACH ? FEATURE_MISSING : FEATURE_OK;
}

/* --- BPF -------------------------------------------------------------------------------------- */

/* Too few descriptors, or too little memory: nothing that the kernel refuses. */
static bool is_short_of(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* Makes the smallest map there is. */
static int try_bpf(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pyebpf_doctor", sizeof(uint32_t),
				sizeof(uint32_t), 1, NULL);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static enum feature_state probe_bpf(struct feature_probe *p)
{
	int r;

	if (!has_right(CAP_BPF))
		return FEATURE_UNKNOWN;
	r = try_bpf();
	if (!r)
		return FEATURE_OK;
	found(p, "%s", strerror(-r));
	return is_short_of(r) ? FEATURE_UNKNOWN : FEATURE_MISSING;
}

static enum feature_state probe_btf(struct feature_probe *p)
{
	if (p->btf) {
		found(p, "%.100s", p->btf);
		return FEATURE_OK;
	}
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? FEATURE_OK : FEATURE_MISSING;
}

static enum feature_state probe_ring_buffer(struct feature_probe *p)
{
	(void)p;
	if (try_bpf() < 0)
		return FEATURE_UNKNOWN;
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) ? FEATURE_OK : FEATURE_MISSING;
}

/* Asked of the kernel: distributions carry new features back to old releases. */
static enum feature_state probe_helper(enum bpf_func_id helper, enum feature_state without)
{
	if (try_bpf() < 0)
		return FEATURE_UNKNOWN;
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, helper, NULL) ? FEATURE_OK
									       : without;
}

/*
 * Before Linux 5.11 what programs and maps take counts as memory that the user has locked; libbpf
 * raises the limit where it may. That kernel brought this helper, too, by which libbpf tells.
 */
static enum feature_state probe_memlock(struct feature_probe *p)
{
	struct rlimit limit;

	if (has_capability(CAP_SYS_RESOURCE) || getrlimit(RLIMIT_MEMLOCK, &limit) < 0 ||
	    limit.rlim_cur >= MEMLOCK_OWN ||
	    probe_helper(BPF_FUNC_ktime_get_coarse_ns, FEATURE_MISSING) != FEATURE_MISSING)
		return FEATURE_OK;
	found(p, "%llu KiB", (unsigned long long)limit.rlim_cur / 1024);
	return FEATURE_MISSING;
}

/* What is not loaded with these options the kernel need not be asked for. */
static enum feature_state probe_bpf_loop(struct feature_probe *p)
{
	if (p->is_old || p->btf) {
		found(p, "not used, with %s", p->btf ? "--btf" : "--old-kernel");
		return FEATURE_LIMITED;
	}
	return probe_helper(BPF_FUNC_loop, FEATURE_LIMITED);
}

static enum feature_state probe_find_vma(struct feature_probe *p)
{
	(void)p;
	return probe_helper(BPF_FUNC_find_vma, FEATURE_LIMITED);
}

static enum feature_state probe_task_pt_regs(struct feature_probe *p)
{
	(void)p;
	return probe_helper(BPF_FUNC_task_pt_regs, FEATURE_LIMITED);
}

/*
 * In lockdown mode "confidentiality" the kernel refuses this helper, since 6.12 in words that
 * libbpf's probe does not take for a refusal: where the mode can be read, it counts.
 */
static enum feature_state probe_lockdown(struct feature_probe *p)
{
	_cleanup_(freep) char *text = NULL;
	const char *mode, *end;
	size_t len;

	if (file_read("/sys/kernel/security/lockdown", 4096, &text, &len) < 0) {
		err_clear(); /* not mounted, not built in: the helper tells */
	} else if ((mode = strchr(text, '[')) && (end = strchr(mode, ']'))) {
		found(p, "%.*s", (int)(end - mode - 1), mode + 1);
		if (!strcmp(p->found, "confidentiality"))
			return FEATURE_MISSING;
	}
	return probe_helper(BPF_FUNC_probe_read_kernel, FEATURE_MISSING);
}

int feature_kernel_types(struct feature_probe *p)
{
	static const struct kernel_type functions[KERNEL_FUNCTIONS] = {
		[KERNEL_ITER_TASK] = { "bpf_iter_task", BTF_KIND_FUNC, 0 },
		[KERNEL_TASK_WORK] = { "bpf_task_work_schedule_resume", BTF_KIND_FUNC, 0 },
		[KERNEL_TASK_WORK_IMPL] = { "bpf_task_work_schedule_resume_impl", BTF_KIND_FUNC,
					    0 },
		[KERNEL_SCHED_SWITCH] = { "btf_trace_sched_switch", BTF_KIND_TYPEDEF, 0 },
		[KERNEL_SCHED_EXIT] = { "btf_trace_sched_exit_tp", BTF_KIND_TYPEDEF, 0 },
		[KERNEL_SCHED_FORK] = { "btf_trace_sched_process_fork", BTF_KIND_TYPEDEF, 0 },
		[KERNEL_SCHED_MIGRATE] = { "btf_trace_sched_migrate_task", BTF_KIND_TYPEDEF, 0 },
		[KERNEL_SCHED_FREE] = { "btf_trace_sched_process_free", BTF_KIND_TYPEDEF, 0 },
		[KERNEL_COPY_FROM_TASK] = { "bpf_copy_from_user_task", BTF_KIND_FUNC, 0 },
		[KERNEL_RDONLY_CAST] = { "bpf_rdonly_cast", BTF_KIND_FUNC, 0 },
		[KERNEL_PT_REGS] = { "pt_regs", BTF_KIND_STRUCT, 0 },
		[KERNEL_TASK] = { "task_struct", BTF_KIND_STRUCT, 0 },
		[KERNEL_ARGUMENT_TAGS] = { "btf_arg_tag", BTF_KIND_ENUM, 0 },
		[KERNEL_RSS_STAT] = { "btf_trace_rss_stat", BTF_KIND_TYPEDEF, 0 },
		[KERNEL_RSS_BATCH] = { "task_rss_stat", BTF_KIND_STRUCT, 0 },
		[KERNEL_MEM_ALLOC] = { "bpf_mem_alloc", BTF_KIND_STRUCT, 0 },
	};
	int r;

	if (p->types)
		return 0;
	r = kernel_types_open(p->btf ? p->btf : KERNEL_TYPES_PATH, &p->types);
	if (r < 0)
		return r;
	memcpy(p->functions, functions, sizeof(functions));
	kernel_types_find(p->types, p->functions, KERNEL_FUNCTIONS);
	return 0;
}

/* False: none, or none for us. Another row says why. */
static bool has_kernel_types(struct feature_probe *p)
{
	if (feature_kernel_types(p) == 0)
		return true;
	err_clear();
	return false;
}

static enum feature_state probe_task_iterator(struct feature_probe *p)
{
	if (p->btf)
		return FEATURE_OK; /* done without */
	if (!has_kernel_types(p))
		return FEATURE_UNKNOWN;
	return p->functions[KERNEL_ITER_TASK].id ? FEATURE_OK : FEATURE_MISSING;
}

/*
 * From Linux 7.0 the second name belongs to something that programs may not call. The number of
 * parameters tells what bpf/sample.bpf.c can call from what it cannot.
 */
uint32_t feature_task_work(const struct feature_probe *p)
{
	const struct kernel_type *f = &p->functions[KERNEL_TASK_WORK];
	int params = 4;

	if (!f->id) {
		f = &p->functions[KERNEL_TASK_WORK_IMPL];
		params = 5;
	}
	return f->id && kernel_types_params(p->types, f->id) == params ? f->id : 0;
}

uint32_t feature_rdonly_cast(const struct feature_probe *p)
{
	const struct kernel_type *f = &p->functions[KERNEL_RDONLY_CAST];

	return f->id && kernel_types_params(p->types, f->id) == 2 ? f->id : 0;
}

bool feature_task_arguments(const struct feature_probe *p)
{
	return p->functions[KERNEL_ARGUMENT_TAGS].id;
}

bool feature_is_old(struct feature_probe *p)
{
	return probe_bpf_loop(p) == FEATURE_LIMITED || probe_find_vma(p) == FEATURE_LIMITED ||
	       probe_task_pt_regs(p) == FEATURE_LIMITED;
}

bool feature_switches(const struct feature_probe *p)
{
	return p->functions[KERNEL_SCHED_SWITCH].id && p->functions[KERNEL_SCHED_FORK].id;
}

bool feature_growing_maps(const struct feature_probe *p)
{
	return p->functions[KERNEL_MEM_ALLOC].id && !p->is_old;
}

/* How many processes this machine can have. */
static uint32_t processes_most(void)
{
	long pids = PROC_PIDS_MAX, threads = PROC_PIDS_MAX;

	file_number("/proc/sys/kernel/pid_max", &pids);
	file_number("/proc/sys/kernel/threads-max", &threads);
	return (uint32_t)(pids < threads ? pids : threads);
}

uint32_t feature_process_rows(const struct feature_probe *p, size_t processes)
{
	size_t rows = 2 * processes, easy = PROCESS_ROWS_MIN;

	if (feature_growing_maps(p))
		easy = processes_most() < PROCESS_ROWS_EASY ? processes_most() : PROCESS_ROWS_EASY;
	if (rows < easy)
		rows = easy;
	return rows < PROCESS_ROWS_MAX ? (uint32_t)rows : PROCESS_ROWS_MAX;
}

bool feature_remote_memory(const struct feature_probe *p)
{
	return p->functions[KERNEL_COPY_FROM_TASK].id;
}

bool feature_exit_hook(const struct feature_probe *p)
{
	return p->functions[KERNEL_SCHED_EXIT].id;
}

bool feature_rss_batches(const struct feature_probe *p)
{
	return p->functions[KERNEL_RSS_BATCH].id;
}

static enum feature_state probe_rss(struct feature_probe *p)
{
	if (!has_kernel_types(p))
		return FEATURE_UNKNOWN;
	return p->functions[KERNEL_RSS_STAT].id ? FEATURE_OK : FEATURE_LIMITED;
}

static enum feature_state probe_rss_batches(struct feature_probe *p)
{
	if (!has_kernel_types(p))
		return FEATURE_UNKNOWN;
	return feature_rss_batches(p) ? FEATURE_LIMITED : FEATURE_OK;
}

static enum feature_state probe_switches(struct feature_probe *p)
{
	if (!has_kernel_types(p))
		return FEATURE_UNKNOWN;
	return feature_switches(p) ? FEATURE_OK : FEATURE_LIMITED;
}

static enum feature_state probe_process_table(struct feature_probe *p)
{
	_cleanup_(pids_releasep) struct pids pids = VEC_INIT;

	if (!has_kernel_types(p) || proc_list(&pids) < 0) {
		err_clear();
		return FEATURE_UNKNOWN;
	}
	found(p, "%zu processes, room for %u", pids.len, feature_process_rows(p, pids.len));
	return feature_growing_maps(p) ? FEATURE_OK : FEATURE_LIMITED;
}

static enum feature_state probe_remote_memory(struct feature_probe *p)
{
	if (!has_kernel_types(p))
		return FEATURE_UNKNOWN;
	return feature_remote_memory(p) ? FEATURE_OK : FEATURE_LIMITED;
}

static enum feature_state probe_exit_hook(struct feature_probe *p)
{
	if (!has_kernel_types(p))
		return FEATURE_UNKNOWN;
	return feature_exit_hook(p) ? FEATURE_OK : FEATURE_LIMITED;
}

/* Runs a callback in the thread's own context on our demand. */
static enum feature_state probe_task_work(struct feature_probe *p)
{
	if (!has_kernel_types(p))
		return FEATURE_UNKNOWN;
	return feature_task_work(p) ? FEATURE_OK : FEATURE_LIMITED;
}

static enum feature_state probe_jit(struct feature_probe *p)
{
	long value;

	if (!file_number("/proc/sys/net/core/bpf_jit_enable", &value))
		return FEATURE_UNKNOWN; /* root in the first network namespace sees it */
	found(p, "%s", value ? "on" : "off");
	return value ? FEATURE_OK : FEATURE_LIMITED;
}

static enum feature_state probe_unprivileged(struct feature_probe *p)
{
	long value;

	if (file_number("/proc/sys/kernel/unprivileged_bpf_disabled", &value))
		found(p, "%ld: %s", value,
		      value ? "for CAP_BPF only" : "for all users, which pyebpf does not need");
	return FEATURE_OK;
}

/* --- perf events ------------------------------------------------------------------------------ */

/* Opens an event, switched off, and closes it. 0 or a negative errno. */
static int try_event(uint32_t type, uint64_t config, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1000000,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* The state that a refused event means: without CAP_PERFMON nothing can be told. */
static enum feature_state event_state(struct feature_probe *p, int r, enum feature_state refused)
{
	if (!r || r == -ENODEV) /* a CPU that is offline */
		return FEATURE_OK;
	if ((r == -EACCES || r == -EPERM) && !has_right(CAP_PERFMON))
		return FEATURE_UNKNOWN;
	if (r != -ENOENT && r != -EOPNOTSUPP) /* no such event: the state says it */
		found(p, "%s", strerror(-r));
	return is_short_of(r) ? FEATURE_UNKNOWN : refused;
}

static enum feature_state probe_software_event(struct feature_probe *p)
{
	int r = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0);

	return event_state(p, r, FEATURE_MISSING);
}

static enum feature_state probe_cycles(struct feature_probe *p)
{
	int r = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1);

	return event_state(p, r, FEATURE_LIMITED);
}

static enum feature_state probe_paranoid(struct feature_probe *p)
{
	long value;

	if (!file_number("/proc/sys/kernel/perf_event_paranoid", &value))
		return FEATURE_UNKNOWN;
	if (privilege_is_admin_wanted() && !has_right(CAP_SYS_ADMIN)) {
		found(p,
		      "%ld, by which this kernel may want CAP_SYS_ADMIN: sudo sysctl -w "
		      "kernel.perf_event_paranoid=2",
		      value);
		return FEATURE_LIMITED;
	}
	if (value <= -1 || has_right(CAP_PERFMON)) {
		found(p, "%ld, which does not bind CAP_PERFMON", value);
		return FEATURE_OK;
	}
	found(p, "%ld", value);
	return FEATURE_LIMITED;
}

static enum feature_state probe_sample_rate(struct feature_probe *p)
{
	long value;

	if (!file_number("/proc/sys/kernel/perf_event_max_sample_rate", &value))
		return FEATURE_UNKNOWN;
	found(p, "%ld Hz", value);
	return value < SAMPLE_RATE_MIN ? FEATURE_LIMITED : FEATURE_OK;
}

/* --- The machine ------------------------------------------------------------------------------ */

static enum feature_state probe_kernel(struct feature_probe *p)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) < 0)
		return FEATURE_UNKNOWN;
	found(p, "Linux %.80s %.30s", u.release, u.machine);
	if (sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return FEATURE_UNKNOWN;
	return major > 5 || (major == 5 && minor >= 17) ? FEATURE_OK : FEATURE_LIMITED;
}

static bool is_few_files(rlim_t limit)
{
	return limit < (rlim_t)(libbpf_num_possible_cpus() + NOFILE_OWN);
}

static enum feature_state probe_nofile(struct feature_probe *p)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FEATURE_UNKNOWN;
	found(p, "%llu", (unsigned long long)limit.rlim_cur);
	return is_few_files(limit.rlim_cur) ? FEATURE_LIMITED : FEATURE_OK;
}

bool feature_has_few_files(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && is_few_files(limit.rlim_cur);
}

/* Root without the capabilities is in a container, whose engine decides on them. */
static enum feature_state probe_container(struct feature_probe *p)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{ "/.dockerenv", "Docker" },
		{ "/run/.containerenv", "Podman" },
		{ "/var/run/secrets/kubernetes.io", "Kubernetes" },
		{ "/run/systemd/container", "systemd-nspawn or LXC" },
	};
	const bool has_all =
		has_right(CAP_BPF) && has_right(CAP_PERFMON) && has_right(CAP_SYS_PTRACE);
	size_t i = 0;

	while (i < sizeof(marks) / sizeof(marks[0]) && access(marks[i].path, F_OK) < 0)
		i++;
	if (i < sizeof(marks) / sizeof(marks[0]))
		found(p, "looks like %s: %s exists", marks[i].name, marks[i].path);
	else
		found(p, "no sign of one");
	return geteuid() == 0 && is_initial_user_namespace() && !has_all ? FEATURE_LIMITED
									 : FEATURE_OK;
}

#define GRANT                                                                   \
	"run as root (sudo), or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_" \
	"ptrace,cap_checkpoint_restore+ep $(command -v pyebpf)"

/* Of containers: Kubernetes', Compose's and the command line's. */
#define UNCONFINED                                                                    \
	"securityContext: {seccompProfile: {type: Unconfined}}, in Docker's Compose " \
	"security_opt: [seccomp=unconfined], docker run --security-opt seccomp=unconfined"

/* clang-format off */
const struct feature features[] = {
	{ "kernel", "this kernel is older than Linux 5.17: rows below say what is missing",
	  "boot Linux 5.17 or newer, or leave it: from 5.10 on CPU time is recorded", 0, probe_kernel },
	{ "container", "root without capabilities: container engines grant only the capabilities you ask for",
	  "securityContext: {capabilities: {add: [BPF, PERFMON, SYS_PTRACE]}}, docker run --cap-add=BPF,PERFMON,SYS_PTRACE",
	  0, probe_container },
	{ "user namespace", "in a user namespace of its own (a rootless container) capabilities do not count",
	  "run it outside of the container, as root", -EPERM, probe_user_namespace },
	{ "/proc", "/proc belongs to a different PID namespace than pyebpf",
	  "mount ours (mount -t proc proc /proc, unshare --mount-proc), or run outside", -EPERM,
	  probe_proc },
	{ "PID namespace", "in a PID namespace of its own (a container) only its processes are seen",
	  "for all of the machine: docker run --pid=host, hostPID: true in Kubernetes, or run outside",
	  0, probe_pid_namespace },
	{ "CAP_BPF", "missing capability CAP_BPF, which loading BPF programs needs", GRANT, -EPERM, probe_cap_bpf },
	{ "CAP_PERFMON", "missing capability CAP_PERFMON, which sampling needs", GRANT, -EPERM, probe_cap_perfmon },
	{ "CAP_SYS_PTRACE", "missing capability CAP_SYS_PTRACE, which reading other processes needs",
	  GRANT, -EPERM, probe_cap_ptrace },
	{ "CAP_CHECKPOINT_RESTORE", "interpreters whose file was deleted or replaced are not found without CAP_CHECKPOINT_RESTORE",
	  GRANT, 0, probe_cap_checkpoint },
	{ "CAP_DAC_READ_SEARCH", "interpreters of other users are not found if they were deleted or are in directories you cannot read",
	  "sudo pyebpf (as a file capability this one would open every file to every user)", 0,
	  probe_cap_dac },
	{ "Yama ptrace_scope", "kernel.yama.ptrace_scope is 3: no process may read another, not even root's",
	  "set it to 2 or less in /etc/sysctl.d and boot: 3 holds until then", -EPERM, probe_yama },
	{ "bpf()", "the kernel refuses bpf(), though the capabilities are there: a seccomp profile or security module",
	  UNCONFINED, -EPERM, probe_bpf },
	{ "BTF", "this kernel has no type information (/sys/kernel/btf/vmlinux)",
	  "--btf FILE (btf of the agent's configuration) takes it from a file, or boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels are",
	  -EOPNOTSUPP, probe_btf },
	{ "ring buffer", "this kernel has no BPF ring buffer (it came with Linux 5.8)",
	  "boot Linux 5.10 or newer", -EOPNOTSUPP, probe_ring_buffer },
	{ "locked memory", "before Linux 5.11, BPF maps count as locked memory, and this user's limit may be too low",
	  "run as root (sudo), or ulimit -l unlimited", -EPERM, probe_memlock },
	{ "bpf_task_pt_regs", "a new process that is met in the kernel is looked for where its kernel stack ends",
	  "boot Linux 5.15 or newer, or leave it: samples are right", 0, probe_task_pt_regs },
	{ "bpf_loop", "CPU time alone is recorded (--mode cpu, gil, exception), not waiting, memory and events",
	  "boot Linux 5.18 or newer for these, or leave it", 0, probe_bpf_loop },
	{ "bpf_find_vma", "the first sample of a new process may be lost (process not identified)",
	  "boot Linux 5.17 or newer, or leave it: the next ticks are right", 0, probe_find_vma },
	{ "lockdown", "in lockdown mode confidentiality BPF programs may not read the kernel",
	  "boot with lockdown=integrity, or with Secure Boot off", -EOPNOTSUPP, probe_lockdown },
	{ "iter/task", "this kernel has no BPF task iterator (it came with Linux 5.8)",
	  "boot Linux 5.10 or newer", -EOPNOTSUPP, probe_task_iterator },
	{ "bpf_task_work", "pages not in memory cannot be read: some stacks are truncated there (counted as cut by a missing page)",
	  "boot Linux 6.18 or newer, or leave it: most samples are whole", 0, probe_task_work },
	{ "sched_switch", "waiting (--mode wall, off-cpu) cannot be recorded: BPF programs do not see this kernel's switches",
	  "boot Linux 5.17 or newer, built with CONFIG_DEBUG_INFO_BTF=y", 0, probe_switches },
	{ "copy_from_user_task", "waiting (--mode wall, off-cpu) cannot be recorded: BPF programs cannot read the memory of threads that do not run",
	  "boot Linux 5.18 or newer", 0, probe_remote_memory },
	{ "sched_exit_tp", "waits (--mode wall, off-cpu) are sampled when they begin: fewer short waits are kept, and missing pages are not read",
	  "boot Linux 6.16 or newer, or leave it: the sums are exact all the same", 0, probe_exit_hook },
	{ "rss_stat", "growth of memory (--mode memory) cannot be recorded: this kernel has no tracepoint kmem:rss_stat",
	  "boot a kernel built with CONFIG_FTRACE=y, as distributions' kernels are", 0, probe_rss },
	{ "rss_stat by page", "growth of memory (--mode memory) is told 64 pages at a time: a line may be given 256 KiB of the one before",
	  "boot Linux 6.2 or newer, or leave it: the sums are right", 0, probe_rss_batches },
	{ "table of processes", "a recording has room for twice as many processes as there are when it begins, at least for 16,384: those that find none are counted",
	  "boot Linux 6.1 or newer, or leave it", 0, probe_process_table },
	{ "BPF JIT", "the BPF JIT is off: each sample takes many times longer",
	  "sudo sysctl net.core.bpf_jit_enable=1", 0, probe_jit },
	{ "unprivileged BPF", "", "", 0, probe_unprivileged },
	{ "perf software events", "the kernel refuses perf_event_open(): a seccomp profile or security module",
	  UNCONFINED, -EPERM, probe_software_event },
	{ "hardware cycles", "no cycle counter, as in most virtual machines",
	  "nothing to do: pyebpf samples by the software clock", 0, probe_cycles },
	{ "perf_event_paranoid", "perf events are restricted to CAP_PERFMON",
	  GRANT, 0, probe_paranoid },
	{ "max sample rate", "the kernel drops samples above this rate",
	  "sudo sysctl kernel.perf_event_max_sample_rate=100000", 0, probe_sample_rate },
	{ "open files", "limit too low: a recording opens one perf event per CPU, and more",
	  "ulimit -n 4096", 0, probe_nofile },
};
/* clang-format on */
const int features_count = sizeof(features) / sizeof(features[0]);

const char *feature_state_name(enum feature_state state)
{
	static const char *const names[] = {
		[FEATURE_OK] = "ok",
		[FEATURE_LIMITED] = "limited",
		[FEATURE_MISSING] = "missing",
		[FEATURE_UNKNOWN] = "unknown",
	};

	return names[state];
}

enum feature_state feature_run(const struct feature *f, struct feature_probe *p)
{
	p->found[0] = '\0';
	return f->probe(p);
}

void feature_probe_release(struct feature_probe *p)
{
	kernel_types_free(p->types);
	p->types = NULL;
}

int features_check(struct feature_probe *p)
{
	struct utsname u = { .release = "unknown" };

	uname(&u);
	for (int i = 0; i < features_count; i++) {
		const struct feature *f = &features[i];

		if (!f->refusal || feature_run(f, p) != FEATURE_MISSING)
			continue;
		return err_set(f->refusal, "%s (Linux %s): %s", f->problem, u.release, f->remedy);
	}
	return 0;
}
