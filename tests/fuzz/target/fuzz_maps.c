/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text of /proc/PID/maps, stat and status: names in it are the target's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/maps.h"
#include "target/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct proc_stat stat;
	struct mapping m;
	pid_t pid;
	int fd = memfd_create("maps", MFD_CLOEXEC);

	if (fd < 0 || pwrite(fd, bytes, len, 0) != (ssize_t)len || maps_from_fd(fd, &maps) < 0)
		return 0;
	while (maps_next(maps, &m) > 0) {
		if (m.start >= m.end || strlen(m.path) >= MAPS_LINE_MAX)
			abort();
	}
	if (!proc_stat_parse((const char *)bytes, len, &stat) &&
	    !memchr(stat.comm, '\0', sizeof(stat.comm)))
		abort();
	if (!proc_nspid_parse((const char *)bytes, len, &pid) && pid <= 0)
		abort();
	return 0;
}
