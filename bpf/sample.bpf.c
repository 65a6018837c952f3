/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* On-CPU samples: one perf_event program, run in the interrupted thread's own context. */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/events.h"
#include "bpf/cache.h"
#include "bpf/read.h"
#include "bpf/python.h"
#include "bpf/maps.h"
#include "bpf/stats.h"
#include "bpf/task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct session_config session = {};

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u64 sent[SENT_SLOTS];
__u64 epoch;
struct py_offsets layouts[LAYOUTS_MAX]; /* written by user space before any row names them */

/* The sampler may use a quarter of a CPU, and that for at most 25 ms at a stretch. */
#define BUDGET_SHARE 4
#define BUDGET_MAX_NS 25000000

#define EBUSY 16
#define SCHED_NORMAL 0 /* include/uapi/linux/sched.h */
#define SCHED_BATCH 3

/*
 * bpf_task_work_schedule_signal() of Linux 7.0, with a fifth argument (filled in by the verifier)
 * bpf_task_work_schedule_signal_impl() of 6.18. map is any map whose value holds a bpf_task_work.
 * User space puts the function that the kernel has in place of this number, before it loads the
 * program: a weak __ksym is refused by libbpf where the prototypes differ, and where it is absent
 * and the BTF of modules may not be read (without CAP_SYS_ADMIN).
 */
static long (*task_work_schedule)(struct task_struct *task, struct bpf_task_work *work, void *map,
				  int (*callback)(struct bpf_map *map, void *key, void *value),
				  void *aux) = (void *)TASK_WORK_SCHEDULE;

extern __u32 pidns_level;

/* PIDs are those that our own PID namespace has. */
static __always_inline __u32 process_pid(struct task_struct *task)
{
	return task_pid_in(task->group_leader, session.pidns_inode, pidns_level);
}

static __always_inline void ring_output(void *record, __u64 size, long *result)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= session.wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	*result = bpf_ringbuf_output(&events, record, size, flags);
}

static __always_inline bool ring_send(void *record, __u64 size)
{
	long r;

	ring_output(record, size, &r);
	return r == 0;
}

/* Weight of this tick's sample, 0: over budget, the weight goes to the next one. */
static __always_inline __u32 budget_take(struct cpu_state *c, __u64 now)
{
	__u64 elapsed = now - c->last_ns;
	__u32 weight;

	c->last_ns = now;
	if (elapsed > (__u64)BUDGET_MAX_NS * BUDGET_SHARE)
		elapsed = (__u64)BUDGET_MAX_NS * BUDGET_SHARE;
	c->budget_ns += elapsed / BUDGET_SHARE;
	if (c->budget_ns > BUDGET_MAX_NS)
		c->budget_ns = BUDGET_MAX_NS;
	if (c->budget_ns < 0) {
		c->skipped += c->ticks;
		return 0;
	}
	weight = c->ticks + c->skipped;
	c->skipped = 0;
	return weight;
}

/* A mapping of a file. */
struct vma_search {
	struct binary_key key;
	__u64 vm_start;
	__u64 vm_pgoff;
};

static long vma_note(struct task_struct *task, struct vm_area_struct *vma, struct vma_search *v)
{
	struct file *file = vma->vm_file;

	if (!file)
		return 0;
	v->key = file_key(file);
	v->vm_start = vma->vm_start;
	v->vm_pgoff = vma->vm_pgoff << 12;
	return 0;
}

/*
 * An address that should lie in the interpreter: where the program's own pointer into it leads, if
 * that is known, else where the user code is. Only one can be tried: bpf_find_vma() fails if it is
 * called twice in an interrupt.
 */
static __always_inline __u64 likely_address(struct task_struct *task,
					    const struct binary_row *program, __u64 start_code)
{
	__u64 addr = regs_ip((struct pt_regs *)bpf_task_pt_regs(task));

	if (program && program->layout == LAYOUT_UNSURE && program->from_start)
		read_user(&addr, sizeof(addr), start_code + program->from_start, false);
	return addr;
}

