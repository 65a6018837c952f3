/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/pid_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define DEPTH_MAX 32             /* MAX_PID_NS_LEVEL of linux/pid_namespace.h */
#define INITIAL_INODE 0xeffffffc /* PROC_PID_INIT_INO of linux/proc_ns.h */
#define OWN "/proc/self/ns/pid"

static int inode_of(int fd, uint32_t *inode)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*inode = (uint32_t)st.st_ino;
	return 0;
}

/* How often one has to go to the parent until it is ours. */
static int depth_below(int fd, uint32_t ours, uint32_t *depth)
{
	_cleanup_(closep) int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	uint32_t inode = 0, n = 0;
	int r;

	if (at < 0)
		return -errno;
	while (!(r = inode_of(at, &inode)) && inode != ours && n++ < DEPTH_MAX) {
		int parent = ioctl(at, NS_GET_PARENT);

		if (parent < 0)
			return -errno;
		close(at);
		at = parent;
	}
	*depth = n;
	return r;
}

static int own_inode(uint32_t *inode)
{
	struct stat st;

	if (stat(OWN, &st) < 0)
		return -errno;
	*inode = (uint32_t)st.st_ino;
	return 0;
}

int pid_namespace_own(uint32_t *inode)
{
	uint32_t own;
	int r = own_inode(&own);

	if (r < 0)
		return err_set(r, OWN ": %s", strerror(-r));
	*inode = own == INITIAL_INODE ? 0 : own;
	return 0;
}

static int look(int fd, struct pid_namespace *out)
{
	uint32_t ours;
	int r;

	if ((r = own_inode(&ours)) < 0 || (r = inode_of(fd, &out->inode)) < 0)
		return r;
	return depth_below(fd, ours, &out->depth);
}

int pid_namespace_open(const char *path, struct pid_namespace *out)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct pid_namespace n = PID_NAMESPACE_INIT;
	int r;

	if (fd < 0)
		return err_set(-errno, "%s: %s", path, strerror(errno));
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWPID)
		return err_set(-EINVAL, "%s: no PID namespace, as /proc/PID/ns/pid is one", path);
	r = look(fd, &n);
	if (r == -EPERM)
		return err_set(-EACCES, "%s: a PID namespace that is not inside our own", path);
	if (r < 0)
		return err_set(r, "%s: %s", path, strerror(-r));
	n.fd = take_fd(fd);
	*out = n;
	return 0;
}

void pid_namespace_release(struct pid_namespace *n)
{
	closep(&n->fd);
	n->fd = -1;
}
