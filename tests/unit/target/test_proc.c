/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "target/mem.h"
#include "target/proc.h"
#include "tests/unit/skip.h"

#define NO_PID 4194305 /* beyond PID_MAX_LIMIT */
#define NOBODY 65534
#define NUMBERS " 1 2 3 4 5 4194560 7 8 9 10 11 12 13 14 15 16 17 18 19 987654321 21 22"

static void test_proc_stat_parse_survives_any_name(void **state)
{
	static const struct {
		const char *name;
		const char *text;
		int want;
		const char *comm;
		char letter;
	} cases[] = {
		{ "plain", "12 (python3) S" NUMBERS, 0, "python3", 'S' },
		{ "brackets", "12 (a) R (b) S" NUMBERS, 0, "a) R (b", 'S' },
		{ "only brackets", "12 ())) Z" NUMBERS, 0, "))", 'Z' },
		{ "a newline", "12 (a\nb) R" NUMBERS, 0, "a\nb", 'R' },
		{ "no name", "12 () R" NUMBERS, 0, "", 'R' },
		{ "empty", "", -EBADMSG, NULL, 0 },
		{ "no bracket", "12 python3 S" NUMBERS, -EBADMSG, NULL, 0 },
		{ "brackets the other way round", "12 )a( S" NUMBERS, -EBADMSG, NULL, 0 },
		{ "no PID", "x (a) S" NUMBERS, -EBADMSG, NULL, 0 },
		{ "ends behind the name", "12 (a)", -EBADMSG, NULL, 0 },
		{ "ends before the start time", "12 (a) S 1 2 3 4 5 6 7", -EBADMSG, NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct proc_stat stat = { 0 };
		int r = proc_stat_parse(cases[i].text, strlen(cases[i].text), &stat);

		if (r != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
		if (r < 0)
			continue;
		if (strcmp(stat.comm, cases[i].comm) || stat.state != cases[i].letter ||
		    stat.pid != 12 || stat.ppid != 1 || stat.flags != 4194560 ||
		    stat.threads != 17 || stat.start_ticks != 19 ||
		    stat.is_zombie) /* of 17 threads there are others */
			fail_msg("%s: another process than expected: \"%s\" %c", cases[i].name,
				 stat.comm, stat.state);
	}
}

static void test_proc_nspid_parse_takes_the_innermost(void **state)
{
	static const struct {
		const char *name;
		const char *text;
		int want;
		pid_t pid;
	} cases[] = {
		{ "one", "Name:\ta\nNSpid:\t412\nNSpgid:\t1\n", 0, 412 },
		{ "nested", "Name:\ta\nNSpid:\t412\t17\t1\nNSpgid:\t1\n", 0, 1 },
		{ "last line", "Name:\ta\nNSpid:\t412\t9", 0, 9 },
		{ "not there", "Name:\tNSpid: 3\n", -ENODATA, 0 },
		{ "empty", "Name:\ta\nNSpid:\t\n", -EBADMSG, 0 },
		{ "negative", "Name:\ta\nNSpid:\t-5\n", -EBADMSG, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		pid_t pid = 0;
		int r = proc_nspid_parse(cases[i].text, strlen(cases[i].text), &pid);

		if (r != cases[i].want || pid != cases[i].pid)
			fail_msg("%s: got %d, pid %d", cases[i].name, r, pid);
	}
}

static void *wait_for_byte(void *fd)
{
	char byte;

	return read(*(int *)fd, &byte, 1) == 1 ? fd : NULL;
}

static void test_proc_describes_this_process(void **state)
{
	_cleanup_(pids_releasep) struct pids threads = VEC_INIT, all = VEC_INIT;
	_cleanup_(freep) char *exe = NULL, *cmdline = NULL;
	char own[4096] = { 0 };
	struct proc_stat stat;
	pthread_t thread;
	size_t len;
	int fds[2];
	pid_t pid;
	bool is_listed = false;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_byte, &fds[0]), 0);

	assert_int_equal(prctl(PR_SET_NAME, "a) S 1 (b"), 0);
	assert_int_equal(proc_stat(getpid(), &stat), 0);
	assert_string_equal(stat.comm, "a) S 1 (b");
	assert_int_equal(stat.ppid, getppid());
	assert_int_equal(stat.threads, 2);
	assert_true(stat.start_ticks > 0);
	assert_false(stat.is_kernel_thread);
	assert_false(stat.is_zombie);

	assert_int_equal(proc_threads(getpid(), &threads), 0);
	assert_int_equal(threads.len, 2);
	assert_int_equal(threads.items[0], getpid());

	assert_int_equal(proc_list(&all), 0);
	for (size_t i = 0; i < all.len; i++) {
		is_listed |= all.items[i] == getpid();
		assert_true(!i || all.items[i - 1] < all.items[i]);
	}
	assert_true(is_listed);

	assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
	assert_int_equal(proc_exe(getpid(), &exe), 0);
	assert_string_equal(exe, own);
	assert_int_equal(proc_cmdline(getpid(), &cmdline, &len), 0);
	assert_true(len > 0 && strstr(cmdline, "test_proc"));
	assert_int_equal(proc_nspid(getpid(), &pid), 0);
	assert_int_equal(pid, getpid());

	assert_int_equal(write(fds[1], "x", 1), 1);
	pthread_join(thread, NULL);
	close(fds[0]);
	close(fds[1]);
}

static void test_proc_finds_children_and_theirs(void **state)
{
	_cleanup_(pids_releasep) struct pids children = VEC_INIT, descendants = VEC_INIT;
	struct proc_stat stat;
	int fds[2];
	pid_t child, grandchild = 0;
	siginfo_t ended;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		grandchild = fork();
		if (grandchild && write(fds[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(fds[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));

	assert_int_equal(proc_children(getpid(), &children), 0);
	assert_int_equal(children.len, 1);
	assert_int_equal(children.items[0], child);
	assert_int_equal(proc_descendants(getpid(), &descendants), 0);
	assert_int_equal(descendants.len, 2);
	assert_true((descendants.items[0] == child && descendants.items[1] == grandchild) ||
		    (descendants.items[1] == child && descendants.items[0] == grandchild));

	kill(grandchild, SIGKILL);
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, child, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_stat(child, &stat), 0);
	assert_true(stat.is_zombie);
	assert_int_equal(proc_living_thread(child), child);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(proc_stat(child, &stat), -ESRCH);
	close(fds[0]);
	close(fds[1]);
}

static void test_proc_says_that_a_process_is_missing(void **state)
{
	struct pids pids = VEC_INIT;
	struct proc_stat stat;
	char *text = NULL;
	size_t len;
	pid_t pid;

	(void)state;
	assert_int_equal(proc_stat(NO_PID, &stat), -ESRCH);
	assert_string_equal(err_message(-ESRCH), "no process with pid 4194305");
	assert_int_equal(proc_threads(NO_PID, &pids), -ESRCH);
	assert_int_equal(proc_children(NO_PID, &pids), -ESRCH);
	assert_int_equal(proc_descendants(NO_PID, &pids), -ESRCH);
	assert_int_equal(proc_cmdline(NO_PID, &text, &len), -ESRCH);
	assert_int_equal(proc_exe(NO_PID, &text), -ENOENT);
	assert_int_equal(proc_nspid(NO_PID, &pid), -ESRCH);
	assert_null(text);
	assert_null(pids.items);
}

static void test_proc_stat_knows_kernel_threads(void **state)
{
	struct proc_stat stat;

	(void)state;
	if (proc_stat(2, &stat) < 0 || strcmp(stat.comm, "kthreadd"))
		SKIP("no kthreadd in this PID namespace");
	assert_true(stat.is_kernel_thread);
}

/* A file of len bytes, mapped; m is its mapping. */
static char *map_file(const char *path, struct mapping *m, char line[512])
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	_cleanup_(closep) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	char *addr;
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "mapped", 6), 6);
	addr = mmap(NULL, 6, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(addr, MAP_FAILED);
	assert_int_equal(maps_open(getpid(), &maps), 0);
	while ((r = maps_next(maps, m)) > 0 && m->start != (uintptr_t)addr)
		;
	assert_int_equal(r, 1);
	snprintf(line, 512, "%s", m->path);
	m->path = line;
	return addr;
}

static int read_mapped(pid_t pid, const struct mapping *m, char buf[7])
{
	_cleanup_(closep) int fd = proc_mapped_open(pid, m, NULL);

	if (fd < 0)
		return fd;
	buf[6] = '\0';
	return read(fd, buf, 6);
}

static void write_new(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "other!", 6), 6);
}

