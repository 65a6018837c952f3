/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/workers.h"
#include "cmd/doctor.h"
#include "cmd/doctor_text.h"
#include "collect/own_walks.h"
#include "inspect/process.h"
#include "target/debug_offsets.h"
#include "target/elf.h"
#include "target/maps.h"
#include "target/mem.h"
#include "target/offsets.h"
#include "target/proc.h"

/* One process, explained: what `record -p` finds out and does not say. */

#define LOOK_NS 10000000000ULL /* on a busy machine too */
#define INTERPRETERS_MAX 1024
#define THREAD_STATES_MAX 65536
#define COMMAND_SHOWN 160 /* bytes of the command line; --json has all */

/* Exported by builds with Py_REF_DEBUG, which Py_DEBUG implies (Include/object.h). */
#define SYMBOL_DEBUG "_Py_NegativeRefcount"
#define SYMBOL_RUNTIME "_PyRuntime"
#define SECTION_RUNTIME ".PyRuntime"
#define SYMBOL_BEFORE_RUNTIME "_PyThreadState_Current" /* 3.6 */

#define MAPPING_OF_JIT "[anon:cpython:jit]" /* 3.15 Python/jit.c */

/* --- Looking ---------------------------------------------------------------------------------- */

/* Do two files of /proc name the same namespace? Yes where we may not see that. */
static bool same_namespace(pid_t pid, const char *name)
{
	char ours[48], theirs[48];
	struct stat a, b;

	snprintf(ours, sizeof(ours), "/proc/self/ns/%s", name);
	snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", pid, name);
	return stat(ours, &a) < 0 || stat(theirs, &b) < 0 || a.st_ino == b.st_ino;
}

/* Arguments, NUL behind each -> one line. */
static void join_words(char *words, size_t len)
{
	while (len && !words[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!words[i])
			words[i] = ' ';
}

static int look_at_program(pid_t pid, struct doctor_process *p)
{
	static const char deleted[] = " (deleted)";
	char path[32], root[PATH_MAX];
	size_t len;
	ssize_t n;

	if (proc_exe(pid, &p->program) < 0)
		err_clear(); /* not ours to see */
	len = p->program ? strlen(p->program) : 0;
	if (len > sizeof(deleted) - 1 &&
	    !strcmp(p->program + len - (sizeof(deleted) - 1), deleted)) {
		p->program[len - (sizeof(deleted) - 1)] = '\0';
		p->is_deleted = true;
	}
	if (proc_cmdline(pid, &p->command_line, &len) < 0)
		err_clear(); /* gone: the next question tells */
	else
		join_words(p->command_line, len);
	snprintf(path, sizeof(path), "/proc/%d/root", proc_living_thread(pid));
	n = readlink(path, root, sizeof(root));
	if (n > 1 && !(p->root = strndup(root, n)))
		return -ENOMEM;
	return 0;
}

/* The file the interpreter was found in, opened. -ENOENT if its mapping is gone. */
static int open_runtime_file(struct doctor_process *p, struct elf **elf, int *fd)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int r;

	r = maps_open(p->pid, &maps);
	if (r < 0)
		return r;
	while ((r = maps_next(maps, &m)) > 0)
		if (m.start == p->runtime.text_start && m.inode == p->runtime.text_inode)
			break;
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	p->is_mapping_deleted = m.is_deleted;
	*fd = proc_mapped_open(p->pid, &m, NULL);
	return *fd < 0 ? *fd : elf_open(*fd, elf);
}

/* Does this address of the file lie at _PyRuntime in the process? */
static bool is_runtime(const struct doctor_process *p, uint64_t vaddr)
{
	const struct py_runtime *rt = &p->runtime;
	uint64_t file_start = rt->text_start - rt->text_pgoff;

	/* The distance is the same up to the load bias, a multiple of the page size. */
	return vaddr && ((file_start + vaddr - rt->runtime_addr) & 4095) == 0;
}

