/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/proc.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"

#define PF_FORKNOEXEC 0x00000040 /* linux/sched.h, the same since 2.6.27 */
#define PF_KTHREAD 0x00200000
#define STAT_BYTES_MAX 4096
#define STATUS_BYTES_MAX 65536 /* the list of supplementary groups is the long part */

DEFINE_CLEANUP(DIR *, closedir)

/* A process that ends while one of its files is open or read shows as -ESRCH or -ENOENT. */
static int gone(pid_t pid)
{
	return err_set(-ESRCH, "no process with pid %d", pid);
}

/* Up to max bytes of /proc/PID/NAME, which is not an error when longer. */
static int read_start(pid_t pid, const char *name, size_t max, char **out, size_t *len)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(closep) int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH
			       ? gone(pid)
			       : err_set(-errno, "%s: %s", path, strerror(errno));
	text = malloc(max + 1);
	if (!text)
		return -ENOMEM;
	n = file_pread(fd, text, max, 0);
	if (n < 0)
		return n == -ESRCH ? gone(pid) : err_set(n, "%s: %s", path, strerror(-(int)n));
	text[n] = '\0';
	*out = take_ptr(text);
	*len = n;
	return 0;
}

/* The next number of a line of numbers. */
static int next_number(char **p, long long *out)
{
	char *end;

	errno = 0;
	*out = strtoll(*p, &end, 10);
	if (end == *p || errno)
		return -EBADMSG;
	*p = end;
	return 0;
}

static bool has_ended(char state)
{
	return state == 'Z' || state == 'X';
}

int proc_stat_parse(const char *text, size_t len, struct proc_stat *out)
{
	/* Fields of proc_pid_stat(5) behind the state, which is number 3. */
	enum { PPID = 4, FLAGS = 9, THREADS = 20, START = 22 };
	const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
	struct proc_stat parsed = { 0 };
	char numbers[1024], head[16], *p = numbers;
	size_t comm_len, left;
	long long v;

	if (!open || !close || close < open || text + len - close < 4 || close[1] != ' ' ||
	    close[3] != ' ' || open - text >= (ptrdiff_t)sizeof(head))
		return -EBADMSG;
	memcpy(head, text, open - text);
	head[open - text] = '\0';
	p = head;
	if (next_number(&p, &v) < 0 || v < 0 || v > INT_MAX)
		return -EBADMSG;
	parsed.pid = v;
	comm_len = close - open - 1;
	if (comm_len >= sizeof(parsed.comm))
		comm_len = sizeof(parsed.comm) - 1;
	memcpy(parsed.comm, open + 1, comm_len);
	parsed.state = close[2];

	left = text + len - (close + 3);
	if (left >= sizeof(numbers))
		left = sizeof(numbers) - 1;
	memcpy(numbers, close + 3, left);
	numbers[left] = '\0';
	p = numbers;
	for (int field = PPID; field <= START; field++) {
		if (next_number(&p, &v) < 0)
			return -EBADMSG;
		if (field == PPID)
			parsed.ppid = v;
		else if (field == FLAGS)
			parsed.flags = v;
		else if (field == THREADS)
			parsed.threads = v;
		else if (field == START)
			parsed.start_ticks = v;
	}
	parsed.is_kernel_thread = parsed.flags & PF_KTHREAD;
	parsed.is_forked = parsed.flags & PF_FORKNOEXEC;
	parsed.is_zombie = has_ended(parsed.state) && parsed.threads <= 1;
	*out = parsed;
	return 0;
}

int proc_stat(pid_t pid, struct proc_stat *out)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r;

	r = read_start(pid, "stat", STAT_BYTES_MAX, &text, &len);
	if (r < 0)
		return r;
	r = proc_stat_parse(text, len, out);
	if (r < 0)
		return err_set(r, "/proc/%d/stat: not the format of proc_pid_stat(5)", pid);
	return 0;
}

uint64_t proc_start_ticks(uint64_t start_ns)
{
	const uint64_t tick_ns = NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);

	return (start_ns + clock_offsets.boottime_ns) / tick_ns;
}

