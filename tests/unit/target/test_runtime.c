/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Real interpreters: PYEBPF_PYTHONS (commands, colon-separated), else pyenv's versions, /usr/bin,
 * and what tests/tools/pythons.py has provided. None at all is a failure. What they say of
 * themselves must be what we find.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define stat stat_id /* an enum there, a struct in <glob.h> */
#include "bpf/events.h"
#undef stat
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "target/maps.h"
#include "target/mem.h"
#include "target/offsets.h"
#include "target/runtime.h"
#include "tests/unit/skip.h"

#define NO_PID 4194305 /* beyond PID_MAX_LIMIT */
#define NOBODY 65534
#define THREADS 3
#define THREAD_STATES_MAX 64

extern char **environ;

/* The main thread and two more; a line for each: pthread_self, TID (0 before 3.8). */
static const char script[] =
	"import sys, threading\n"
	"native = getattr(threading, 'get_native_id', lambda: 0)\n"
	"print('version %d' % sys.hexversion)\n"
	"print('implementation %s' % getattr(getattr(sys, 'implementation', None), 'name', ''))\n"
	"lock, gate, said = threading.Lock(), threading.Event(), []\n"
	"def say():\n"
	"    with lock:\n"
	"        print('thread %d %d' % (threading.get_ident(), native()))\n"
	"        said.append(1)\n"
	"def run():\n"
	"    say()\n"
	"    gate.wait()\n"
	"if sys.version_info >= (3,):\n"
	"    say()\n"
	"    for i in range(2):\n"
	"        t = threading.Thread(target=run)\n"
	"        t.daemon = True\n"
	"        t.start()\n"
	"    while len(said) < 3:\n"
	"        pass\n"
	"%s\n"
	"print('ready')\n"
	"sys.stdout.flush()\n"
	"sys.stdin.readline()\n";

struct child {
	pid_t pid;
	FILE *out;
	int in;
	uint32_t version; /* 0: it has not said so */
	uint64_t idents[THREADS], tids[THREADS];
	size_t threads;
	bool is_cpython;
	bool is_ready;
};

static void child_end(struct child *c)
{
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	if (c->out)
		fclose(c->out);
	close(c->in);
	c->pid = 0;
}

