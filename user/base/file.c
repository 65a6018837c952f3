/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/partial.h"

#define READER_STEP_MS 50
#define READER_NS NS_PER_SECOND /* once we were told to end, for a reader that takes nothing */
#define NUMBER_BYTES_MAX 4096   /* of a file that begins with one */

/* Not in linux/magic.h: fs/configfs/mount.c, fs/fuse/control.c, ipc/mqueue.c */
#define CONFIGFS_MAGIC 0x62656570
#define FUSECTL_MAGIC 0x65735543
#define MQUEUE_MAGIC 0x19800202

int file_map_open(const char *path, struct file_map **out)
{
	_cleanup_(file_map_freep) struct file_map *m = NULL;
	_cleanup_(closep) int fd = -1;
	struct stat st;
	void *data;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang us */
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(-EINVAL, "%s: not a regular file", path);
	if (st.st_size == 0)
		return err_set(-ENODATA, "%s: empty file", path);

	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;

	data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return err_set(-errno, "map %s: %s", path, strerror(errno));
	m->data = data;
	m->size = st.st_size;

	*out = take_ptr(m);
	return 0;
}

void file_map_free(struct file_map *m)
{
	if (!m)
		return;
	if (m->data)
		munmap((void *)m->data, m->size);
	free(m);
}

int file_check_regular(int fd, const char *name, struct stat *st)
{
	struct stat own;

	if (!st)
		st = &own;
	if (fstat(fd, st) < 0)
		return err_set(-errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st->st_mode))
		return err_set(-EINVAL, "%s: not a regular file", name);
	return 0;
}

bool file_is_of_kernel(int fd)
{
	static const uint32_t types[] = {
		PROC_SUPER_MAGIC,     SYSFS_MAGIC,        DEBUGFS_MAGIC, TRACEFS_MAGIC,
		SECURITYFS_MAGIC,     CGROUP_SUPER_MAGIC, SMACK_MAGIC,   SELINUX_MAGIC,
		CGROUP2_SUPER_MAGIC,  BPF_FS_MAGIC,       NSFS_MAGIC,    DEVPTS_SUPER_MAGIC,
		PSTOREFS_MAGIC,       EFIVARFS_MAGIC,     AAFS_MAGIC,    BINFMTFS_MAGIC,
		RDTGROUP_SUPER_MAGIC, CONFIGFS_MAGIC,     FUSECTL_MAGIC, MQUEUE_MAGIC,
	};
	struct statfs fs;
	bool is_found = fstatfs(fd, &fs) < 0;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !is_found; i++)
		is_found = (uint32_t)fs.f_type == types[i];
	return is_found;
}

int file_reopen(int place)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int file_open_regular(const char *path, struct stat *st)
{
	_cleanup_(closep) int place = open(path, O_PATH | O_CLOEXEC);
	int fd, r;

	if (place < 0)
		return err_set(-errno, "%s: %s", path, strerror(errno));
	if ((r = file_check_regular(place, path, st)) < 0)
		return r;
	fd = file_reopen(place);
	return fd < 0 ? err_set(fd, "%s: %s", path, strerror(-fd)) : fd;
}

ssize_t file_pread(int fd, void *buf, size_t len, uint64_t offset)
{
	size_t got = 0;

	if (len > SSIZE_MAX || offset > (uint64_t)INT64_MAX - len)
		return -EOVERFLOW;
	while (got < len) {
		ssize_t n = pread(fd, (char *)buf + got, len - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += n;
	}
	return got;
}

/* Reads a whole file. size: the bytes that it is said to have. */
static int read_all(int fd, const char *path, size_t size, size_t max, char **out, size_t *len)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t used = 0, cap;
	ssize_t n;

	/* /proc says size 0, and a size may change while we read: only the end of the file counts
	 */
	cap = size + 4096;
	for (;;) {
		char *grown = realloc(bytes, cap);

		if (!grown)
			return -ENOMEM;
		bytes = grown;
		n = file_pread(fd, bytes + used, cap - 1 - used, used);
		if (n < 0)
			return err_set((int)n, "read %s: %s", path, strerror((int)-n));
		used += n;
		if (used > max)
			return err_set(-EFBIG, "%s: larger than %zu bytes", path, max);
		if (used < cap - 1)
			break;
		cap *= 2;
	}
	bytes[used] = '\0';
	*out = take_ptr(bytes);
	*len = used;
	return 0;
}

int file_read(const char *path, size_t max, char **out, size_t *len)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	assert(max < SSIZE_MAX / 2);
	fd = file_open_regular(path, &st);
	if (fd < 0)
		return fd;
	if (st.st_size > 0 && (uintmax_t)st.st_size > max)
		return err_set(-EFBIG, "%s: larger than %zu bytes", path, max);
	return read_all(fd, path, (size_t)st.st_size, max, out, len);
}

int file_read_proc(const char *path, size_t max, char **out, size_t *len)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(-errno, "%s: %s", path, strerror(errno));
	return read_all(fd, path, 0, max, out, len);
}