/*
 * Tells user space of a process it should look at, at most every 8 ms (2^23 ns) for one process:
 * false if it was too soon.
 */
static __always_inline bool ask_who(struct cpu_state *c, struct task_struct *task, __u64 process,
				    const struct vma_search *v, const struct binary_key *exe,
				    __u64 now)
{
	__u64 id = hash_mix(process, now >> 23);
	struct who_event e = {
		.kind = EVENT_WHO,
		.pid = process_pid(task),
		.start_ns = task->group_leader->start_boottime,
		.exec_id = task->group_leader->self_exec_id,
		.text = v->key,
		.vm_start = v->vm_start,
		.vm_pgoff = v->vm_pgoff,
		.exe = *exe,
		.start_code = BPF_CORE_READ(task, mm, start_code),
	};

	if (is_sent(id))
		return false;
	if (bpf_ringbuf_output(&events, &e, sizeof(e), BPF_RB_FORCE_WAKEUP))
		return false;
	mark_sent(id);
	stat_add(c, STAT_WHO, 1);
	return true;
}

/*
 * A process without a row, with one from before an exec, or without Python so far. That its program
 * has a known interpreter in it, or leads to one, is enough to make a row for this sample.
 */
static __always_inline int proc_discover(struct cpu_state *c, struct task_struct *task,
					 __u64 process, __u64 now, bool may_ask,
					 struct proc_row *out)
{
	struct binary_key exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	struct binary_row *program = bpf_map_lookup_elem(&binaries, &exe), *binary;
	__u64 start_code = BPF_CORE_READ(task, mm, start_code), file;
	struct vma_search v = {};
	long r;

	if (program && program->from_start && !start_code)
		return STAT_NO_TSTATE; /* in the midst of exec */
	if (program && program->layout < LAYOUTS_MAX && program->from_start) {
		ask_who(c, task, process, &v, &exe, now);
		stat_add(c, STAT_DISCOVERED, 1);
		out->runtime = start_code + program->from_start;
		out->layout = program->layout;
		return STAT_RECORDED;
	}
	r = bpf_find_vma(task, likely_address(task, program, start_code), vma_note, &v, 0);
	binary = v.vm_start ? bpf_map_lookup_elem(&binaries, &v.key) : NULL;
	if (binary && binary->layout < LAYOUTS_MAX) {
		ask_who(c, task, process, &v, &exe, now);
		stat_add(c, STAT_DISCOVERED, 1);
		out->runtime = v.vm_start - v.vm_pgoff + binary->text_to_runtime;
		out->layout = binary->layout;
		return STAT_RECORDED;
	}
	/* A file that is new to us may be an interpreter that the process has just loaded. */
	file = hash_mix(v.key.inode, v.key.dev);
	if ((may_ask || (v.vm_start && !is_sent(file))) && ask_who(c, task, process, &v, &exe, now))
		mark_sent(file);
	if (program && program->layout == LAYOUT_NONE)
		return STAT_NOT_PYTHON;
	/* The linker has not set the pointer yet: it leads nowhere, or back into the program. */
	if (program && program->from_start && r != -EBUSY &&
	    (!v.vm_start || (v.key.inode == exe.inode && v.key.dev == exe.dev)))
		return STAT_NO_TSTATE;
	return STAT_UNKNOWN;
}

/* The row of this process. */
static __always_inline int proc_find(struct cpu_state *c, struct task_struct *task, __u64 process,
				     __u64 now, struct proc_row *out)
{
	__u32 pid = process_pid(task);
	struct proc_row *row = bpf_map_lookup_elem(&procs, &pid);
	struct task_struct *leader = task->group_leader;
	bool is_current = false, may_ask = true;
	int r;

	if (row && row->start_ns == leader->start_boottime) {
		if (row->is_ignored || (session.has_filter && !row->is_target))
			return STAT_FILTERED;
		is_current = row->exec_id == leader->self_exec_id;
		if (is_current && row->layout != LAYOUT_NONE) {
			*out = *row;
			return STAT_RECORDED;
		}
		may_ask = !is_current || now >= row->recheck_ns;
	} else if (session.has_filter) {
		return STAT_FILTERED;
	}
	r = proc_discover(c, task, process, now, may_ask, out);
	return r == STAT_UNKNOWN && is_current ? STAT_NOT_PYTHON : r;
}

