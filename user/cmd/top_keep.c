/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top_keep.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/environment.h"

#define KEEP_BYTES_MAX (32u << 20)
#define SEGMENT_BYTES (4u << 20) /* tables beyond this start a new segment of the file */

int top_keep_begin(struct top_keep *k, struct recorder *recorder)
{
	_cleanup_(closep) int fd = memfd_create("pyebpf-top", MFD_CLOEXEC);
	int r;

	writer_free(take_ptr(k->writer));
	k->recorder = recorder;
	if (fd < 0)
		return err_set(-errno, "keep what is recorded: %s", strerror(errno));
	r = writer_open_fd(fd, "what is recorded", recorder_profile(recorder), &k->writer);
	if (!r)
		take_fd(fd);
	return r;
}

int top_keep_take(struct top_keep *k)
{
	struct profile *p = recorder_profile(k->recorder);
	ssize_t n = writer_flush(k->writer, p);
	int r;

	if (n < 0)
		return (int)n;
	profile_clear_samples(p);
	if (profile_bytes(p) < SEGMENT_BYTES)
		return 0;
	if ((r = writer_segment(k->writer)) < 0 || (r = recorder_clear(k->recorder)) < 0)
		return r;
	return 1;
}

bool top_keep_is_full(const struct top_keep *k)
{
	return writer_size(k->writer) > KEEP_BYTES_MAX;
}

int top_keep_save(struct top_keep *k, const char *path)
{
	struct profile *p = recorder_profile(k->recorder);
	struct recording *m = profile_recording(p);
	int r;

	m->duration_ns = monotonic_ns() - m->start_monotonic_ns;
	m->has_ended = 1;
	r = writer_save(k->writer, p, path);
	m->duration_ns = 0;
	m->has_ended = 0;
	return r;
}

void top_keep_release(struct top_keep *k)
{
	writer_free(take_ptr(k->writer));
}
