/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/event_links.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "collect/tracefs.h"
#include "pyebpf.skel.h"
#include "target/elf.h"

#define PROBE_PERIOD (1u << 30) /* it is not enabled */
#define LOOK_NS NS_PER_SECOND   /* at which CPUs are there */

/* One event on one CPU, or on all. */
struct event_link {
	struct bpf_link *link; /* NULL: the CPU is offline */
	int fd;                /* of the perf event; the link's */
	uint64_t enabled_ns;   /* for so long it has run, when that was looked at last */
};

struct event_links {
	struct pyebpf *skel;
	const struct event_list *events;
	uint64_t looked_ns;
	int cpus;
	struct event_link links[]; /* cpus for each event; what is not of a CPU has the first */
};

/* --- What there is ---------------------------------------------------------------------------- */

/* A library or program by its name alone libbpf looks for, where the linker and the shell do. */
static int check_function(const struct event *e)
{
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct elf_symbol symbol;
	int r;

	if (!strchr(e->where, '/'))
		return 0;
	fd = file_open_regular(e->where, NULL);
	if (fd < 0)
		return fd == -ENOENT ? err_set(-EINVAL, "%s: no such file", e->where) : fd;
	r = elf_open(fd, &elf);
	if (r < 0)
		return err_set(-EINVAL, "%s: no program or library of this machine", e->where);
	if (e->class != EVENT_CLASS_FUNCTION || !elf_dynamic_symbol(elf, e->what, &symbol))
		return 0;
	r = elf_static_symbol(elf, e->what, &symbol);
	if (r != -ENOENT)
		return r;
	return err_set(-EINVAL, "%s: no function %s in it (nm -D %s lists what it has)", e->where,
		       e->what, e->where);
}

static int resolve_tracepoint(struct event *e)
{
	_cleanup_(closep) int fd = -1;
	struct tracefs_field field;
	int r = tracefs_open(&fd);

	if (r < 0 || (r = tracefs_id(fd, e->where, e->what, &e->perf_config)) < 0)
		return r;
	e->perf_type = PERF_TYPE_TRACEPOINT;
	if (!e->field)
		return 0;
	r = tracefs_field(fd, e->where, e->what, e->field, &field);
	if (r < 0)
		return r;
	e->config.field_offset = field.offset;
	e->config.field_bytes = field.bytes;
	e->config.field_signed = field.is_signed;
	return 0;
}

int events_resolve(struct event_list *events)
{
	int r = 0;

	for (size_t i = 0; i < events->len && r >= 0; i++) {
		struct event *e = &events->items[i];

		if (e->class == EVENT_CLASS_FUNCTION || e->class == EVENT_CLASS_PROBE)
			r = check_function(e);
		else if (e->class != EVENT_CLASS_PERF)
			r = resolve_tracepoint(e);
		if (r < 0)
			r = err_wrap(r, "%s", e->name);
	}
	return r;
}

/* --- Programs --------------------------------------------------------------------------------- */

static struct bpf_program *program_of(const struct pyebpf *skel, enum event_class class)
{
	struct bpf_program *const programs[EVENT_CLASS_COUNT_] = {
		[EVENT_CLASS_PERF] = skel->progs.on_perf_event,
		[EVENT_CLASS_TRACEPOINT] = skel->progs.on_tracepoint,
		[EVENT_CLASS_FUNCTION] = skel->progs.on_function,
		[EVENT_CLASS_PROBE] = skel->progs.on_usdt,
		[EVENT_CLASS_MEMORY] = skel->progs.on_rss,
	};

	return programs[class];
}

static bool has_class(const struct event_list *events, enum event_class class)
{
	for (size_t i = 0; i < events->len; i++)
		if (events->items[i].class == class)
			return true;
	return false;
}