/* Process and thread at first sight, so that a process that is gone has a name. */
static __always_inline void introduce(struct py_scratch *s, struct task_struct *task, __u64 process,
				      __u32 layout, bool may_fault)
{
	struct process_event *p = (struct process_event *)s->message;
	struct thread_event *t = (struct thread_event *)s->message;
	__u64 name[2] = {}, id, start, bytes;

	if (!is_sent(process)) {
		__builtin_memset(p, 0, sizeof(*p));
		p->kind = EVENT_PROCESS;
		p->pid = s->sample.pid;
		p->ns_pid = task_ns_pid(task->group_leader);
		p->process = process;
		p->start_ns = task->group_leader->start_boottime;
		p->ppid = process_pid(task->real_parent);
		p->exec_id = task->group_leader->self_exec_id;
		p->layout = layout;
		bpf_probe_read_kernel_str(p->comm, sizeof(p->comm), task->group_leader->comm);
		start = task->mm ? task->mm->arg_start : 0;
		bytes = start ? task->mm->arg_end - start : 0;
		if (bytes > ARGS_BYTES)
			bytes = ARGS_BYTES;
		if (bytes && read_user(s->message + sizeof(*p), bytes, start, may_fault))
			bytes = 0;
		p->args_bytes = bytes;
		if (ring_send(p, sizeof(*p) + bytes))
			mark_sent(process);
	}

	bpf_get_current_comm(name, sizeof(name));
	id = hash_mix(hash_mix(hash_mix(process, task->pid), name[0]), name[1]);
	if (is_sent(id))
		return;
	__builtin_memset(t, 0, sizeof(*t));
	t->kind = EVENT_THREAD;
	t->pid = s->sample.pid;
	t->process = process;
	t->tid = s->sample.tid;
	__builtin_memcpy(t->comm, name, sizeof(t->comm));
	if (ring_send(t, sizeof(*t)))
		mark_sent(id);
}

/* Pointers only: values kept on the stack would have the verifier tell each state apart. */
struct describe_loop {
	struct py_scratch *s;
	const struct py_offsets *off;
	struct cpu_state *stats;
};

static __always_inline int describe_lines(struct describe_loop *l, __u32 chunk, bool may_fault)
{
	struct py_scratch *s = l->s;
	struct py_describing *d = &s->describing;
	struct lines_event *e = (struct lines_event *)s->message;
	__u64 id = hash_mix(d->id, chunk + 1);
	int n;

	if ((chunk + 1) * LINES_CHUNK >= d->lines_total)
		return LOOP_STOP;
	if (is_sent(id))
		return LOOP_NEXT;
	d->is_whole = 0;
	if (s->walk.bytes_left < LINES_CHUNK)
		return LOOP_STOP;
	n = py_describe_lines(s, d->id, d->lines_addr, d->lines_total, chunk + 1, may_fault);
	if (n < 0)
		return LOOP_STOP;
	e->pid = s->sample.pid;
	if (!ring_send(e, n & (2 * LINES_CHUNK - 1)))
		return LOOP_STOP;
	mark_sent(id);
	d->is_whole = 1;
	s->walk.bytes_left -= LINES_CHUNK;
	stat_add(l->stats, STAT_LINES_SENT, 1);
	return LOOP_NEXT;
}

static int describe_lines_now(__u32 chunk, struct describe_loop *l)
{
	return describe_lines(l, chunk, false);
}