bool file_number(const char *path, long *out)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;

	if (file_read(path, NUMBER_BYTES_MAX, &text, &len) < 0) {
		err_clear(); /* the caller knows what that means */
		return false;
	}
	*out = strtol(text, NULL, 10);
	return true;
}

int file_make_directory(const char *path, mode_t mode)
{
	_cleanup_(freep) char *part = strdup(path);
	size_t len = strlen(path);

	if (!part)
		return -ENOMEM;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i])
			continue;
		part[i] = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return err_set(-errno, "%s: %s", part, strerror(errno));
		part[i] = path[i];
	}
	return 0;
}

static bool should_end;

void file_end_soon(void)
{
	__atomic_store_n(&should_end, true, __ATOMIC_RELAXED);
}

/* While this waits nobody reads the signals that are kept for a signalfd. */
static bool is_told_to_end(void)
{
	sigset_t pending;

	if (!sigpending(&pending) &&
	    (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1 ||
	     sigismember(&pending, SIGHUP) == 1))
		file_end_soon();
	return __atomic_load_n(&should_end, __ATOMIC_RELAXED);
}

/* Until the other end has room for PIPE_BUF bytes. */
static int wait_for_reader(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	uint64_t end_ns = 0;
	int n;

	while ((n = poll(&p, 1, READER_STEP_MS)) <= 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!is_told_to_end())
			continue;
		if (!end_ns)
			end_ns = monotonic_ns() + READER_NS;
		if (monotonic_ns() > end_ns)
			return -ETIMEDOUT;
	}
	return 0;
}

static bool has_reader(int fd)
{
	struct stat st;

	return !fstat(fd, &st) &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode));
}

int file_write(int fd, const void *bytes, size_t len)
{
	bool is_read = has_reader(fd);
	const char *p = bytes;

	while (len > 0) {
		size_t some = is_read && len > PIPE_BUF ? PIPE_BUF : len;
		int r = is_read ? wait_for_reader(fd) : 0;
		ssize_t n;

		if (r < 0)
			return r;
		n = write(fd, p, some);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= n;
	}
	return 0;
}

void file_sync_directory_of(const char *path)
{
	_cleanup_(freep) char *copy = strdup(path);
	_cleanup_(closep) int fd = -1;

	if (!copy)
		return;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)!fsync(fd);
}

struct atomic_file {
	FILE *stream;
	int fd;
	int error;     /* of the first write that failed: stdio forgets errno */
	uint64_t left; /* bytes that may be written */
	char *path;    /* for messages, and the target of the rename */
	char *tmp;     /* NULL: bytes go straight out */
};

static ssize_t atomic_file_write(void *cookie, const char *bytes, size_t len)
{
	struct atomic_file *f = cookie;

	if (!f->error && len > f->left)
		f->error = -E2BIG;
	if (!f->error)
		f->error = file_write(f->fd, bytes, len);
	f->left -= f->error ? 0 : len;
	return f->error ? 0 : (ssize_t)len;
}

/* An id that sudo says, or -1. */
static long caller_id(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	long id;

	if (!text || !*text)
		return -1;
	id = strtol(text, &end, 10);
	return *end || id < 0 || id > UINT32_MAX ? -1 : id;
}

int file_give_to_caller(int fd)
{
	long uid = caller_id("SUDO_UID"), gid = caller_id("SUDO_GID");

	if (geteuid() != 0 || uid < 0 || gid < 0)
		return 0;
	return fchown(fd, (uid_t)uid, (gid_t)gid) < 0 ? -errno : 0;
}

uid_t file_owner(void)
{
	long uid = geteuid() ? -1 : caller_id("SUDO_UID");

	return uid < 0 ? geteuid() : (uid_t)uid;
}

void file_keep_private(mode_t mode)
{
	mode_t had = umask(077);

	umask(had | (~mode & 077));
}

int file_descriptor_of(const char *path, int dash)
{
	const struct {
		const char *path;
		int fd;
	} known[] = { { "-", dash },
		      { "/dev/stdin", STDIN_FILENO },
		      { "/dev/stdout", STDOUT_FILENO },
		      { "/dev/stderr", STDERR_FILENO } };
	static const char *const numbered[] = { "/dev/fd/", "/proc/self/fd/" };
	const char *number = NULL;
	char *end;
	long fd;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(path, known[i].path))
			return known[i].fd;
	for (size_t i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++)
		if (!strncmp(path, numbered[i], strlen(numbered[i])))
			number = path + strlen(numbered[i]);
	if (!number)
		return -1;
	fd = strtol(number, &end, 10);
	return *end || end == number || fd < 0 || fd > INT_MAX ? -1 : (int)fd;
}

static int output_to_descriptor(const char *path, int number, int *fd)
{
	if (number == STDOUT_FILENO)
		fflush(stdout); /* what was printed before comes first */
	*fd = number < 0 ? open(path, O_WRONLY | O_CLOEXEC) : fcntl(number, F_DUPFD_CLOEXEC, 3);
	return *fd < 0 ? err_set(-errno, "%s: %s", path, strerror(errno)) : 1;
}