/* By which of its names the interpreter can be found: asked in the order of target/runtime.c. */
static const char *found_by(const struct doctor_process *p, const struct elf *elf)
{
	struct elf_symbol symbol;
	struct elf_section section;

	if (!elf_dynamic_symbol(elf, SYMBOL_RUNTIME, &symbol) && is_runtime(p, symbol.vaddr))
		return "the dynamic symbol _PyRuntime";
	if (!elf_section(elf, SECTION_RUNTIME, &section) && is_runtime(p, section.vaddr))
		return "the section .PyRuntime";
	if (!elf_static_symbol(elf, SYMBOL_RUNTIME, &symbol) && is_runtime(p, symbol.vaddr))
		return "the symbol _PyRuntime of .symtab";
	if (VERSION_MINOR(p->runtime.version) == 6 &&
	    !elf_dynamic_symbol(elf, SYMBOL_BEFORE_RUNTIME, &symbol))
		return "the dynamic symbol _PyThreadState_Current";
	return NULL;
}

static bool is_same_file(pid_t pid, const struct py_runtime *rt)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_living_thread(pid));
	return stat(path, &st) == 0 && st.st_ino == rt->text_inode;
}

static void look_at_file(struct doctor_process *p)
{
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct elf_symbol symbol;
	int r;

	p->is_shared = !is_same_file(p->pid, &p->runtime);
	if (open_runtime_file(p, &elf, &fd) < 0) {
		err_clear(); /* these rows stay unknown */
		return;
	}
	p->found_by = found_by(p, elf);
	p->is_debug =
		p->runtime.offsets.is_debug || !elf_dynamic_symbol(elf, SYMBOL_DEBUG, &symbol);
	r = elf_build_id(elf, p->build_id);
	p->build_id_bytes = r > 0 ? r : 0;
}

/* Where the offsets come from, and the way to a thread state: bpf/python_thread.h goes the same. */
static void look_at_layout(struct doctor_process *p)
{
	const struct py_offsets *off = &p->runtime.offsets;
	uint8_t head[DEBUG_OFFSETS_HEAD];
	uint32_t version;

	if (mem_read(p->pid, p->runtime.runtime_addr, head, sizeof(head)) < 0)
		err_clear(); /* gone */
	else if (debug_offsets_version(head, sizeof(head), &version))
		p->layout =
			off->is_best_effort
				? "its own _Py_DebugOffsets, of a version not tested: best effort"
				: "its own _Py_DebugOffsets";
	else
		p->layout = "pyebpf's table for this version";
	if (off->runtime_tstate_current != OFF_NONE)
		p->tstate = "the current one, else the list of them, by pthread_self()";
	else if (off->status_bound_gilstate)
		p->tstate = "the list of them, by pthread_self(); of several the bound one";
	else
		p->tstate = "the list of them, by pthread_self()";
}

/* Is there machine code that comes from no file? 3.15 gives its JIT's pages a name. */
static bool has_code_without_file(pid_t pid)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	bool found = false;

	if (maps_open(pid, &maps) < 0) {
		err_clear(); /* gone */
		return false;
	}
	while (!found && maps_next(maps, &m) > 0)
		found = m.perms & PROT_EXEC && !m.inode && !m.is_shared &&
			(!*m.path || !strcmp(m.path, MAPPING_OF_JIT));
	return found;
}

static void look_at_jit(struct doctor_process *p)
{
	const struct py_offsets *off = &p->runtime.offsets;

	if (off->is_jit)
		p->jit = "built in: lines may be a few off, all are marked ~";
	else if (off->tstate_executor != OFF_NONE && has_code_without_file(p->pid))
		p->jit = "machine code made at run time is mapped, CPython's (PYTHON_JIT) or a "
			 "module's: lines that CPython's runs may be a few off, they are marked ~";
}

static int read_pointer(pid_t pid, uint64_t addr, uint64_t *out)
{
	return mem_read(pid, addr, out, sizeof(*out));
}