static int describe_lines_paged(__u32 chunk, struct describe_loop *l)
{
	return describe_lines(l, chunk, true);
}

/* Sends what user space lacks of one code object. */
static __always_inline int describe(struct describe_loop *l, __u32 i, bool may_fault)
{
	struct py_scratch *s = l->s;
	struct py_describing *d = &s->describing;
	struct py_unsent *u = &s->unsent[i & (CODES_PER_SAMPLE - 1)];
	struct code_event *e = (struct code_event *)s->message;
	__u64 head_id = hash_mix(u->id, 0);
	__u32 bytes;
	int n;

	if (i >= s->walk.unsent)
		return LOOP_STOP;
	if (is_sent(u->id))
		return LOOP_NEXT;
	n = s->walk.bytes_left ? py_describe(s, l->off, u, may_fault) : 0;
	if (n <= 0) {
		if (n < 0)
			py_note_fault(&s->walk, u->addr, true);
		stat_add(l->stats, STAT_CODE_DEFERRED, 1);
		return LOOP_NEXT;
	}
	d->id = u->id;
	d->lines_addr = e->lines_addr;
	d->lines_total = e->lines_total;
	d->is_whole = 1;
	if (!is_sent(head_id)) {
		e->pid = s->sample.pid;
		e->layout = d->layout;
		bytes = n;
		if (bytes > sizeof(s->message) || !ring_send(e, bytes))
			return LOOP_NEXT;
		stat_add(l->stats, STAT_CODE_SENT, 1);
		s->walk.bytes_left -= bytes < s->walk.bytes_left ? bytes : s->walk.bytes_left;
	}
	if (d->lines_total > LINES_CHUNK) {
		mark_sent(head_id);
		if (may_fault)
			bpf_loop(LINES_CHUNKS_MAX - 1, describe_lines_paged, l, 0);
		else
			bpf_loop(LINES_CHUNKS_MAX - 1, describe_lines_now, l, 0);
	}
	if (d->is_whole)
		mark_sent(d->id);
	return LOOP_NEXT;
}

static int describe_now(__u32 i, struct describe_loop *l)
{
	return describe(l, i, false);
}

static int describe_paged(__u32 i, struct describe_loop *l)
{
	return describe(l, i, true);
}

static __always_inline void count_walk(struct cpu_state *c, const struct py_walk *w)
{
	stat_add(c, STAT_FRAMES, w->depth);
	if (w->deferred)
		stat_add(c, STAT_CODE_DEFERRED, w->deferred);
	if (w->flags & SAMPLE_AMBIGUOUS)
		stat_add(c, STAT_AMBIGUOUS, 1);
	if (w->flags & SAMPLE_CODE_FAULT)
		stat_add(c, STAT_CODE_FAULT, 1);
	if (w->status == UNWIND_TRUNCATED)
		stat_add(c, STAT_TRUNCATED, 1);
	else if (w->status == UNWIND_FAULT)
		stat_add(c, STAT_FAULT, 1);
	else if (w->status == UNWIND_CUT)
		stat_add(c, STAT_CUT, 1);
	else if (w->status == UNWIND_INVALID)
		stat_add(c, STAT_INVALID, 1);
}

/*
 * Walks the thread and describes what is new. Returns STAT_RECORDED when s->sample and s->records
 * hold a sample to be sent, else the counter that says why there is none.
 */
