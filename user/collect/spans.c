/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/spans.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpf/events.h"
#include "pyebpf.skel.h"

DEFINE_CLEANUP(struct bpf_link *, bpf_link__destroy)

/*
 * Runs an iterator that writes nothing: over the threads of a process (from Linux 6.1 on, before
 * over all, which the program has to stand), 0: over all threads.
 */
static int run_iterator(const struct bpf_program *prog, uint32_t pid)
{
	union bpf_iter_link_info one = { .task = { .pid = pid } };
	_cleanup_(bpf_link__destroyp) struct bpf_link *link = NULL;
	struct bpf_iter_attach_opts opts;
	_cleanup_(closep) int fd = -1;
	ssize_t n;
	char none;

	memset(&opts, 0, sizeof(opts)); /* libbpf wants the padding to be zero, too */
	opts.sz = sizeof(opts);
	opts.link_info = pid ? &one : NULL;
	opts.link_info_len = pid ? sizeof(one) : 0;
	link = bpf_program__attach_iter(prog, &opts);
	if (!link)
		return err_set(-errno, "look at threads: %s", strerror(errno));
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return err_set(-errno, "look at threads: %s", strerror(errno));
	do
		n = read(fd, &none, sizeof(none));
	while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? err_set(-errno, "look at threads: %s", strerror(errno)) : 0;
}

int spans_open(struct pyebpf *skel, uint32_t pid)
{
	skel->bss->is_closing = false;
	return run_iterator(skel->progs.visit_thread, pid);
}

int spans_close(struct pyebpf *skel)
{
	int r;

	skel->bss->is_closing = true;
	skel->bss->spans_left = 0;
	r = run_iterator(skel->progs.visit_thread, 0);
	return r < 0 ? r : skel->bss->spans_left > 0;
}