/*
 * Counts both, following the lists of a process that goes on: any bytes may be there, and a list
 * that changes under us may end early.
 */
static int count_thread_states(const struct doctor_process *p, size_t *interpreters,
			       size_t *thread_states)
{
	const struct py_offsets *off = &p->runtime.offsets;
	uint64_t interp, tstate;
	size_t interps = 0, states = 0;
	int r;

	r = read_pointer(p->pid, p->runtime.runtime_addr + off->runtime_interpreters_head, &interp);
	for (; r >= 0 && interp && interps < INTERPRETERS_MAX; interps++) {
		r = read_pointer(p->pid, interp + off->interp_threads_head, &tstate);
		for (; r >= 0 && tstate && states < THREAD_STATES_MAX; states++)
			r = read_pointer(p->pid, tstate + off->tstate_next, &tstate);
		if (r >= 0)
			r = read_pointer(p->pid, interp + off->interp_next, &interp);
	}
	if (r < 0)
		return r;
	*interpreters = interps;
	*thread_states = states;
	return 0;
}

static int look_at_runtime(struct doctor_process *p)
{
	_cleanup_(inspector_freep) struct inspector *in = NULL;
	int r;

	r = inspector_new(&in);
	if (r < 0)
		return r;
	r = inspector_find_runtime(in, p->pid, &p->runtime);
	if (r < 0)
		return err_wrap(r, "pid %d", p->pid);
	p->has_runtime = true;
	look_at_file(p);
	look_at_layout(p);
	look_at_jit(p);
	p->has_lists = count_thread_states(p, &p->interpreters, &p->thread_states) >= 0;
	if (!p->has_lists)
		err_clear(); /* these rows stay unknown */
	return 0;
}

/* As of inspect/: its memory can be read, or there is nothing to print. */
static int find_dump_way(struct doctor_process *p)
{
	_cleanup_(own_walks_freep) struct own_walks *own = NULL;
	int r = own_walks_new(&own);
	bool is_pass;

	if (r < 0)
		return r;
	r = own_walks_load(own);
	is_pass = r >= 0 && p->threads >= INSPECT_MANY_THREADS && own_walks_can_look() >= 0;
	snprintf(p->dump_way, sizeof(p->dump_way), "%s; those that run %s%s%s",
		 is_pass ? "threads that stand still by BPF, in one pass"
			 : "by process_vm_readv(), each thread while it stands still",
		 r < 0 ? "while they run, stack may be inconsistent: no BPF ("
		       : "walk themselves, by BPF",
		 r < 0 ? err_message(r) : "", r < 0 ? ")" : "");
	err_clear();
	return r == -ENOMEM ? r : 0;
}

static int look(pid_t pid, struct doctor_process *out)
{
	struct proc_stat stat;
	int r = runtime_check_process(pid, &stat);

	*out = (struct doctor_process){ .pid = pid };
	if (r < 0)
		return r;
	out->comm = strdup(stat.comm);
	if (!out->comm)
		return -ENOMEM;
	out->threads = stat.threads;
	out->has_other_mounts = !same_namespace(pid, "mnt");
	out->has_other_pids = !same_namespace(pid, "pid");
	if (proc_nspid(pid, &out->own_pid) < 0)
		err_clear(); /* stays unknown */
	if ((r = look_at_program(pid, out)) < 0 || (r = look_at_runtime(out)) < 0)
		return r;
	return find_dump_way(out);
}

/* A look that may never end. */
struct looking {
	pid_t pid;
	struct doctor_process found;
	int r;
	char text[ERR_BYTES]; /* the message of r */
};

static void look_apart(void *arg)
{
	struct looking *k = arg;

	k->r = look(k->pid, &k->found);
	if (k->r < 0)
		snprintf(k->text, sizeof(k->text), "%s", err_message(k->r));
}