/* Starts `sh -c "exec COMMAND -c PROGRAM"`; sh execs, so the PID is the interpreter's. */
static void child_spawn(struct child *c, const char *command, const char *program)
{
	_cleanup_(strbuf_releasep) struct strbuf line = STRBUF_INIT;
	char shell[] = "sh", option[] = "-c", *argv[] = { shell, option, NULL, NULL };
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	memset(c, 0, sizeof(*c));
	strbuf_appendf(&line, "exec %s", command);
	if (program)
		strbuf_puts(&line, " -c \"$PROGRAM\" 2>/dev/null");
	assert_int_equal(strbuf_error(&line), 0);
	assert_int_equal(setenv("PROGRAM", program ? program : "", 1), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	argv[2] = line.bytes;
	assert_int_equal(posix_spawn(&c->pid, "/bin/sh", &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = fdopen(out[0], "r");
	assert_non_null(c->out);
}

/* Runs the script, with `more` before the end, and waits until it is ready or has ended. */
static void child_start(struct child *c, const char *command, const char *more)
{
	_cleanup_(strbuf_releasep) struct strbuf program = STRBUF_INIT;
	const char *mark = strstr(script, "%s\n");
	char line[256], name[64];

	/* The script has other % signs: not a format. */
	strbuf_append(&program, script, mark - script);
	strbuf_puts(&program, more);
	assert_int_equal(strbuf_puts(&program, mark + 2), 0);
	child_spawn(c, command, strbuf_str(&program));
	while (fgets(line, sizeof(line), c->out)) {
		unsigned long long a, b;

		if (sscanf(line, "version %llu", &a) == 1) {
			c->version = a;
		} else if (sscanf(line, "implementation %63s", name) == 1) {
			c->is_cpython = !strcmp(name, "cpython");
		} else if (sscanf(line, "thread %llu %llu", &a, &b) == 2 && c->threads < THREADS) {
			c->idents[c->threads] = a;
			c->tids[c->threads++] = b;
		} else if (!strcmp(line, "ready\n")) {
			c->is_ready = true;
			return;
		}
	}
}

/* --- Interpreters ------------------------------------------------------------------------------
 */

struct commands {
	char **items;
	size_t len;
	size_t cap;
};

static void commands_add(struct commands *commands, const char *prefix, const char *path)
{
	char *command = NULL;

	assert_true(asprintf(&command, "%s%s", prefix, path) > 0);
	assert_int_equal(vec_push(commands, command), 0);
}

/* `root` is cut off the paths found: for commands that chroot there. */
static void commands_glob(struct commands *commands, const char *prefix, const char *root,
			  const char *pattern)
{
	_cleanup_(strbuf_releasep) struct strbuf full = STRBUF_INIT;
	glob_t found;

	assert_int_equal(strbuf_appendf(&full, "%s%s", root, pattern), 0);
	if (!glob(strbuf_str(&full), 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			if (!strstr(found.gl_pathv[i], "config"))
				commands_add(commands, prefix,
					     found.gl_pathv[i] + (*prefix ? strlen(root) : 0));
		globfree(&found);
	}
}

static int setup(void **state)
{
	struct commands *commands = calloc(1, sizeof(*commands));
	const char *given = getenv("PYEBPF_PYTHONS"), *home = getenv("HOME");
	const char *pyenv = getenv("PYENV_ROOT"), *cache = getenv("XDG_CACHE_HOME");
	char pyenv_default[512], cache_default[512], root[600], chroot_prefix[700];

	assert_non_null(commands);
	*state = commands;
	/* Names of their own would hide what is wrong with these. */
	unsetenv("PYTHONHOME");
	unsetenv("PYTHONPATH");
	if (given && *given) {
		_cleanup_(freep) char *copy = strdup(given);
		char *rest = copy, *one;

		assert_non_null(copy);
		while ((one = strsep(&rest, ":")))
			if (*one)
				commands_add(commands, "", one);
		return 0;
	}
	snprintf(pyenv_default, sizeof(pyenv_default), "%s/.pyenv", home ? home : "");
	snprintf(cache_default, sizeof(cache_default), "%s/.cache", home ? home : "");
	snprintf(root, sizeof(root), "%s/pyebpf/pythons", cache ? cache : cache_default);
	commands_glob(commands, "", pyenv ? pyenv : pyenv_default, "/versions/*/bin/python[23]");
	commands_glob(commands, "", root, "/twins/*/bin/python3*");
	commands_glob(commands, "", root, "/freethreaded*/bin/python3.*t");
	commands_glob(commands, "", "", "/usr/bin/python3");
	strncat(root, "/sid", sizeof(root) - strlen(root) - 1);
	snprintf(chroot_prefix, sizeof(chroot_prefix), "/usr/sbin/chroot %s ", root);
	if (!geteuid())
		commands_glob(commands, chroot_prefix, root, "/usr/bin/python3.[0-9]*");
	return 0;
}

static int teardown(void **state)
{
	struct commands *commands = *state;

	for (size_t i = 0; i < commands->len; i++)
		free(commands->items[i]);
	vec_release(commands);
	free(commands);
	return 0;
}

/* One that we can read, started. False: there is none. */
static bool start_any(struct child *c, const struct commands *commands, unsigned minor_least,
		      unsigned minor_most, const char *more)
{
	for (size_t i = 0; i < commands->len; i++) {
		child_start(c, commands->items[i], more);
		if (c->is_ready && c->is_cpython && VERSION_MINOR(c->version) >= minor_least &&
		    VERSION_MINOR(c->version) <= minor_most)
			return true;
		child_end(c);
	}
	return false;
}

/* --- What is found -----------------------------------------------------------------------------
 */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static uint64_t read_u64(pid_t pid, uint64_t addr)
{
	uint64_t value = 0;
	int r = mem_read(pid, addr, &value, sizeof(value));

	if (r < 0)
		fail_msg("%s", err_message(r));
	return value;
}

/* All threads of the child end up waiting: bound to the GIL state API, but not active. */
static void check_status(const char *command, pid_t pid, const struct py_offsets *off,
			 uint64_t tstate)
{
	const unsigned both = off->status_bound_gilstate | off->status_active;
	const double limit = now_ms() + 10000;
	unsigned status;

	do {
		status = read_u64(pid, tstate + off->tstate_status) & both;
		sched_yield();
	} while (status == both && now_ms() < limit);
	if (status != off->status_bound_gilstate)
		fail_msg("%s: a waiting thread has status 0x%x", command, status);
}

/* Each thread of the child has one thread state, on the list of the one interpreter. */
static void check_threads(const char *command, const struct child *c, const struct py_runtime *rt)
{
	const struct py_offsets *off = &rt->offsets;
	uint64_t head = read_u64(c->pid, rt->runtime_addr + off->runtime_interpreters_head);
	uint64_t tstate = read_u64(c->pid, head + off->interp_threads_head), prev = 0;
	size_t seen = 0, matches = 0;

	assert_true(head != 0);
	if (read_u64(c->pid, head + off->interp_next) ||
	    (off->interp_id != OFF_NONE && read_u64(c->pid, head + off->interp_id)))
		fail_msg("%s: not the one and only interpreter", command);
	for (; tstate; tstate = read_u64(c->pid, tstate + off->tstate_next)) {
		uint64_t ident = read_u64(c->pid, tstate + off->tstate_thread_id);

		if (++seen > THREAD_STATES_MAX)
			fail_msg("%s: no end of thread states", command);
		if (read_u64(c->pid, tstate + off->tstate_interp) != head ||
		    read_u64(c->pid, tstate + off->tstate_prev) != prev)
			fail_msg("%s: a thread state that is not on its list", command);
		prev = tstate;
		for (size_t i = 0; i < c->threads; i++) {
			if (c->idents[i] != ident)
				continue;
			matches++;
			if (!read_u64(c->pid, tstate + off->tstate_frame))
				fail_msg("%s: a thread without a frame", command);
			if (off->tstate_native_thread_id != OFF_NONE &&
			    read_u64(c->pid, tstate + off->tstate_native_thread_id) != c->tids[i])
				fail_msg("%s: another native thread id", command);
			if (off->status_bound_gilstate)
				check_status(command, c->pid, off, tstate);
		}
	}
	if (matches != THREADS)
		fail_msg("%s: %zu of %d threads found", command, matches, THREADS);
}

static void test_runtime_find_reads_every_interpreter(void **state)
{
	const struct commands *commands = *state;
	struct runtime_cache *cache = NULL;
	size_t used = 0, refused = 0;

	assert_int_equal(runtime_cache_new(&cache), 0);
	for (size_t i = 0; i < commands->len; i++) {
		const char *command = commands->items[i];
		struct py_runtime rt, again;
		char version[VERSION_TEXT_BYTES];
		uint64_t misses;
		struct child c;
		int r;

		child_start(&c, command, "");
		if (!c.is_ready) {
			print_message("not used, it does not run: %s\n", command);
			child_end(&c);
			continue;
		}
		version_format(c.version, version);
		r = runtime_find(cache, c.pid, &rt);
		if (!c.is_cpython || VERSION_MAJOR(c.version) < 3 || VERSION_MINOR(c.version) < 6) {
			if (r != -ENOTSUP ||
			    (c.version && !strstr(err_message(r), "is not supported")) ||
			    (VERSION_MAJOR(c.version) < 3 && !strstr(err_message(r), version)))
				fail_msg("%s: %d %s", command, r, err_message(r));
			print_message("refused: %s\n", err_message(r));
			refused++;
			child_end(&c);
			continue;
		}
		if (r < 0)
			fail_msg("%s: %s", command, err_message(r));
		/* The serial number of final releases is 0, and the text has no more. */
		if (rt.version != c.version || rt.offsets.minor != VERSION_MINOR(c.version) ||
		    rt.offsets.micro != VERSION_MICRO(c.version))
			fail_msg("%s: version 0x%x, is 0x%x", command, rt.version, c.version);
		assert_false(rt.offsets.is_best_effort);
		assert_int_equal(rt.runtime_addr,
				 rt.text_start - rt.text_pgoff + (uint64_t)rt.text_to_runtime);
		check_threads(command, &c, &rt);

		misses = runtime_cache_misses(cache);
		assert_int_equal(runtime_find(cache, c.pid, &again), 0);
		assert_int_equal(runtime_cache_misses(cache), misses);
		assert_memory_equal(&again.offsets, &rt.offsets, sizeof(rt.offsets));
		assert_int_equal(again.runtime_addr, rt.runtime_addr);
		print_message("used: %s: %s in %s\n", version, command, rt.path);
		used++;
		child_end(&c);
	}
	runtime_cache_free(cache);
	print_message("%zu interpreters used, %zu refused by name\n", used, refused);
	if (!used)
		fail_msg("not one interpreter: set PYEBPF_PYTHONS");
}

/* Executable mappings of files: an upper limit of the files. */
static uint64_t count_files(pid_t pid)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	uint64_t count = 0;

	assert_int_equal(maps_open(pid, &maps), 0);
	while (maps_next(maps, &m) > 0)
		count += m.inode && m.perms & PROT_EXEC;
	return count;
}

static void test_runtime_find_reads_each_file_once(void **state)
{
	enum { COUNT = 8 };
	struct runtime_cache *cache = NULL;
	struct child children[COUNT];
	double first_ms = 0, known_ms = 0;
	uint64_t misses = 0;

	assert_int_equal(runtime_cache_new(&cache), 0);
	for (int i = 0; i < COUNT; i++)
		assert_true(start_any(&children[i], *state, 8, 99, ""));
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < COUNT; i++) {
			struct py_runtime rt;
			double start = now_ms();
			int r = runtime_find(cache, children[i].pid, &rt);

			if (r < 0)
				fail_msg("%s", err_message(r));
			first_ms += !pass && !i ? now_ms() - start : 0;
			known_ms += pass ? now_ms() - start : 0;
		}
		if (!pass)
			misses = runtime_cache_misses(cache);
	}
	assert_int_equal(runtime_cache_misses(cache), misses);
	assert_in_range(misses, 1, count_files(children[0].pid));
	print_message("%llu files read for %d processes; first %.3f ms, known %.3f ms each\n",
		      (unsigned long long)misses, COUNT, first_ms, known_ms / COUNT);
	for (int i = 0; i < COUNT; i++)
		child_end(&children[i]);
	runtime_cache_free(cache);
}

/* A process whose memory does not say what its file says, as only a hostile one does. */
static void test_runtime_find_names_sources_that_disagree(void **state)
{
	static const char spoil[] =
		"import ctypes\n"
		"at = ctypes.addressof(ctypes.c_uint64.in_dll(ctypes.pythonapi, '_PyRuntime'))\n"
		"ctypes.c_uint64.from_address(at + 8).value = 0x030a01f0\n";
	struct runtime_cache *cache = NULL;
	struct py_runtime rt = { .version = 1 };
	struct child c;
	int r;

	if (!start_any(&c, *state, 13, 99, spoil))
		SKIP("no CPython 3.13 or newer with ctypes");
	assert_int_equal(runtime_cache_new(&cache), 0);
	r = runtime_find(cache, c.pid, &rt);
	assert_int_equal(r, -EBADMSG);
	if (!strstr(err_message(r), "the file says 3.1") ||
	    !strstr(err_message(r), "memory says 3.10.1"))
		fail_msg("%s", err_message(r));
	assert_int_equal(rt.version, 1);
	child_end(&c);

	/* It has not spoilt what others of the same file get. */
	assert_true(start_any(&c, *state, 13, 99, ""));
	assert_int_equal(runtime_find(cache, c.pid, &rt), 0);
	assert_int_equal(rt.version, c.version);
	child_end(&c);
	runtime_cache_free(cache);
}

/* Up to 3.10 only a process says the version: what one says wrongly must not stick to the file. */
static void test_runtime_find_is_not_spoilt_by_one_process(void **state)
{
	static const char spoil[] = "import ctypes\n"
				    "ctypes.pythonapi.Py_GetVersion.restype = ctypes.c_void_p\n"
				    "at = ctypes.pythonapi.Py_GetVersion()\n"
				    "ctypes.memmove(at, b'3.5.1 (', 7)\n";
	struct runtime_cache *cache = NULL;
	struct py_runtime rt;
	struct child c;
	int r;

	if (!start_any(&c, *state, 8, 10, spoil))
		SKIP("no CPython 3.8 to 3.10 with ctypes");
	assert_int_equal(runtime_cache_new(&cache), 0);
	r = runtime_find(cache, c.pid, &rt);
	assert_int_equal(r, -ENOTSUP);
	if (!strstr(err_message(r), "CPython 3.5.1 is not supported"))
		fail_msg("%s", err_message(r));
	child_end(&c);
	assert_true(start_any(&c, *state, 8, 10, ""));
	assert_int_equal(runtime_find(cache, c.pid, &rt), 0);
	assert_int_equal(rt.version, c.version);
	child_end(&c);
	runtime_cache_free(cache);
}

static void test_runtime_find_says_why_not(void **state)
{
	struct runtime_cache *cache = NULL;
	struct py_runtime rt = { .version = 1 };
	siginfo_t ended;
	struct child c;
	int r, i;

	(void)state;
	assert_int_equal(runtime_cache_new(&cache), 0);
	assert_int_equal(runtime_find(cache, NO_PID, &rt), -ESRCH);
	assert_string_equal(err_message(-ESRCH), "no process with pid 4194305");

	child_spawn(&c, "cat", NULL);
	for (i = 0; i < 2; i++) { /* from the files, then from the cache */
		/* It may still be the shell, which is as good. */
		r = runtime_find(cache, c.pid, &rt);
		assert_int_equal(r, -ENOENT);
		if (strncmp(err_message(r), "no Python runtime in this process (mappings: /", 46))
			fail_msg("%s", err_message(r));
	}
	kill(c.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, c.pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(runtime_find(cache, c.pid, &rt), -ESRCH); /* a zombie */
	child_end(&c);

	assert_int_equal(rt.version, 1);
	runtime_cache_free(cache);
	runtime_cache_free(NULL);
}

/* As a user without privileges: of others nothing, of our own all. */
static void test_runtime_find_needs_permission(void **state)
{
	struct runtime_cache *cache = NULL;
	struct py_runtime rt;
	struct child c;
	int status;
	pid_t pid;

	if (geteuid())
		SKIP("not root");
	assert_true(start_any(&c, *state, 8, 99, ""));
	assert_int_equal(runtime_cache_new(&cache), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1))
			_exit(10);
		if (runtime_find(cache, c.pid, &rt) != -EPERM ||
		    !strstr(err_message(-EPERM), "permission denied"))
			_exit(11);
		if (runtime_find(cache, getpid(), &rt) != -ENOENT)
			_exit(12);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	child_end(&c);
	runtime_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtime_find_reads_every_interpreter),
		cmocka_unit_test(test_runtime_find_reads_each_file_once),
		cmocka_unit_test(test_runtime_find_names_sources_that_disagree),
		cmocka_unit_test(test_runtime_find_is_not_spoilt_by_one_process),
		cmocka_unit_test(test_runtime_find_says_why_not),
		cmocka_unit_test(test_runtime_find_needs_permission),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