int event_links_configure(struct pyebpf *skel, const struct event_list *events, int cpus)
{
	struct event_config *configs = (struct event_config *)skel->rodata->event_configs;
	bool has_probes = has_class(events, EVENT_CLASS_PROBE);
	int r = 0;

	for (int class = 0; class < EVENT_CLASS_COUNT_ && !r; class ++)
		r = bpf_program__set_autoload(program_of(skel, class), has_class(events, class));
	for (size_t i = 0; i < events->len; i++)
		configs[i] = events->items[i].config;
	if (r < 0 ||
	    (r = bpf_map__set_max_entries(skel->maps.event_slots,
					  events->len ? cpus + EVENT_SPARE_SLOTS : 1)) < 0 ||
	    (r = bpf_map__set_autocreate(skel->maps.event_slots, events->len)) < 0 ||
	    (r = bpf_map__set_autocreate(skel->maps.rss_sizes,
					 has_class(events, EVENT_CLASS_MEMORY))) < 0 ||
	    (r = bpf_map__set_autocreate(skel->maps.__bpf_usdt_specs, has_probes)) < 0 ||
	    (r = bpf_map__set_autocreate(skel->maps.__bpf_usdt_ip_to_spec_id, has_probes)) < 0)
		return err_set(r, "configure the BPF programs of events: %s", strerror(-r));
	return 0;
}

/* --- Perf events ------------------------------------------------------------------------------ */

static int explain_open(const struct event *e, int r)
{
	if (r == -EMFILE)
		return err_set(r,
			       "%s: one perf event a CPU is more than the open files that are "
			       "allowed: ulimit -n 4096",
			       e->name);
	if (r == -EACCES || r == -EPERM)
		return err_set(-EPERM,
			       "%s: the kernel refuses perf_event_open(): it needs "
			       "CAP_PERFMON",
			       e->name);
	if (e->perf_type == PERF_TYPE_HARDWARE || e->perf_type == PERF_TYPE_HW_CACHE)
		return err_set(-EOPNOTSUPP,
			       "%s: this machine has no such counter; a virtual one "
			       "mostly has none at all",
			       e->name);
	return err_set(r, "%s: perf_event_open(): %s", e->name, strerror(-r));
}

static int perf_open(const struct event *e, int cpu)
{
	struct perf_event_attr attr = {
		.type = e->perf_type,
		.size = sizeof(attr),
		.config = e->perf_config,
		.sample_period = e->config.period,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.disabled = 1,
	};
	int fd;

	if (e->freq_hz) {
		attr.freq = 1;
		attr.sample_freq = e->freq_hz;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int events_probe(const struct event_row *row)
{
	const struct event e = {
		.perf_type = row->type,
		.perf_config = row->config,
		.config.period = PROBE_PERIOD,
	};
	_cleanup_(closep) int fd = perf_open(&e, 0);

	return fd < 0 ? fd : 0;
}

/* A tracepoint runs its programs on all CPUs, whichever its event is of. */
static int link_perf(struct event_links *l, size_t event, int cpu, struct event_link *out)
{
	const struct event *e = &l->events->items[event];
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = event);
	_cleanup_(closep) int fd = perf_open(e, cpu);

	if (fd == -ENODEV)
		return 0; /* offline */
	if (fd < 0)
		return explain_open(e, fd);
	out->link = bpf_program__attach_perf_event_opts(program_of(l->skel, e->class), fd, &opts);
	if (!out->link)
		return err_set(-errno, "%s: put a program on the perf event: %s", e->name,
			       strerror(errno));
	out->fd = take_fd(fd); /* the link closes it */
	return 0;
}

static int link_cpus(struct event_links *l, size_t event)
{
	int r = 0;

	for (int cpu = 0; cpu < l->cpus && r >= 0; cpu++) {
		struct event_link *link = &l->links[event * (size_t)l->cpus + (size_t)cpu];

		if (!link->link)
			r = link_perf(l, event, cpu, link);
	}
	return r;
}

/* --- Functions and probes --------------------------------------------------------------------- */

static int explain_attach(const struct event *e, int r)
{
	bool is_function = e->class == EVENT_CLASS_FUNCTION;

	if (r == -ENOENT && is_function)
		return err_set(-EINVAL, "%s: no function %s in %s, or no such file", e->name,
			       e->what, e->where);
	if (r == -ENOENT)
		return err_set(-EINVAL, "%s: no probe %s:%s in %s (readelf -n lists what it has)",
			       e->name, e->provider, e->what, e->where);
	if (r == -EACCES || r == -EPERM)
		return err_set(-EPERM,
			       "%s: the kernel refuses to watch %s: it needs CAP_PERFMON "
			       "and CAP_SYS_ADMIN",
			       e->name, e->where);
	if (r == -EOPNOTSUPP || r == -ENODEV)
		return err_set(-EOPNOTSUPP, "%s: this kernel has no uprobes (CONFIG_UPROBE_EVENTS)",
			       e->name);
	return err_set(r, "%s: watch %s: %s (-vv shows more)", e->name, e->where, strerror(-r));
}

static int link_function(struct event_links *l, size_t event)
{
	const struct event *e = &l->events->items[event];
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = event, .func_name = e->what);
	struct event_link *out = &l->links[event * (size_t)l->cpus];

	out->link = bpf_program__attach_uprobe_opts(program_of(l->skel, e->class), -1, e->where, 0,
						    &opts);
	return out->link ? 0 : explain_attach(e, -errno);
}

