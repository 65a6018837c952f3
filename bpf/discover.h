/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_DISCOVER_H
#define BPF_DISCOVER_H

/* Which Python a process runs, as far as that can be told at a tick; else user space is asked. */

#include "bpf/session.h"
#include "bpf/stats.h"

#define EBUSY 16

/* Returns false for a task that its process's entry is not needed to leave out. */
static __always_inline bool is_wanted(struct task_struct *task, const struct task_facts *f)
{
	if (!f->pid || f->pid == session.own_pid)
		return false;
	if (session.target_pidns &&
	    !task_pid_in(BPF_CORE_READ(task, group_leader), session.target_pidns,
			 pidns_level + session.target_pidns_depth))
		return false;
	return !session.has_cgroup || bpf_current_task_under_cgroup(&cgroups, 0) == 1;
}

/* A mapping of a file. */
struct vma_search {
	struct binary_key key;
	__u64 vm_start;
	__u64 vm_pgoff;
};

static __always_inline void vma_note(struct vm_area_struct *vma, struct vma_search *v)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (!file)
		return;
	v->key = file_key(file);
	v->vm_start = known_field(vma, vm_start);
	v->vm_pgoff = known_field(vma, vm_pgoff) << (session.page_shift & 31);
}

#ifdef OLD_KERNEL
#define VMA_STEPS 32    /* a red-black tree of 65,530 mappings (vm.max_map_count) is no higher */
#define THREAD_SHIFT 14 /* of THREAD_SIZE: x86-64, and arm64, where it is a page at least */

/*
 * Until Linux 6.1 mappings are in a tree of their own. Read without its lock, while other threads
 * may change it: what is found must be of this process, and is looked at once more.
 */
static __always_inline long vma_find(struct task_struct *task, __u64 addr, struct vma_search *v)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct vm_area_struct *vma;
	struct rb_node *node;
	__u64 start;

	if (!bpf_core_field_exists(mm->mm_rb))
		return 0;
	node = BPF_CORE_READ(mm, mm_rb.rb_node);
	for (int i = 0; i < VMA_STEPS && node; i++) {
		vma = (void *)node - bpf_core_field_offset(struct vm_area_struct, vm_rb);
		start = BPF_CORE_READ(vma, vm_start);
		if (addr < start) {
			node = BPF_CORE_READ(node, rb_left);
			continue;
		}
		if (addr >= BPF_CORE_READ(vma, vm_end)) {
			node = BPF_CORE_READ(node, rb_right);
			continue;
		}
		vma_note(vma, v);
		if (BPF_CORE_READ(vma, vm_mm) != mm || BPF_CORE_READ(vma, vm_start) != start)
			__builtin_memset(v, 0, sizeof(*v));
		return 0;
	}
	return 0;
}

/* Where its user code is. Registers are at the end of its kernel stack. */
static __always_inline __u64 user_ip(struct task_struct *task)
{
	__u32 shift = session.page_shift > THREAD_SHIFT ? session.page_shift : THREAD_SHIFT;
	void *end = BPF_CORE_READ(task, stack) + (1ULL << (shift & 31));
	const struct pt_regs *regs = end - bpf_core_type_size(struct pt_regs);
	__u64 ip = 0;

	bpf_probe_read_kernel(&ip, sizeof(ip), regs_ip_at(regs));
	return ip;
}
#else
static long vma_met(struct task_struct *task, struct vm_area_struct *vma, struct vma_search *v)
{
	vma_note(vma, v);
	return 0;
}

/* -EBUSY, or 0 or another error where v says what there is. */
static __always_inline long vma_find(struct task_struct *task, __u64 addr, struct vma_search *v)
{
	return bpf_find_vma(task, addr, vma_met, v, 0);
}

static __always_inline __u64 user_ip(struct task_struct *task)
{
	return *(const __u64 *)regs_ip_at((struct pt_regs *)bpf_task_pt_regs(task));
}
#endif

/*
 * An address that should lie in the interpreter: where the program's own pointer into it leads, if
 * that is known, else where the user code is. Only one can be tried: bpf_find_vma() fails if it is
 * called twice in an interrupt.
 */
static __always_inline __u64 likely_address(struct task_struct *task,
					    const struct binary_row *program, __u64 start_code)
{
	__u64 addr = user_ip(task);

	if (program && program->layout == LAYOUT_UNSURE && program->from_start)
		read_user((struct door){}, &addr, sizeof(addr), start_code + program->from_start);
	return addr;
}

/* vma_find() of the current task. */
VERIFIED_ONCE int vma_find_own(struct vma_search *out, __u64 addr)
{
	struct vma_search v = {};
	long r;

	if (!out)
		return 0; /* for the verifier */
	r = vma_find(task_current(), addr, &v);
	*out = v;
	return r;
}