bool proc_is(pid_t pid, uint64_t start_ticks)
{
	struct proc_stat stat;

	if (proc_stat(pid, &stat) >= 0)
		return stat.start_ticks == start_ticks;
	err_clear(); /* it is gone */
	return false;
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

void pids_sort(struct pids *p, size_t first)
{
	if (p->len > first)
		qsort(p->items + first, p->len - first, sizeof(*p->items), by_pid);
}

bool pids_has(const struct pids *ascending, pid_t pid)
{
	return ascending->len &&
	       bsearch(&pid, ascending->items, ascending->len, sizeof(pid), by_pid);
}

/* The names in a folder of /proc that are numbers. */
static int list_folder(const char *path, struct pids *out)
{
	_cleanup_(closedirp) DIR *folder = NULL;
	size_t before = out->len;
	struct dirent *entry;

	folder = opendir(path);
	if (!folder)
		return -errno;
	for (;;) {
		char *end;
		long pid;

		errno = 0;
		entry = readdir(folder);
		if (!entry)
			break;
		pid = strtol(entry->d_name, &end, 10);
		if (*end || pid <= 0 || pid > PROC_PIDS_MAX)
			continue;
		if (vec_push(out, (pid_t)pid) < 0) {
			out->len = before;
			return -ENOMEM;
		}
	}
	if (errno) {
		out->len = before;
		return -errno;
	}
	pids_sort(out, before);
	return 0;
}

int proc_list(struct pids *out)
{
	int r = list_folder("/proc", out);

	return r < 0 ? err_set(r, "/proc: %s", strerror(-r)) : 0;
}

int proc_threads(pid_t pid, struct pids *out)
{
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	r = list_folder(path, out);
	if (r == -ENOENT || r == -ESRCH)
		return gone(pid);
	return r < 0 ? err_set(r, "%s: %s", path, strerror(-r)) : 0;
}

pid_t proc_living_thread(pid_t pid)
{
	_cleanup_(pids_releasep) struct pids threads = VEC_INIT;
	struct proc_stat stat;
	pid_t living = pid;

	if (!proc_stat(pid, &stat) && has_ended(stat.state) && !stat.is_zombie &&
	    !proc_threads(pid, &threads))
		for (size_t i = 0; i < threads.len && living == pid; i++)
			if (!proc_stat(threads.items[i], &stat) && !has_ended(stat.state))
				living = threads.items[i];
	err_clear();
	return living;
}

/* Every process and its parent, as pairs. */
static int list_parents(struct pids *pairs)
{
	_cleanup_(pids_releasep) struct pids all = VEC_INIT;
	int r = proc_list(&all);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all.len; i++) {
		struct proc_stat stat;

		if (proc_stat(all.items[i], &stat) < 0) {
			err_clear(); /* ended meanwhile */
			continue;
		}
		if (vec_push(pairs, all.items[i]) < 0 || vec_push(pairs, stat.ppid) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int append_children(const struct pids *pairs, pid_t parent, struct pids *out)
{
	for (size_t i = 0; i + 1 < pairs->len; i += 2)
		if (pairs->items[i + 1] == parent && vec_push(out, pairs->items[i]) < 0)
			return -ENOMEM;
	return 0;
}

static int list_family(pid_t pid, bool with_grandchildren, struct pids *out)
{
	_cleanup_(pids_releasep) struct pids pairs = VEC_INIT, found = VEC_INIT;
	struct proc_stat stat;
	int r = proc_stat(pid, &stat);

	if (r < 0)
		return r;
	r = list_parents(&pairs);
	if (r < 0)
		return r;
	r = append_children(&pairs, pid, &found);
	/* PIDs may be reused while we look: never more entries than there are processes. */
	for (size_t i = 0; with_grandchildren && !r && i < found.len && found.len < pairs.len; i++)
		r = append_children(&pairs, found.items[i], &found);
	if (r < 0)
		return r;
	pids_sort(&found, 0);
	return vec_append(out, found.items, found.len);
}

int proc_children(pid_t pid, struct pids *out)
{
	return list_family(pid, false, out);
}

int proc_descendants(pid_t pid, struct pids *out)
{
	return list_family(pid, true, out);
}

int proc_cmdline(pid_t pid, char **out, size_t *len)
{
	return read_start(proc_living_thread(pid), "cmdline", PROC_CMDLINE_MAX, out, len);
}

int proc_exe(pid_t pid, char **out)
{
	char path[32], target[PATH_MAX];
	ssize_t n;
	char *copy;

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_living_thread(pid));
	n = readlink(path, target, sizeof(target));
	if (n < 0)
		return err_set(-errno, "%s: %s", path, strerror(errno));
	copy = strndup(target, n);
	if (!copy)
		return -ENOMEM;
	*out = copy;
	return 0;
}

int proc_nspid_parse(const char *text, size_t len, pid_t *out)
{
	static const char key[] = "\nNSpid:";
	const char *line = memmem(text, len, key, sizeof(key) - 1);
	const char *end;
	char numbers[512], *p = numbers;
	long long v, last = -1;
	size_t line_len;

	if (!line)
		return -ENODATA;
	line += sizeof(key) - 1;
	end = memchr(line, '\n', text + len - line);
	line_len = (end ? end : text + len) - line;
	if (line_len >= sizeof(numbers))
		return -EBADMSG;
	memcpy(numbers, line, line_len);
	numbers[line_len] = '\0';
	while (!next_number(&p, &v))
		last = v;
	if (last <= 0 || last > PROC_PIDS_MAX)
		return -EBADMSG;
	*out = last;
	return 0;
}

int proc_nspid(pid_t pid, pid_t *out)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r;

	r = read_start(pid, "status", STATUS_BYTES_MAX, &text, &len);
	if (r < 0)
		return r;
	r = proc_nspid_parse(text, len, out);
	if (r < 0)
		return err_set(r, "/proc/%d/status: no NSpid", pid);
	return 0;
}

uint64_t proc_own_memory(void)
{
	_cleanup_(freep) char *text = NULL;
	unsigned long long kib;
	const char *line;
	size_t len;

	if (read_start(getpid(), "status", STATUS_BYTES_MAX, &text, &len) < 0)
		return 0;
	line = memmem(text, len, "\nVmHWM:", 7);
	return line && sscanf(line, "\nVmHWM: %llu", &kib) == 1 ? kib * 1024 : 0;
}

/* maps has the device of the super block, stat() on these shows one of their own making. */
static bool has_own_devices(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

/*
 * The path of a mapping as the target has it. maps shows paths from our root: behind a chroot they
 * begin with where the target's root is.
 */
static const char *path_below_root(const char *root_link, const char *path)
{
	char root[PATH_MAX];
	ssize_t n = readlink(root_link, root, sizeof(root));

	/* In another mount namespace it reads as "/", and the paths are from there. */
	if (n > 1 && n < (ssize_t)sizeof(root) && !strncmp(path, root, n) && path[n] == '/')
		return path + n;
	return path;
}

/* The path of a mapping, below the root of the target. Returns an O_PATH fd. */
static int open_below_root(pid_t pid, const struct mapping *m)
{
	_cleanup_(closep) int root = -1, fd = -1;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char path[32];
	struct stat st;

	if (m->path[0] != '/' || m->is_cut)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = syscall(SYS_openat2, root, path_below_root(path, m->path), &how, sizeof(how));
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != m->inode)
		return -ESTALE;
	if (st.st_dev != makedev(m->dev_major, m->dev_minor) && !has_own_devices(fd))
		return -ESTALE;
	return take_fd(fd);
}

struct file_id file_id_of(const struct stat *st)
{
	return (struct file_id){
		.dev = st->st_dev,
		.inode = st->st_ino,
		.size = st->st_size,
		.mtime_ns = (int64_t)timespec_ns(&st->st_mtim),
	};
}

static int open_mapped(pid_t tid, const struct mapping *m)
{
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", tid,
		 (unsigned long long)m->start, (unsigned long long)m->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? open_below_root(tid, m) : fd;
}

/* The file of a mapping, as an O_PATH fd: nothing is opened yet, so a device does nothing. */
static int locate(pid_t pid, const struct mapping *m, struct file_id *id)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	pid_t tid;

	if (!m->inode)
		return err_set(-ENOENT, "pid %d: no file behind the mapping at 0x%llx", pid,
			       (unsigned long long)m->start);
	fd = open_mapped(pid, m);
	if (fd < 0 && (tid = proc_living_thread(pid)) != pid)
		fd = open_mapped(tid, m);
	if (fd == -ESTALE)
		return err_set(-ESTALE, "pid %d: %s is not the mapped file any more", pid, m->path);
	if (fd < 0)
		return err_set(fd, "pid %d: %s: %s", pid, m->path, strerror(-fd));
	if (fstat(fd, &st) < 0)
		return err_set(-errno, "pid %d: %s: %s", pid, m->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(-EINVAL, "pid %d: %s: not a regular file", pid, m->path);
	*id = file_id_of(&st);
	return take_fd(fd);
}

int proc_mapped_id(pid_t pid, const struct mapping *m, struct file_id *id)
{
	_cleanup_(closep) int fd = -1;

	fd = locate(pid, m, id);
	if (fd < 0)
		return fd;
	return 0;
}

int proc_mapped_open(pid_t pid, const struct mapping *m, struct file_id *id)
{
	_cleanup_(closep) int place = -1;
	struct file_id found;
	int fd;

	place = locate(pid, m, &found);
	if (place < 0)
		return place;
	fd = file_reopen(place);
	if (fd < 0)
		return err_set(fd, "pid %d: %s: %s", pid, m->path, strerror(-fd));
	if (id)
		*id = found;
	return fd;
}
