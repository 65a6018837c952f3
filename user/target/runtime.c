/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/allowance.h"
#include "base/clock.h"
#include "base/err.h"
#include "target/mem.h"
#include "target/offsets.h"
#include "target/proc.h"

#define MAPPING_BYTES 8192 /* a look at a mapping takes as long as to read so much */
#define OTHER_NAME "/libpython"

/* What was seen while looking at one process. */
struct search {
	struct runtime_cache *cache;
	pid_t pid;
	bool is_static; /* search .symtab too */
	bool is_found;  /* *out is filled in, but its interpreter not yet initialised */
	int error;      /* of the first Python that cannot be used */
	int unread;     /* of the last file that could not be opened */
	char message[INTERPRETER_MESSAGE_BYTES * 2];
};

/* Is memory what the file says? Then returns 1 if it has an interpreter, 0 if not yet. */
static int verify(pid_t pid, const struct interpreter_file *b, const struct py_runtime *found)
{
	static const uint8_t none[DEBUG_OFFSETS_HEAD];
	uint8_t bytes[DEBUG_OFFSETS_BYTES + 256];
	size_t len = b->offsets.runtime_interpreters_head + 8u;
	uint32_t version = 0;
	uint64_t head;
	int r;

	if (len > sizeof(bytes))
		return err_set(-EBADMSG, "%s: _PyRuntime is too large", found->path);
	r = mem_read(pid, found->runtime_addr, bytes, len);
	if (r < 0)
		return r;
	if (memcmp(b->head, none, sizeof(none)) && memcmp(b->head, bytes, sizeof(b->head))) {
		debug_offsets_version(bytes, len, &version);
		return interpreter_versions_disagree(b->version, "the file", version, "memory");
	}
	memcpy(&head, bytes + b->offsets.runtime_interpreters_head, sizeof(head));
	return head != 0;
}

static void keep_error(struct search *s, const struct mapping *m, int r)
{
	if (s->error)
		return;
	s->error = r;
	snprintf(s->message, sizeof(s->message), "%.160s: %s", m->path, err_message(r));
}

/* Could a mapping have an interpreter beside the one that was found? */
static bool may_be_other(const struct mapping *m)
{
	const char *name = strrchr(m->path, '/');

	return name && !strncmp(name, OTHER_NAME, sizeof(OTHER_NAME) - 1);
}

/* Notes an interpreter beside the one in *out. Returns 1 when it is found. */
static int look_at_other(struct search *s, const struct mapping *m, struct py_runtime *out)
{
	const struct file_source from = { .pid = s->pid, .m = m };
	const struct interpreter_file *b;
	struct py_runtime found;

	if (!may_be_other(m) || interpreter_file_find(s->cache, &from, false, &b) < 0 || !b ||
	    b->error || m->offset < elf_mapped_offset(b->text_offset) || m->offset >= b->text_last)
		return 0;
	found.runtime_addr = m->start - m->offset + b->text_to_runtime;
	snprintf(found.path, sizeof(found.path), "%s", m->path);
	if (found.runtime_addr == out->runtime_addr || verify(s->pid, b, &found) <= 0)
		return 0;
	out->other_version = b->version;
	memcpy(out->other_path, found.path, sizeof(out->other_path));
	return 1;
}

/* Returns 1 when the search is over. Errors of single files are kept for the end. */
static int look_at(struct search *s, const struct mapping *m, struct py_runtime *out)
{
	const struct file_source from = { .pid = s->pid, .m = m };
	const struct interpreter_file *b;
	struct py_runtime found;
	int r;

	r = interpreter_file_find(s->cache, &from, s->is_static, &b);
	if (r == -ESRCH || r == -ENOMEM || r == -ETIME)
		return r;
	if (r == -EAGAIN || r == -EBADMSG || r == -ENOTSUP) {
		keep_error(s, m, r);
		return 0;
	}
	if (r < 0) {
		s->unread = r;
		return 0;
	}
	if (!b || m->offset < elf_mapped_offset(b->text_offset) || m->offset >= b->text_last)
		return 0;
	if (b->error) {
		err_set(b->error, "%s", b->message);
		keep_error(s, m, b->error);
		return 0;
	}
	found = (struct py_runtime){
		.version = b->version,
		.runtime_addr = m->start - m->offset + b->text_to_runtime,
		.text_start = m->start,
		.text_pgoff = m->offset,
		.text_inode = m->inode,
		.text_dev = (uint64_t)m->dev_major << 20 | m->dev_minor,
		.text_to_runtime = b->text_to_runtime,
		.offsets = b->offsets,
	};
	snprintf(found.path, sizeof(found.path), "%s", m->path);
	memcpy(found.build, b->build, sizeof(found.build));
	found.seen_ns = monotonic_ns();
	r = verify(s->pid, b, &found);
	if (r == -EPERM || r == -ESRCH || r == -ETIME)
		return r;
	if (r < 0) {
		keep_error(s, m, r);
		return 0;
	}
	found.is_initialised = r > 0;
	if (r || !s->is_found)
		*out = found;
	s->is_found = true;
	return r;
}

/* The mappings behind that of the interpreter. What cannot be read hides no other one. */
static int look_at_others(struct search *s, struct maps *maps, struct py_runtime *out)
{
	struct mapping m;

	while (maps_next(maps, &m) > 0)
		if (m.inode && m.perms & PROT_EXEC && look_at_other(s, &m, out))
			break;
	err_clear();
	return 1;
}

