/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "cmd/record.h"
#include "collect/features.h"
#include "collect/modes.h"

static bool asks_for_native(const struct record_opts *o)
{
	return o->has_native;
}

static bool asks_for_gil(const struct record_opts *o)
{
	return modes_of_words(o->mode_words) & MODE_GIL;
}

static bool asks_for_exceptions(const struct record_opts *o)
{
	return modes_of_words(o->mode_words) & MODE_EXCEPTION;
}

static bool asks_for_waits(const struct record_opts *o)
{
	return modes_of_words(o->mode_words) & MODE_OFF_CPU;
}

static bool asks_for_labels(const struct record_opts *o)
{
	return o->labels.len;
}

static bool asks_for_async(const struct record_opts *o)
{
	return o->async;
}

/* What interpreters cannot tell of what was asked for. */
static const struct limit {
	bool (*is_asked)(const struct record_opts *o);
	unsigned int minor_end; /* those before this one */
	bool is_free_threaded;  /* such builds alone */
	bool leaves_nothing;    /* processes have no samples */
	const char *words;
} limits[] = {
	{ asks_for_native, 11, false, false,
	  "--native needs CPython 3.11: no <native> frames will be shown" },
	{ asks_for_native, 14, true, false,
	  "--native shows only callbacks from C here; calls into C need CPython 3.14" },
	{ asks_for_gil, UINT_MAX, true, false, "--mode gil keeps the samples of attached threads" },
	{ asks_for_waits, 7, false, false,
	  "GIL waits are shown as lock waits; telling them apart needs CPython 3.7" },
	{ asks_for_labels, 7, false, false, "--label needs 3.7: it has no context variables" },
	{ asks_for_async, 8, false, false, "--async needs CPython 3.8: tasks are not recorded" },
	{ asks_for_exceptions, 7, false, true,
	  "--mode exception needs CPython 3.7: nothing will be recorded" },
};

static bool applies_to(const struct limit *l, const char *implementation, const char *version)
{
	unsigned int minor;

	if (sscanf(version, "3.%u", &minor) != 1)
		return false; /* not known */
	return minor < l->minor_end &&
	       (!l->is_free_threaded || strstr(implementation, "free-threaded"));
}

/* The first process says it for all. */
static void warn_of_processes(const struct limit *l, const struct profile *p)
{
	for (size_t i = 0; i < p->processes.len; i++) {
		const struct process *process = &p->processes.items[i];
		const char *implementation = strtab_get(p->strings, process->implementation);
		const char *version = strtab_get(p->strings, process->python_version);

		if (!applies_to(l, implementation, version))
			continue;
		log_warning("pid %u: %s %s: %s", process->pid, implementation, version, l->words);
		return;
	}
}

/* The profile does not know processes without samples. */
static void warn_of_interpreters(const struct limit *l, const struct recorder *rec)
{
	struct interpreter_text found;

	for (uint32_t i = 0; recorder_find_interpreter(rec, i, &found); i++) {
		if (!applies_to(l, found.implementation, found.version))
			continue;
		log_warning("%s %s: %s", found.implementation, found.version, l->words);
		return;
	}
}

/* What this kernel cannot tell. */
static void warn_of_kernel(const struct record_opts *o)
{
	_cleanup_(feature_probe_release) struct feature_probe p = { 0 };

	if (!(o->modes & MODE_MEMORY))
		return;
	if (feature_kernel_types(&p) < 0)
		err_clear(); /* recorded all the same */
	else if (feature_rss_batches(&p))
		log_warning("this kernel reports memory growth in steps of 64 pages: up to 256 KiB "
			    "may go to the wrong line (Linux 6.2 fixes this)");
}

void record_warn_of_limits(const struct record_opts *o, const struct recorder *rec)
{
	warn_of_kernel(o);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (!limits[i].is_asked(o))
			continue;
		if (limits[i].leaves_nothing)
			warn_of_interpreters(&limits[i], rec);
		else
			warn_of_processes(&limits[i], recorder_profile(rec));
	}
}
