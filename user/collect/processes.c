/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "collect/looker.h"
#include "profile/idmap.h"
#include "target/container.h"

#define NO_ID UINT32_MAX

struct processes {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct cgroup_namespace ours;
	VEC(struct known_process) known;
	struct idmap ids;
	uint32_t awaited; /* processes whose samples wait for their command line */
	uint64_t met, contained;
};

int processes_new(struct session *session, struct discovery *discovery, struct profile *profile,
		  struct processes **out)
{
	struct processes *ps = calloc(1, sizeof(*ps));
	int r;

	if (!ps)
		return -ENOMEM;
	ps->session = session;
	ps->discovery = discovery;
	ps->profile = profile;
	if ((r = cgroup_namespace_find(&ps->ours)) < 0) /* containers that it tells go without */
		log_warning("our cgroup namespace: %s", err_message(r));
	*out = ps;
	return 0;
}

static void known_process_release(struct known_process *known)
{
	free(known->command_line);
	free(known->place);
}

void processes_free(struct processes *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->known.len; i++)
		known_process_release(&ps->known.items[i]);
	cgroup_namespace_release(&ps->ours);
	vec_release(&ps->known);
	idmap_release(&ps->ids);
	free(ps);
}

struct known_process *processes_find(const struct processes *ps, uint64_t process)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&ps->ids, process, &at)) != IDMAP_NONE)
		if (ps->known.items[i].event.process == process)
			return &ps->known.items[i];
	return NULL;
}