/* Tells user space of a process it should look at. v: the mapping that was met, or all zero. */
static __always_inline bool send_who(struct cpu_state *c, const struct task_facts *f,
				     const struct vma_search *v, const struct binary_key *exe,
				     __u64 start_code, bool is_exec, __u64 now)
{
	struct who_event e = {
		.kind = EVENT_WHO,
		.is_exec = is_exec,
		.pid = f->pid,
		.process = f->process,
		.start_ns = f->start_ns,
		.exec_id = f->exec_id,
		.text = v->key,
		.vm_start = v->vm_start,
		.vm_pgoff = v->vm_pgoff,
		.exe = *exe,
		.start_code = start_code,
		.ktime_ns = now,
	};

	if (bpf_ringbuf_output(&events, &e, sizeof(e), BPF_RB_FORCE_WAKEUP))
		return false;
	stat_add(c, STAT_WHO, 1);
	return true;
}

struct unidentified_event {
	struct sample_event sample;
	struct sample_part part;
};

/*
 * Sends a sample of a process that is not identified yet: user space may find later that it was no
 * Python, or that its Python had not begun. lasted_ns: how long a thread lived that ends now.
 */
static __always_inline bool tell_unidentified(struct unidentified_event *e,
					      const struct task_facts *f, __u32 source, __u32 event,
					      __u64 value, __u64 now, __u64 lasted_ns)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->sample.kind = EVENT_SAMPLE;
	e->sample.source = source;
	e->sample.cpu = bpf_get_smp_processor_id();
	e->sample.ktime_ns = now;
	e->sample.process = f->process;
	e->sample.value = value;
	e->sample.pid = f->pid;
	e->sample.tid = f->tid;
	e->sample.duration_ns = lasted_ns;
	e->sample.event = event;
	e->part.kind = PART_PYTHON;
	e->part.status = UNWIND_UNIDENTIFIED;
	e->part.opcode = OPCODE_NONE;
	return ring_send(e, sizeof(*e));
}

/* send_who() of c->who, at most every 8 ms (2^23 ns) for one process: false if it was too soon. */
VERIFIED_ONCE int ask_who(struct cpu_state *c, const struct vma_search *v,
			  const struct binary_key *exe, __u64 start_code, __u64 now)
{
	__u64 id;

	if (!c || !v || !exe)
		return false; /* for the verifier */
	id = hash_mix(c->who.process, now >> 23);
	if (is_sent(id) || !send_who(c, &c->who, v, exe, start_code, false, now))
		return false;
	mark_sent(id);
	return true;
}

/*
 * A process of a program that is known to run Python and has none yet: it is in the midst of exec,
 * or its linker has not come to that. *out says which Python it is going to be, and has no runtime.
 */
static __always_inline int proc_starts(const struct binary_row *program, struct proc_row *out)
{
	out->runtime = 0;
	out->layout = program->layout < LAYOUTS_MAX ? program->layout : program->interpreter;
	return STAT_RECORDED;
}

/* A lookup of a program that never ran Python waits for so long: most are gone by then. */
#define NEW_PROCESS_NS 1000000000

static __always_inline bool is_new_process(const struct task_facts *f)
{
	return bpf_ktime_get_boot_ns() - f->start_ns < NEW_PROCESS_NS;
}

/*
 * The current process, which is c->who: one without a row, with one from before an exec, or without
 * Python so far. That its program has a known interpreter in it, or leads to one, is enough to make
 * a row for this sample.
 */
static __always_inline int proc_discover(struct cpu_state *c, __u64 now, bool may_ask,
					 struct proc_row *out)
{
	struct task_struct *task = task_current();
	struct binary_key exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	struct binary_row *program = bpf_map_lookup_elem(&binaries, &exe), *binary;
	__u64 start_code = BPF_CORE_READ(task, mm, start_code), file;
	struct vma_search v = {};
	long r;

	if (program && program->from_start && !start_code)
		return proc_starts(program, out); /* in the midst of exec */
	if (program && program->layout < LAYOUTS_MAX && program->from_start) {
		ask_who(c, &v, &exe, start_code, now);
		stat_add(c, STAT_DISCOVERED, 1);
		out->runtime = start_code + program->from_start;
		out->layout = program->layout;
		return STAT_RECORDED;
	}
	r = vma_find_own(&v, likely_address(task, program, start_code));
	binary = v.vm_start ? bpf_map_lookup_elem(&binaries, &v.key) : NULL;
	if (binary && binary->layout < LAYOUTS_MAX) {
		ask_who(c, &v, &exe, start_code, now);
		stat_add(c, STAT_DISCOVERED, 1);
		out->runtime = v.vm_start - v.vm_pgoff + binary->text_to_runtime;
		out->layout = binary->layout;
		return STAT_RECORDED;
	}
	/* A file that is new to us may be an interpreter that the process has just loaded. */
	file = hash_mix(v.key.inode, v.key.dev);
	if (program && program->layout == LAYOUT_NONE && is_new_process(&c->who))
		may_ask = false;
	if ((may_ask || (v.vm_start && !is_sent(file))) && ask_who(c, &v, &exe, start_code, now))
		mark_sent(file);
	if (program && program->layout == LAYOUT_NONE)
		return STAT_NOT_PYTHON;
	/* The linker has not set the pointer yet: it leads nowhere, or back into the program. */
	if (program && program->from_start && r != -EBUSY &&
	    (!v.vm_start || (v.key.inode == exe.inode && v.key.dev == exe.dev)))
		return proc_starts(program, out);
	return STAT_UNKNOWN;
}