static int link_probe(struct event_links *l, size_t event)
{
	const struct event *e = &l->events->items[event];
	LIBBPF_OPTS(bpf_usdt_opts, opts, .usdt_cookie = event);
	struct event_link *out = &l->links[event * (size_t)l->cpus];

	out->link = bpf_program__attach_usdt(program_of(l->skel, e->class), -1, e->where,
					     e->provider, e->what, &opts);
	return out->link ? 0 : explain_attach(e, -errno);
}

/* --- All of them ------------------------------------------------------------------------------ */

static int link_event(struct event_links *l, size_t event)
{
	switch (l->events->items[event].class) {
	case EVENT_CLASS_PERF:
		return link_cpus(l, event);
	case EVENT_CLASS_FUNCTION:
		return link_function(l, event);
	case EVENT_CLASS_PROBE:
		return link_probe(l, event);
	default:
		return link_perf(l, event, 0, &l->links[event * (size_t)l->cpus]);
	}
}

int event_links_new(struct pyebpf *skel, const struct event_list *events, int cpus,
		    struct event_links **out)
{
	_cleanup_(event_links_freep) struct event_links *l = NULL;
	int r = 0;

	l = calloc(1, sizeof(*l) + events->len * (size_t)cpus * sizeof(l->links[0]));
	if (!l)
		return -ENOMEM;
	l->skel = skel;
	l->events = events;
	l->cpus = cpus;
	l->looked_ns = monotonic_ns();
	for (size_t i = 0; i < events->len && r >= 0; i++)
		r = link_event(l, i);
	if (r < 0)
		return r;
	*out = take_ptr(l);
	return 0;
}

static void unlink_one(struct event_link *link)
{
	bpf_link__destroy(link->link);
	*link = (struct event_link){ 0 };
}

void event_links_free(struct event_links *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->events->len * (size_t)l->cpus; i++)
		unlink_one(&l->links[i]);
	free(l);
}

/* An event whose CPU went offline does not come back with it: it runs no longer. */
static bool has_stopped(struct event_link *link)
{
	struct {
		uint64_t value, enabled_ns;
	} now;
	bool has_run;

	if (read(link->fd, &now, sizeof(now)) != sizeof(now))
		return true;
	has_run = now.enabled_ns > link->enabled_ns;
	link->enabled_ns = now.enabled_ns;
	return !has_run;
}

int event_links_follow_cpus(struct event_links *l)
{
	uint64_t now = monotonic_ns();
	int r = 0;

	if (now - l->looked_ns < LOOK_NS)
		return 0;
	l->looked_ns = now;
	for (size_t i = 0; i < l->events->len && r >= 0; i++) {
		struct event_link *links = &l->links[i * (size_t)l->cpus];

		if (l->events->items[i].class != EVENT_CLASS_PERF)
			continue;
		for (int cpu = 0; cpu < l->cpus; cpu++)
			if (links[cpu].link && has_stopped(&links[cpu]))
				unlink_one(&links[cpu]);
		r = link_cpus(l, i);
	}
	return r;
}