int doctor_process_look(pid_t pid, struct doctor_process *out)
{
	struct looking *k = calloc(1, sizeof(*k));
	int r;

	*out = (struct doctor_process){ .pid = pid };
	if (!k)
		return -ENOMEM;
	k->pid = pid;
	r = workers_call(look_apart, k, LOOK_NS);
	if (r == -ETIMEDOUT)
		return err_wrap(r, "pid %d", pid);
	if (r >= 0) {
		*out = k->found;
		r = k->r < 0 ? err_set(k->r, "%s", k->text) : k->r;
	}
	free(k);
	return r == -EAGAIN || r == -EUSERS ? workers_say(r) : r;
}

void doctor_process_release(struct doctor_process *p)
{
	free(p->comm);
	free(p->program);
	free(p->command_line);
	free(p->root);
}

/* --- Telling ---------------------------------------------------------------------------------- */

static const char *linkage(const struct doctor_process *p)
{
	return p->is_shared ? "shared library" : "part of the program";
}

static int print_program(const struct terminal *t, const struct doctor_process *p)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r;

	strbuf_appendf(&text, "%s%s", p->program ? p->program : p->comm,
		       p->is_deleted ? " (deleted or replaced since)" : "");
	if ((r = doctor_put(t, "program", STYLE_PLAIN, strbuf_str(&text))) < 0)
		return r;
	strbuf_truncate(&text, 0);
	if (p->command_line && *p->command_line) {
		strbuf_appendf(&text, "%.*s%s", COMMAND_SHOWN, p->command_line,
			       strlen(p->command_line) > COMMAND_SHOWN ? "..." : "");
		if ((r = doctor_put(t, "command", STYLE_PLAIN, strbuf_str(&text))) < 0)
			return r;
	}
	strbuf_truncate(&text, 0);
	strbuf_puts(&text, p->has_other_mounts ? "mounts of its own" : "mounts as here");
	if (p->root)
		strbuf_appendf(&text, ", root %s", p->root);
	if (p->has_other_pids)
		strbuf_appendf(&text, ", PID namespace of its own: there it is pid %d", p->own_pid);
	else
		strbuf_puts(&text, ", PIDs as here");
	return doctor_put(t, "namespaces", STYLE_PLAIN, strbuf_str(&text));
}

static int print_python(const struct terminal *t, const struct doctor_process *p)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	char version[VERSION_TEXT_BYTES];

	version_format(p->runtime.version, version);
	strbuf_appendf(&text, "CPython %s, %s%s, %s", version,
		       p->runtime.offsets.is_free_threaded ? "free-threaded" : "with the GIL",
		       p->is_debug ? ", debug build" : "", linkage(p));
	if (p->build_id_bytes)
		strbuf_puts(&text, ", build ID ");
	for (size_t i = 0; i < p->build_id_bytes; i++)
		strbuf_appendf(&text, "%02x", p->build_id[i]);
	return doctor_put(t, "Python", STYLE_PLAIN, strbuf_str(&text));
}

static int print_other_python(const struct terminal *t, const struct doctor_process *p)
{
	char text[RUNTIME_TWO_BYTES];

	if (!p->runtime.other_version)
		return 0;
	runtime_format_two(&p->runtime, text);
	return doctor_put(t, "two Pythons", STYLE_WARM, text);
}

static int print_place(const struct terminal *t, const struct doctor_process *p)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r;

	strbuf_appendf(&text, "%s%s, mapped at 0x%llx", p->runtime.path,
		       p->is_mapping_deleted ? " (deleted or replaced since)" : "",
		       (unsigned long long)p->runtime.text_start);
	if (p->found_by)
		strbuf_appendf(&text, ", by %s", p->found_by);
	if ((r = doctor_put(t, "found in", STYLE_PLAIN, strbuf_str(&text))) < 0)
		return r;
	strbuf_truncate(&text, 0);
	strbuf_appendf(&text, "0x%llx", (unsigned long long)p->runtime.runtime_addr);
	return doctor_put(t, VERSION_MINOR(p->runtime.version) == 6 ? "its state" : "_PyRuntime",
			  STYLE_PLAIN, strbuf_str(&text));
}