bool file_is_own(const struct stat *st)
{
	return st->st_uid == geteuid() || st->st_uid == file_owner();
}

int file_check_own(const char *path, const struct stat *st)
{
	if (file_is_own(st))
		return 0;
	return err_set(-EEXIST, "%s: belongs to another user (uid %u): name another one", path,
		       (unsigned int)st->st_uid);
}

int file_keep_mode(int fd, const struct stat *st)
{
	mode_t mask = umask(077);

	umask(mask);
	return fchmod(fd, st->st_mode & OUTPUT_MODE & ~mask) < 0 ? -errno : 0;
}

int file_output(const char *path, int *fd)
{
	int number = file_descriptor_of(path, STDOUT_FILENO);
	struct stat st;

	if (number >= 0 || !strcmp(path, "/dev/null") || !strcmp(path, "/dev/full"))
		return output_to_descriptor(path, number, fd);
	if (lstat(path, &st) < 0)
		return 0; /* whoever makes the file says why it cannot be */
	if (S_ISDIR(st.st_mode))
		return err_set(-EISDIR, "%s: is a directory", path);
	if (S_ISLNK(st.st_mode))
		return err_set(-ELOOP, "%s is a symbolic link: name the file it points to", path);
	if (!S_ISREG(st.st_mode))
		return err_set(-EEXIST, "%s: not a regular file: name another file, or -o -", path);
	return file_check_own(path, &st);
}

int file_open_partial(const char *path, char **name)
{
	_cleanup_(freep) char *tried = NULL;
	int error = 0;

	for (int tries = 0; tries < 16; tries++) {
		sigset_t signals;
		uint32_t random;
		int fd;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return err_set(-EIO, "no random bytes from the kernel");
		if (asprintf(&tried, "%s.%08x.partial", path, random) < 0) {
			tried = NULL;
			return -ENOMEM;
		}
		partial_begin(&signals);
		fd = open(tried, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, OUTPUT_MODE);
		error = errno;
		partial_made(fd < 0 ? NULL : tried, &signals);
		if (fd >= 0) {
			file_give_to_caller(fd); /* where that fails, root's */
			*name = take_ptr(tried);
			return fd;
		}
		if (error != EEXIST)
			break;
		free(take_ptr(tried));
	}
	return err_set(-error, "%s: %s", path, strerror(error));
}

void file_remove_partial(const char *name)
{
	unlink(name);
	partial_forget(name);
}

static int open_destination(struct atomic_file *f)
{
	int r = file_output(f->path, &f->fd);

	if (r)
		return r < 0 ? r : 0;
	f->fd = file_open_partial(f->path, &f->tmp);
	return f->fd < 0 ? f->fd : 0;
}

int atomic_file_open(const char *path, struct atomic_file **out)
{
	static const cookie_io_functions_t functions = { .write = atomic_file_write };
	_cleanup_(atomic_file_freep) struct atomic_file *f = NULL;
	int r;

	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->fd = -1;
	f->left = UINT64_MAX;
	f->path = strdup(path);
	if (!f->path)
		return -ENOMEM;
	r = open_destination(f);
	if (r < 0)
		return r;
	f->stream = fopencookie(f, "w", functions);
	if (!f->stream || setvbuf(f->stream, NULL, _IOFBF, 1 << 16))
		return -ENOMEM;
	*out = take_ptr(f);
	return 0;
}

void atomic_file_limit(struct atomic_file *f, uint64_t bytes)
{
	f->left = bytes;
}

int atomic_file_error(const struct atomic_file *f)
{
	return f->error;
}

FILE *atomic_file_stream(struct atomic_file *f)
{
	return f->stream;
}

int atomic_file_commit(struct atomic_file *f)
{
	if (fflush(f->stream) && !f->error)
		f->error = -EIO;
	if (!f->error && f->tmp && fsync(f->fd) < 0)
		f->error = -errno;
	if (!f->error && f->tmp && rename(f->tmp, f->path) < 0)
		f->error = -errno;
	if (f->error)
		return err_set(f->error, "write %s: %s",
			       strcmp(f->path, "-") ? f->path : "standard output",
			       strerror(-f->error));
	if (f->tmp) {
		partial_forget(f->tmp);
		free(take_ptr(f->tmp));
		file_sync_directory_of(f->path);
	}
	return 0;
}

void atomic_file_free(struct atomic_file *f)
{
	if (!f)
		return;
	if (f->tmp)
		f->error = -ECANCELED; /* nobody wants what is still buffered */
	if (f->stream)
		fclose(f->stream);
	closep(&f->fd);
	if (f->tmp)
		file_remove_partial(f->tmp);
	free(f->tmp);
	free(f->path);
	free(f);
}

int file_write_whole(const char *path, const void *bytes, size_t len)
{
	_cleanup_(atomic_file_freep) struct atomic_file *f = NULL;
	int r;

	r = atomic_file_open(path, &f);
	if (r < 0)
		return r;
	fwrite(bytes, 1, len, f->stream);
	return atomic_file_commit(f);
}