/* Arguments, NUL behind each -> one line. */
static char *join_args(const char *args, size_t len)
{
	char *line = malloc(len + 1);

	if (!line)
		return NULL;
	while (len && !args[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		line[i] = args[i] ? args[i] : ' ';
	line[len] = '\0';
	return line;
}

/* Asked at once: soon the process may have ended. *out is NULL where it is in none. */
static int find_place(const struct processes *ps, pid_t pid, struct container **out)
{
	struct container found;

	*out = NULL;
	if (!container_find(pid, &ps->ours, &found))
		return 0;
	*out = malloc(sizeof(found));
	if (!*out)
		return -ENOMEM;
	**out = found;
	return 0;
}

static void set_awaits_args(struct processes *ps, struct known_process *known, bool awaits_args)
{
	ps->awaited += awaits_args;
	ps->awaited -= known->awaits_args;
	known->awaits_args = awaits_args;
}

/*
 * Where the kernel could not read the arguments: in the midst of exec, or of a page that is not
 * present. They are its own if it still runs what it ran then.
 */
static int read_args(struct processes *ps, struct known_process *known)
{
	const struct process_event *e = &known->event;
	struct task_record task;
	char args[ARGS_BYTES], *line;
	int len = looker_arguments(discovery_looker(ps->discovery), (pid_t)e->pid, args);

	if (len == -ENOMEM)
		return len;
	if (len <= 0 || session_find_task(ps->session, e->pid, &task) < 0 ||
	    task.process != e->process) {
		err_clear(); /* gone, or it has none: it goes without */
		return 0;
	}
	line = join_args(args, (size_t)len);
	if (!line)
		return -ENOMEM;
	free(known->command_line);
	known->command_line = line;
	return 0;
}

int processes_settle(struct processes *ps)
{
	int r = 0;

	for (size_t i = 0; i < ps->known.len && !r; i++) {
		struct known_process *known = &ps->known.items[i];

		if (!known->awaits_args)
			continue;
		r = read_args(ps, known);
		set_awaits_args(ps, known, false);
	}
	return r;
}

/* Known already: with its arguments this time? */
static int add_args(struct processes *ps, struct known_process *known,
		    const struct process_event *e)
{
	char *line;

	if (*known->command_line || !e->args_bytes)
		return 0;
	line = join_args((const char *)(e + 1), e->args_bytes);
	if (!line)
		return -ENOMEM;
	free(known->command_line);
	known->command_line = line;
	set_awaits_args(ps, known, false);
	return 0;
}

int processes_add(struct processes *ps, const struct process_event *e, size_t size)
{
	struct known_process known = { .event = *e, .id = NO_ID }, *before;
	int r;

	if (sizeof(*e) + e->args_bytes > size)
		return -EBADMSG;
	before = processes_find(ps, e->process);
	if (before)
		return add_args(ps, before, e);
	known.command_line = join_args((const char *)(e + 1), e->args_bytes);
	if (!known.command_line)
		return -ENOMEM;
	r = find_place(ps, (pid_t)e->pid, &known.place);
	if (!r && !e->args_bytes && e->start_ns) /* not one that only stands in */
		r = read_args(ps, &known);
	if (!r)
		r = idmap_reserve(&ps->ids);
	if (!r)
		r = vec_push(&ps->known, known);
	if (r < 0) {
		known_process_release(&known);
		return r;
	}
	idmap_insert(&ps->ids, e->process, ps->known.len - 1);
	set_awaits_args(ps, &ps->known.items[ps->known.len - 1],
			e->start_ns && !*known.command_line);
	ps->met++;
	ps->contained += known.place != NULL;
	return 0;
}

static int intern(struct processes *ps, const char *text, uint32_t *id)
{
	return strtab_intern(ps->profile->strings, text, strlen(text), id);
}

static int intern_place(struct processes *ps, const struct container *place, struct process *out)
{
	int r;

	if (!place)
		return 0;
	if ((r = intern(ps, place->id, &out->container)) < 0 ||
	    (r = intern(ps, place->pod.uid, &out->pod_uid)) < 0 ||
	    (r = intern(ps, place->pod.name, &out->pod_name)) < 0)
		return r;
	return intern(ps, place->pod.space, &out->pod_namespace);
}

static int add_to_profile(struct processes *ps, struct known_process *known)
{
	const struct process_event *e = &known->event;
	struct process process = {
		.pid = e->pid, .ns_pid = e->ns_pid, .ppid = e->ppid, .start_ns = e->start_ns
	};
	char comm[COMM_BYTES + 1] = { 0 };
	struct interpreter_text text;
	int r;

	memcpy(comm, e->comm, COMM_BYTES);
	discovery_describe(ps->discovery, e->layout, &text);
	if ((r = intern(ps, comm, &process.name)) < 0 ||
	    (r = intern(ps, known->command_line, &process.command_line)) < 0 ||
	    (r = intern(ps, text.version, &process.python_version)) < 0 ||
	    (r = intern(ps, text.implementation, &process.implementation)) < 0 ||
	    (r = intern(ps, text.path, &process.executable)) < 0 ||
	    (r = intern_place(ps, known->place, &process)) < 0)
		return r;
	return profile_add_process(ps->profile, &process, &known->id);
}

static int stand_in(struct processes *ps, const struct sample_event *e)
{
	const struct process_event nameless = {
		.kind = EVENT_PROCESS, .pid = e->pid, .process = e->process, .layout = LAYOUT_NONE
	};

	return processes_add(ps, &nameless, sizeof(nameless));
}

int processes_id(struct processes *ps, const struct sample_event *e, uint32_t *id)
{
	struct known_process *known = processes_find(ps, e->process);
	int r;

	if (!known) {
		if ((r = stand_in(ps, e)) < 0)
			return r;
		known = processes_find(ps, e->process);
	}
	if (known->id == NO_ID && (r = add_to_profile(ps, known)) < 0)
		return r;
	*id = known->id;
	return 0;
}

bool processes_is_awaited(const struct processes *ps, uint64_t process)
{
	const struct known_process *known = ps->awaited ? processes_find(ps, process) : NULL;

	return known && known->awaits_args;
}

int processes_forget_ids(struct processes *ps)
{
	size_t kept = 0;
	int r = 0;

	idmap_release(&ps->ids);
	for (size_t i = 0; i < ps->known.len; i++) {
		struct known_process *known = &ps->known.items[i];
		bool is_alive = discovery_has(ps->discovery, known->event.process);
		bool is_kept = is_alive || known->is_kept || !known->was_gone;

		known->id = NO_ID;
		known->was_gone = !is_alive;
		known->is_kept = false;
		if (is_kept && !r && !(r = idmap_reserve(&ps->ids))) {
			idmap_insert(&ps->ids, known->event.process, kept);
			ps->known.items[kept++] = *known;
		} else {
			set_awaits_args(ps, known, false);
			known_process_release(known);
		}
	}
	ps->known.len = kept;
	return r;
}

void processes_count(const struct processes *ps, uint64_t *met, uint64_t *contained)
{
	*met = ps->met;
	*contained = ps->contained;
}

size_t processes_bytes(const struct processes *ps)
{
	size_t bytes = ps->known.cap * sizeof(ps->known.items[0]) + idmap_bytes(&ps->ids);

	for (size_t i = 0; i < ps->known.len; i++)
		bytes += strlen(ps->known.items[i].command_line) + 1;
	return bytes;
}