static __always_inline int take_sample(struct py_loop *l, struct cpu_state *c, __u32 layout,
				       bool may_fault)
{
	struct py_scratch *s = l->s;
	struct describe_loop d = { .s = s, .off = l->off, .stats = c };
	bool has_walked = false;
	int r;

	r = py_find_tstate(l, may_fault, &has_walked);
	if (has_walked)
		stat_add(c, STAT_TSTATE_WALK, 1);
	if (r)
		return r == PY_FAULT ? STAT_TSTATE_FAULT : STAT_NO_TSTATE;
	if (py_first_frame(s, l->off, may_fault))
		return STAT_TSTATE_FAULT;
	if (!s->walk.frame)
		return STAT_NO_FRAME;
	s->walk.generation = py_generation(s, l->off, may_fault);
	py_walk_frames(l, may_fault);
	if (!s->walk.depth && s->walk.status == UNWIND_COMPLETE)
		return STAT_NO_FRAME; /* 3.15: the thread's base frame alone */
	s->sample.opcode = session.has_opcodes ? py_opcode(s, l->off, may_fault) : OPCODE_NONE;
	s->describing.layout = layout;
	if (may_fault)
		bpf_loop(CODES_PER_SAMPLE, describe_paged, &d, 0);
	else
		bpf_loop(CODES_PER_SAMPLE, describe_now, &d, 0);
	return STAT_RECORDED;
}

static __always_inline bool send_sample(struct py_scratch *s, struct cpu_state *c)
{
	__u32 depth = s->walk.depth;

	s->sample.kind = EVENT_SAMPLE;
	s->sample.status = s->walk.status;
	s->sample.flags = s->walk.flags;
	s->sample.depth = depth;
	if (depth > FRAMES_MAX)
		return false; /* for the verifier */
	if (!ring_send(&s->sample, sizeof(s->sample) + depth * sizeof(struct frame_record)))
		return false;
	stat_add(c, STAT_WEIGHT, s->sample.weight);
	count_walk(c, &s->walk);
	return true;
}

static __always_inline struct py_scratch *scratch_get(__u32 slot)
{
	return bpf_map_lookup_elem(&scratch, &slot);
}

/* Task work: which of its scratch slots are taken. */
__u32 task_scratch_busy[TASK_SCRATCHES];

/*
 * Sets t->slot. Through the map: as the constants of an unrolled loop the slots would have the
 * verifier go through all that follows eight times.
 */
static __always_inline bool task_scratch_claim(struct task_sample *t)
{
	for (__u32 i = 0; i < TASK_SCRATCHES; i++) {
		if (!__sync_val_compare_and_swap(&task_scratch_busy[i], 0, 1)) {
			*(volatile __u32 *)&t->slot = i;
			return true;
		}
	}
	return false;
}

static __always_inline int task_sample_take(struct task_sample *t, struct cpu_state *c)
{
	__u32 slot = *(volatile __u32 *)&t->slot & (TASK_SCRATCHES - 1);
	struct py_scratch *s = scratch_get(session.cpus + slot);
	struct py_loop l = { .s = s };
	int r;

	if (!s)
		return STAT_TW_FAILED;
	s->thread = t->thread;
	l.thread = &s->thread;
	l.off = &layouts[t->layout & (LAYOUTS_MAX - 1)];
	s->sample = t->sample;
	s->walk.process = s->thread.process;
	s->walk.salt = t->sample.ktime_ns >> 7;
	s->walk.flags = (t->sample.flags & (SAMPLE_WEIGHTED | SAMPLE_KERNEL)) | SAMPLE_TASK_WORK;
	s->walk.has_fault = 0;
	r = take_sample(&l, c, t->layout, true);
	if (r == STAT_NO_TSTATE || r == STAT_NO_FRAME)
		return STAT_TW_OUTSIDE; /* it starts or ends */
	if (r != STAT_RECORDED)
		return STAT_TW_FAILED;
	s->sample.weight += __sync_lock_test_and_set(&t->joined, 0);
	return send_sample(s, c) ? STAT_TW_RECORDED : STAT_TW_RING_FULL;
}