/* map_files is for the privileged: without, the path below the root must do. */
static void test_proc_mapped_open_reads_what_is_mapped(void **state)
{
	char folder[] = "/tmp/test_proc.XXXXXX", path[64], name[512], buf[7];
	struct mapping m;
	struct file_id id;
	bool is_root = !geteuid();
	char *addr;
	int status;
	pid_t child;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/a\nb", folder);
	addr = map_file(path, &m, name);
	assert_string_equal(m.path, path);
	assert_int_equal(read_mapped(getpid(), &m, buf), 6);
	assert_string_equal(buf, "mapped");

	/* The same without privileges, in a child that has the mapping too. */
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (is_root && (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)))
			_exit(10);
		if (read_mapped(getpid(), &m, buf) != 6 || strcmp(buf, "mapped"))
			_exit(11);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);

	/* Another file takes its place. */
	assert_int_equal(unlink(path), 0);
	write_new(path);
	if (is_root) {
		assert_int_equal(read_mapped(getpid(), &m, buf), 6);
		assert_string_equal(buf, "mapped");
	}
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (is_root && (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)))
			_exit(10);
		if (proc_mapped_id(getpid(), &m, &id) != -ESTALE)
			_exit(11);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);

	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	munmap(addr, 6);
}

static void test_proc_mapped_open_takes_regular_files_only(void **state)
{
	char *addr = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_cleanup_(closep) int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *device = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, zero, 0);
	struct mapping none = { .start = (uintptr_t)addr,
				.end = (uintptr_t)addr + 4096,
				.path = "" };
	struct mapping fake = { .start = 4096, .end = 8192, .inode = 1, .path = "/proc/self/exe" };
	struct mapping missing = { .start = 4096, .end = 8192, .inode = 1, .path = "/nonexistent" };
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct file_id id;
	struct mapping m;

	(void)state;
	assert_int_equal(proc_mapped_open(getpid(), &none, &id), -ENOENT);
	assert_int_equal(proc_mapped_open(getpid(), &missing, &id), -ENOENT);
	assert_int_equal(proc_mapped_open(getpid(), &fake, &id), -ELOOP); /* a magic link */
	assert_int_equal(proc_mapped_open(NO_PID, &missing, &id), -ENOENT);

	assert_int_equal(maps_open(getpid(), &maps), 0);
	while (maps_next(maps, &m) > 0 && m.start != (uintptr_t)device)
		;
	assert_int_equal(m.start, (uintptr_t)device);
	if (m.inode) /* private mappings of /dev/zero are anonymous memory in some kernels */
		assert_int_equal(proc_mapped_open(getpid(), &m, &id), -EINVAL);
	munmap(addr, 4096);
	munmap(device, 4096);
}