extern __u64 rows_refused; /* as the table of processes was full */
/* Processes that have got a row with a Python; user space adds its own. */
extern __u64 pythons_begun;

/* The latest of them, each at its PID modulo BEGUN_SLOTS until user space has taken it, and how
 * often a place was another's. */
extern __u32 begun_pids[BEGUN_SLOTS];
extern __u64 begun_missed;

static __always_inline void python_begins(__u32 pid)
{
	__u32 *slot = &begun_pids[pid % BEGUN_SLOTS];

	if (*slot && *slot != pid)
		__sync_fetch_and_add(&begun_missed, 1);
	*slot = pid;
	__sync_fetch_and_add(&pythons_begun, 1);
}

/* Without a filter nobody is missed: who has no row is met anew at each sample. */
static __always_inline void row_add(__u32 pid, const struct proc_row *row)
{
	bool is_full = bpf_map_update_elem(&procs, &pid, row, BPF_ANY);

	if (is_full && session.has_filter)
		__sync_fetch_and_add(&rows_refused, 1);
	if (!is_full && row->layout < LAYOUT_UNSURE)
		python_begins(pid);
}

/* A process without a row, whose parent is a target: it would have one if there had been room. */
static __always_inline bool is_refused_child(struct task_struct *task)
{
	struct task_struct *parent = BPF_CORE_READ(task, group_leader, real_parent, group_leader);
	__u32 pid;
	struct proc_row *row;

	if (!rows_refused || !session.follow_children)
		return false;
	pid = process_pid(parent);
	row = bpf_map_lookup_elem(&procs, &pid);
	return row && row->is_target && row->start_ns == BPF_CORE_READ(parent, start_boottime);
}

/*
 * The row of this process. A row that is removed meanwhile may become another process's while it is
 * copied: its start comes first and is looked at once more behind all else.
 */
static __always_inline bool proc_row_read(const struct task_facts *f, struct proc_row *out)
{
	__u32 pid = f->pid;
	const volatile struct proc_row *row = bpf_map_lookup_elem(&procs, &pid);

	if (!row)
		return false;
	*out = *(const struct proc_row *)row;
	__asm__ volatile("" ::: "memory");
	return row->start_ns == f->start_ns && row->start_ns == out->start_ns;
}

/* Returns true if it is unknown what the process runs, which is recorded if that is Python. */
static __always_inline bool is_unidentified(const struct task_facts *f)
{
	struct proc_row row;

	if (!proc_row_read(f, &row))
		return !session.has_filter;
	return (row.exec_id < f->exec_id || row.exec_id == ANY_PROGRAM) &&
	       (!session.has_filter || row.is_target);
}

/* Returns false if the task's program is known to run no Python. */
static __always_inline bool program_may_be_python(struct task_struct *task)
{
	struct binary_key exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	struct binary_row *known = bpf_map_lookup_elem(&binaries, &exe);

	return !known || known->layout != LAYOUT_NONE;
}

/*
 * Finds the Python of the current process, which is c->who. Returns STAT_RECORDED and sets c->row,
 * or returns the counter that says why not.
 */
static __always_inline int proc_find(struct cpu_state *c, __u64 now)
{
	const struct task_facts *f = &c->who;
	struct proc_row *out = &c->row;
	bool is_current = false, may_ask = true;
	int r;

	if (proc_row_read(f, out)) {
		is_current = out->exec_id == f->exec_id;
		if ((is_current && out->is_ours) || (session.has_filter && !out->is_target))
			return STAT_FILTERED;
		if (is_current && out->layout != LAYOUT_NONE)
			return STAT_RECORDED;
		may_ask = !is_current || now >= out->recheck_ns;
	} else if (session.has_filter) {
		return is_refused_child(task_current()) ? STAT_NO_ROW : STAT_FILTERED;
	}
	r = proc_discover(c, now, may_ask, out);
	return r == STAT_UNKNOWN && is_current ? STAT_NOT_PYTHON : r;
}

#endif