/* Runs in the thread itself, before it returns to the code that the tick interrupted. */
static int task_sample_run(struct bpf_map *map, void *key, void *value)
{
	struct task_sample *t = value;
	struct cpu_state *c = this_cpu_state();
	int r = STAT_TW_FAILED;

	if (!c)
		return 0;
	if (task_scratch_claim(t)) {
		r = task_sample_take(t, c);
		__sync_lock_test_and_set(&task_scratch_busy[t->slot & (TASK_SCRATCHES - 1)], 0);
	}
	stat_add(c, r, t->ticks);
	stat_add(c, r == STAT_TW_OUTSIDE ? r : STAT_TW_FAILED,
		 __sync_lock_test_and_set(&t->joined, 0));
	__sync_lock_test_and_set(&t->tid, 0);
	return 0;
}

/*
 * Has this sample taken again where pages can be read in. Returns STAT_TASK_WORK; STAT_TW_JOINED if
 * the thread, still on its way back to user code, waits for that already; -1: not possible now.
 */
static __always_inline int task_sample_schedule(struct task_struct *task, struct cpu_state *c,
						struct py_scratch *s, __u32 layout)
{
	__u32 slot = s->thread.tid & (TASK_WORKS - 1);
	struct task_sample *t;
	__u64 owner;

	if (!session.has_task_work)
		return -1;
	t = bpf_map_lookup_elem(&task_samples, &slot);
	if (!t)
		return -1;
	owner = __sync_val_compare_and_swap(&t->tid, 0, (__u64)s->thread.tid);
	if (owner == s->thread.tid) {
		__sync_fetch_and_add(&t->joined, s->sample.weight);
		return STAT_TW_JOINED;
	}
	if (!owner) {
		t->thread = s->thread;
		t->sample = s->sample;
		t->sample.flags = s->walk.flags;
		t->layout = layout;
		t->ticks = c->ticks;
		if (!task_work_schedule(task, &t->work, &task_samples, task_sample_run, NULL))
			return STAT_TASK_WORK;
		__sync_lock_test_and_set(&t->tid, 0);
	}
	stat_add(c, STAT_TW_BUSY, 1);
	return -1;
}

/*
 * Where task work is not to be had: user space can read a page of the target in, which helps the
 * next sample. Asked at most every 134 ms for one address.
 */
static __always_inline void ask_page(struct cpu_state *c, const struct py_scratch *s, __u32 layout)
{
	const struct py_walk *w = &s->walk;
	__u64 id = hash_mix(hash_mix(w->process, w->fault_addr), s->sample.ktime_ns >> 27);
	struct page_event e = {
		.kind = EVENT_PAGE,
		.is_code = w->is_code_fault,
		.layout = layout,
		.pid = s->sample.pid,
		.addr = w->fault_addr,
	};

	if (!w->fault_addr || is_sent(id))
		return;
	if (bpf_ringbuf_output(&events, &e, sizeof(e), BPF_RB_FORCE_WAKEUP))
		return;
	mark_sent(id);
	stat_add(c, STAT_PAGE, 1);
}

static __always_inline int sample_thread(struct bpf_perf_event_data *ctx, struct cpu_state *c,
					 struct task_struct *task, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 process = task_process_id(task);
	struct proc_row row = {};
	struct py_loop l = {};
	struct py_scratch *s;
	__u32 weight;
	int r, handed;

	r = proc_find(c, task, process, now, &row);
	if (r != STAT_RECORDED)
		return r;
	weight = budget_take(c, now);
	if (!weight)
		return STAT_SKIPPED;
	s = cpu < session.cpus ? scratch_get(cpu) : NULL;
	if (!s)
		return STAT_NO_SCRATCH;

	s->thread.pointer = task_thread_pointer(task);
	s->thread.runtime = row.runtime;
	s->thread.process = process;
	s->thread.tid = task->pid;
	l.s = s;
	l.thread = &s->thread;
	l.off = &layouts[row.layout & (LAYOUTS_MAX - 1)];
	s->walk.process = process;
	s->walk.salt = now >> 7;
	s->walk.flags = (weight > 1 ? SAMPLE_WEIGHTED : 0) |
			(regs_are_user((struct pt_regs *)&ctx->regs) ? 0 : SAMPLE_KERNEL);
	s->walk.has_fault = 0;
	s->walk.fault_addr = 0;
	s->sample.cpu = cpu;
	s->sample.ktime_ns = now;
	s->sample.process = process;
	s->sample.pid = process_pid(task);
	s->sample.tid = task_pid_in(task, session.pidns_inode, pidns_level);
	s->sample.weight = weight;

	introduce(s, task, process, row.layout, false);
	r = take_sample(&l, c, row.layout, false);
	if (r == STAT_TSTATE_FAULT || (r == STAT_RECORDED && s->walk.has_fault)) {
		handed = task_sample_schedule(task, c, s, row.layout);
		if (handed >= 0)
			return handed;
		ask_page(c, s, row.layout);
	}
	if (r != STAT_RECORDED)
		return r;
	return send_sample(s, c) ? STAT_RECORDED : STAT_RING_FULL;
}