static void *stay(void *fd)
{
	char byte;

	while (read((int)(intptr_t)fd, &byte, 1) < 0)
		;
	_exit(0);
}

/* A process whose first thread ends, and whose other one stays until the pipe is closed. */
static pid_t start_without_first(int *go)
{
	int fds[2];
	pthread_t other;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[1]);
		pthread_create(&other, NULL, stay, (void *)(intptr_t)fds[0]);
		syscall(SYS_exit, 0); /* pthread_exit() would have LeakSanitizer look */
	}
	close(fds[0]);
	*go = fds[1];
	return pid;
}

static void test_proc_finds_a_thread_that_lives(void **state)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	_cleanup_(freep) char *exe = NULL, *own = NULL;
	struct proc_stat stat;
	struct mapping m;
	uint64_t word;
	pid_t pid;
	int go;

	(void)state;
	assert_int_equal(proc_living_thread(getpid()), getpid());
	assert_int_equal(proc_living_thread(NO_PID), NO_PID);
	pid = start_without_first(&go);
	do
		assert_int_equal(proc_stat(pid, &stat), 0);
	while (stat.state != 'Z');
	assert_false(stat.is_zombie);
	assert_int_not_equal(proc_living_thread(pid), pid);
	assert_int_equal(proc_exe(pid, &exe), 0);
	assert_int_equal(proc_exe(getpid(), &own), 0);
	assert_string_equal(exe, own);
	assert_int_equal(maps_open(pid, &maps), 0);
	assert_int_equal(maps_next(maps, &m), 1);
	assert_int_equal(mem_read(pid, (uint64_t)&stat, &word, sizeof(word)), 0);
	close(go);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proc_stat_parse_survives_any_name),
		cmocka_unit_test(test_proc_nspid_parse_takes_the_innermost),
		cmocka_unit_test(test_proc_describes_this_process),
		cmocka_unit_test(test_proc_finds_children_and_theirs),
		cmocka_unit_test(test_proc_says_that_a_process_is_missing),
		cmocka_unit_test(test_proc_stat_knows_kernel_threads),
		cmocka_unit_test(test_proc_finds_a_thread_that_lives),
		cmocka_unit_test(test_proc_mapped_open_reads_what_is_mapped),
		cmocka_unit_test(test_proc_mapped_open_takes_regular_files_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