static int print_threads(const struct terminal *t, const struct doctor_process *p)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	strbuf_appendf(&text, "%zu", p->threads);
	if (p->has_lists)
		strbuf_appendf(&text, ", with %zu thread state%s of %zu interpreter%s",
			       p->thread_states, p->thread_states == 1 ? "" : "s", p->interpreters,
			       p->interpreters == 1 ? "" : "s");
	if (p->has_lists && !p->interpreters)
		strbuf_puts(&text, ": Python is not initialised (yet)");
	return doctor_put(t, "threads", STYLE_PLAIN, strbuf_str(&text));
}

int doctor_process_print(const struct terminal *t, const struct doctor_process *p)
{
	int r;

	if (!p->comm)
		return 0;
	if ((r = print_program(t, p)) < 0 || !p->has_runtime)
		return r;
	if ((r = print_python(t, p)) < 0 || (r = print_other_python(t, p)) < 0 ||
	    (r = print_place(t, p)) < 0 ||
	    (p->layout && (r = doctor_put(t, "layout", STYLE_PLAIN, p->layout)) < 0) ||
	    (r = doctor_put(t, "thread state", STYLE_PLAIN, p->tstate)) < 0 ||
	    (p->jit && (r = doctor_put(t, "JIT", STYLE_PLAIN, p->jit)) < 0) ||
	    (r = print_threads(t, p)) < 0)
		return r;
	return doctor_put(t, "dump", STYLE_PLAIN, p->dump_way);
}

static void put_string(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	if (value)
		json_string(j, value);
	else
		json_null(j);
}

static void put_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static void put_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

static void put_build_id(struct json *j, const struct doctor_process *p)
{
	char text[2 * sizeof(p->build_id) + 1] = "";

	for (size_t i = 0; i < p->build_id_bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", p->build_id[i]);
	put_string(j, "build_id", p->build_id_bytes ? text : NULL);
}

void doctor_process_json(struct json *j, const struct doctor_process *p)
{
	char version[VERSION_TEXT_BYTES];

	put_number(j, "pid", p->pid);
	put_number(j, "own_pid", p->own_pid);
	put_string(j, "comm", p->comm);
	put_string(j, "program", p->program);
	put_bool(j, "program_deleted", p->is_deleted);
	put_string(j, "command_line", p->command_line);
	put_string(j, "root", p->root ? p->root : "/");
	put_bool(j, "other_mount_namespace", p->has_other_mounts);
	put_bool(j, "other_pid_namespace", p->has_other_pids);
	put_number(j, "threads", p->threads);
	json_key(j, "python");
	if (!p->has_runtime) {
		json_null(j);
		return;
	}
	version_format(p->runtime.version, version);
	json_object(j);
	put_string(j, "version", version);
	put_bool(j, "free_threaded", p->runtime.offsets.is_free_threaded);
	put_bool(j, "debug", p->is_debug);
	put_bool(j, "shared", p->is_shared);
	put_bool(j, "best_effort", p->runtime.offsets.is_best_effort);
	put_build_id(j, p);
	put_string(j, "path", p->runtime.path);
	put_bool(j, "path_deleted", p->is_mapping_deleted);
	put_number(j, "mapped_at", p->runtime.text_start);
	put_string(j, "found_by", p->found_by);
	put_number(j, "runtime_address", p->runtime.runtime_addr);
	put_string(j, "layout", p->layout);
	put_string(j, "thread_state", p->tstate);
	put_string(j, "jit", p->jit);
	json_key(j, "interpreters");
	p->has_lists ? json_u64(j, p->interpreters) : json_null(j);
	json_key(j, "thread_states");
	p->has_lists ? json_u64(j, p->thread_states) : json_null(j);
	json_end(j);
}