/* What can be said without the process's row. */
static __always_inline bool is_wanted(struct task_struct *task)
{
	__u32 pid = process_pid(task);

	if (!pid || pid == session.own_pid)
		return false;
	if (session.target_pidns && !task_pid_in(task->group_leader, session.target_pidns,
						 pidns_level + session.target_pidns_depth))
		return false;
	return !session.has_cgroup || bpf_current_task_under_cgroup(&cgroups, 0) == 1;
}

/*
 * Ticks that should have come since the one before, while this thread was on the CPU all along: the
 * kernel drops one while a BPF program of another kind runs, and where interrupts are off for too
 * long. Where another ran in between, or none, nobody knows who would have been met: on a CPU that
 * sleeps, above all a virtual one, timers come late or not at all. Only the fair scheduler notes
 * when it gave a thread the CPU; up to its last look at it, some milliseconds ago.
 */
static __always_inline __u64 count_missed(struct cpu_state *c, struct task_struct *task,
					  const struct cpu_ticks *ticks, __u64 now)
{
	__u64 set = ticks->set_ns, period = ticks->period_ns, since = c->tick_ns, missed = 0, ran;
	__u64 period_before = c->period_ns;

	c->tick_ns = now;
	c->period_ns = period;
	if (!since || !period || !period_before || set > now)
		return 0; /* the first one; or its period is just being set */
	if (set > since) {
		missed = (set - since) / period_before;
		since = set;
	}
	if (now - since > period + period / 2)
		missed += (now - since + period / 2) / period - 1;
	if (!missed || (task->policy != SCHED_NORMAL && task->policy != SCHED_BATCH))
		return 0;
	ran = (task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime) / period;
	return (missed < ran ? missed : ran) * c->ticks;
}

/* Whose the tick was that ended like this: a Python process's that is recorded? */
static __always_inline bool is_ours(int r)
{
	return r != STAT_IDLE && r != STAT_NO_MM && r != STAT_FILTERED && r != STAT_NOT_PYTHON;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_state *c = this_cpu_state();
	__u64 now = bpf_ktime_get_ns(), spent, missed;
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_ticks *ticks = bpf_map_lookup_elem(&cpu_ticks, &cpu);
	int r;

	if (!c || !ticks)
		return 0;
	c->ticks = *(volatile __u32 *)&ticks->weight;
	if (!c->ticks)
		return 0;
	missed = count_missed(c, task, ticks, now);
	if (!task->tgid) {
		r = STAT_IDLE;
	} else if (!task->mm) {
		r = STAT_NO_MM;
	} else if (!is_wanted(task)) {
		r = STAT_FILTERED;
	} else {
		r = sample_thread(ctx, c, task, now);
	}
	if (r >= STAT_TICK_END)
		return 0; /* for the verifier */
	stat_add(c, r, c->ticks);
	if (missed && is_ours(r))
		stat_add(c, STAT_MISSED, missed);
	spent = bpf_ktime_get_ns() - now;
	stat_add(c, STAT_RUN_NS, spent);
	c->budget_ns -= spent;
	return 0;
}