/* All executable mappings of files. Returns 1 when the search is over, 0 to go on otherwise. */
static int look_at_all(struct search *s, struct py_runtime *out)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int r;

	r = maps_open(s->pid, &maps);
	if (r == -ENOENT || r == -ESRCH)
		return err_set(-ESRCH, "no process with pid %d", s->pid);
	if (r == -EACCES || r == -EPERM)
		return err_set(-EPERM,
			       "permission denied reading its memory map: needs root or "
			       "CAP_SYS_PTRACE (as root: a security module or sandbox blocks it)");
	if (r < 0)
		return r;
	while ((r = maps_next(maps, &m)) > 0) {
		if (!m.inode || !(m.perms & PROT_EXEC))
			continue;
		if (!allowance_take(MAPPING_BYTES))
			return err_set(-ETIME, "there is more to look at than its share of time "
					       "is for");
		r = look_at(s, &m, out);
		if (r)
			return r > 0 ? look_at_others(s, maps, out) : r;
	}
	return r;
}

void runtime_format_two(const struct py_runtime *rt, char out[RUNTIME_TWO_BYTES])
{
	char version[VERSION_TEXT_BYTES], other[VERSION_TEXT_BYTES];

	version_format(rt->version, version);
	version_format(rt->other_version, other);
	snprintf(out, RUNTIME_TWO_BYTES,
		 "CPython %s of %s is read, threads of CPython %s of %s are outside it", version,
		 rt->path, other, rt->other_path);
}

/*
 * Where the process's C library has its threads. Until that is mapped nothing runs: -EAGAIN. A
 * program without one that can be read is refused.
 */
static int find_c_library(struct search *s, struct py_runtime *rt)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct c_library found;
	struct mapping m;
	int r = maps_open(s->pid, &maps), of_file = -ENOENT;

	while (of_file && r >= 0 && (r = maps_next(maps, &m)) > 0) {
		const struct file_source from = { .pid = s->pid, .m = &m };

		if (m.inode && m.perms & PROT_EXEC)
			of_file = interpreter_file_c_library(s->cache, &from,
							     m.start == rt->text_start, &found);
		if (of_file == -ENOMEM || of_file == -ESRCH || of_file == -ETIME)
			return of_file;
	}
	if (r < 0)
		return r == -ENOENT ? err_set(-ESRCH, "no process with pid %d", s->pid) : r;
	if (of_file && !rt->is_initialised)
		return err_set(-EAGAIN, "%s: its C library is not there yet", rt->path);
	if (of_file)
		return err_set(-ENOTSUP,
			       "no C library in this process that says where its threads are: "
			       "neither glibc's " C_LIBRARY_SYMBOL " nor musl");
	rt->offsets.pthread_bytes = found.pthread_bytes;
	rt->offsets.pthread_tid = found.tid_at;
	return 0;
}

static int nothing_found(const struct search *s)
{
	_cleanup_(freep) char *exe = NULL;
	struct proc_stat stat;

	if (s->error)
		return err_set(s->error, "%s", s->message);
	if (s->unread == -EPERM || s->unread == -EACCES)
		return err_set(-EPERM,
			       "no permission to read the files that pid %d maps (needs root, or "
			       "CAP_DAC_READ_SEARCH, and CAP_CHECKPOINT_RESTORE for deleted ones)",
			       s->pid);
	if (proc_exe(s->pid, &exe) < 0 && proc_stat(s->pid, &stat) == 0 && stat.is_kernel_thread)
		return err_set(-ENOENT, "no Python runtime in this process (a kernel thread)");
	if (!exe)
		return err_set(-ESRCH, "no process with pid %d: it has just ended", s->pid);
	return err_set(-ENOENT, "no Python runtime in this process (mappings: %s)%s", exe,
		       s->unread ? "; a mapped file could not be opened" : "");
}

int runtime_check_process(pid_t pid, struct proc_stat *stat)
{
	int r = proc_stat(pid, stat);

	if (r == -ESRCH)
		return err_set(r, "pid %d: no such process", pid);
	if (r < 0)
		return r;
	if (stat->is_kernel_thread)
		return err_set(-ENOENT, "pid %d: a kernel thread (%s)", pid, stat->comm);
	if (stat->is_zombie)
		return err_set(-ENOENT, "pid %d: has ended already (%s is a zombie)", pid,
			       stat->comm);
	return 0;
}

int runtime_find(struct runtime_cache *cache, pid_t pid, struct py_runtime *out)
{
	struct search s = { .cache = cache, .pid = pid };
	struct py_runtime found;
	int r;

	r = look_at_all(&s, &found);
	if (!r && !s.is_found && !s.error) {
		s.is_static = true;
		r = look_at_all(&s, &found);
	}
	if (r < 0)
		return r;
	if (!r && !s.is_found)
		return nothing_found(&s);
	r = THREAD_POINTER_IS_SELF ? 0 : find_c_library(&s, &found);
	if (r < 0)
		return r;
	*out = found;
	return 0;
}

int runtime_read_file(struct runtime_cache *cache, const char *path, struct py_runtime *out)
{
	const struct file_source from = { .path = path };
	const struct interpreter_file *b;
	struct file_id id;
	int r = file_source_id(&from, &id);

	if (!r)
		r = interpreter_file_find(cache, &from, false, &b);
	if (r < 0)
		return r == -EAGAIN ? -ENOENT : r;
	if (!b || b->error)
		return -ENOENT;
	*out = (struct py_runtime){
		.version = b->version,
		.text_pgoff = b->text_offset,
		.text_inode = id.inode,
		.text_dev = kernel_dev(id.dev),
		.text_to_runtime = b->text_to_runtime,
		.offsets = b->offsets,
	};
	snprintf(out->path, sizeof(out->path), "%s", path);
	return 0;
}
