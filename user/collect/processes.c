/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "collect/looker.h"
#include "profile/idmap.h"
#include "target/container.h"

#define NO_ID UINT32_MAX
/*
 * A process is asked for its title after this, then after a quarter more each time: a title that it
 * has for a fifth of its life is seen. Where the kernel has another name for it, it is asked a
 * second after the last time.
 */
#define TITLE_MIN_NS (NS_PER_SECOND / 20)
#define TITLE_MAX_NS (64 * NS_PER_SECOND)
#define GILS_MAX 1024 /* of a process: those of interpreters that have ended come again */

struct processes {
	struct discovery *discovery;
	struct profile *profile;
	VEC(struct known_process) known;
	struct idmap ids;
	uint32_t awaited; /* how many are */
	uint64_t met, contained;
	bool has_builds; /* interpreters of several builds were met */
};

int processes_new(struct discovery *discovery, struct profile *profile, struct processes **out)
{
	struct processes *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return -ENOMEM;
	ps->discovery = discovery;
	ps->profile = profile;
	*out = ps;
	return 0;
}

static void known_process_release(struct known_process *known)
{
	free(known->command_line);
	free(known->place);
	vec_release(&known->gils);
}

void processes_free(struct processes *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->known.len; i++)
		known_process_release(&ps->known.items[i]);
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

/*
 * setproctitle() and its like write one text over all arguments, and set the kernel's name, which
 * has room for its start only.
 */
static bool is_title(const char comm[COMM_BYTES], const char *args, size_t len)
{
	size_t comm_len = strnlen(comm, COMM_BYTES - 1), text_len = strnlen(args, len);

	while (len && !args[len - 1])
		len--;
	return comm_len && len == text_len && len >= comm_len && !memcmp(args, comm, comm_len);
}

/* Or it will never have one: it only stands in for one whose record was lost. */
static bool has_command_line(const struct known_process *known)
{
	return (*known->command_line && !known->is_cut) || !known->event.start_ns;
}

static void set_awaited(struct processes *ps, struct known_process *known, bool is_awaited)
{
	ps->awaited += is_awaited;
	ps->awaited -= known->is_awaited;
	known->is_awaited = is_awaited;
}

/*
 * Where it runs; and its arguments, if the kernel could not read them: in the midst of exec, or of
 * a page that is not present.
 */
struct details {
	struct question question;
	struct processes *processes;
	bool has_args; /* they are known */
	bool is_late;  /* a look took too long, or was not made */
	int args_bytes;
	char args[ARGS_BYTES];
	bool is_placed; /* in a container or pod */
	struct container place;
};

static int details_look(struct question *q, struct looker *l)
{
	struct details *w = (struct details *)q;
	int r = looker_container(l, (pid_t)q->target.pid, &w->place);

	w->is_placed = r > 0;
	w->is_late = look_is_late(r);
	if (r != -ENOMEM && !w->has_args) {
		r = w->args_bytes = looker_arguments(l, (pid_t)q->target.pid, w->args);
		w->is_late |= look_is_late(r);
	}
	if (r == -ENOMEM)
		return r;
	err_clear(); /* gone, or it has none: it goes without */
	return 0;
}

/* A text that is longer than the arguments were has no end there. */
static int set_args(struct known_process *known, const char *args, size_t len, bool is_last)
{
	char *line = join_args(args, len);

	if (!line)
		return -ENOMEM;
	free(known->command_line);
	known->command_line = line;
	known->has_title = is_title(known->event.comm, args, len);
	known->is_cut = !is_last && len && len < ARGS_BYTES && args[len - 1];
	return 0;
}

static int set_place(struct processes *ps, struct known_process *known,
		     const struct container *place)
{
	known->place = malloc(sizeof(*place));
	if (!known->place)
		return -ENOMEM;
	*known->place = *place;
	ps->contained++;
	return 0;
}

static int take_details(struct processes *ps, struct known_process *known, const struct details *w)
{
	int r = 0;

	if (w->is_placed && !known->place)
		r = set_place(ps, known, &w->place);
	if (!r && w->args_bytes > 0 && !has_command_line(known))
		r = set_args(known, w->args, (size_t)w->args_bytes, true);
	return r;
}

/* What it did not bring now may come from the kernel yet, or by a last question. */
static int details_take(struct question *q)
{
	const struct details *w = (const struct details *)q;
	struct processes *ps = w->processes;
	struct known_process *known = processes_find(ps, q->target.process);
	int r = 0;

	if (!known)
		return 0;
	if (!q->r)
		r = take_details(ps, known, w);
	else if (q->r == -ENOMEM)
		r = q->r;
	known->is_asked = false;
	set_awaited(ps, known, (w->is_late || !has_command_line(known)) && !known->is_final);
	return r;
}

static void question_free(struct question *q)
{
	free(q);
}

/* Its samples wait for the answer. */
static int ask_details(struct processes *ps, struct known_process *known)
{
	const struct process_event *e = &known->event;
	struct details *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->question = (struct question){ .target = { .process = e->process, .pid = e->pid },
					 .look = details_look,
					 .take = details_take,
					 .free = question_free };
	w->processes = ps;
	w->has_args = has_command_line(known);
	r = discovery_ask(ps->discovery, &w->question);
	known->is_asked = !r;
	set_awaited(ps, known, true);
	return r == -EAGAIN ? 0 : r; /* at the next flush */
}

static int intern(struct processes *ps, const char *text, uint32_t *id)
{
	return strtab_intern(ps->profile->strings, text, strlen(text), id);
}

struct title_question {
	struct question question;
	struct processes *processes;
	int bytes;
	char args[ARGS_BYTES];
};

static int title_look(struct question *q, struct looker *l)
{
	struct title_question *t = (struct title_question *)q;

	t->bytes = looker_arguments(l, (pid_t)q->target.pid, t->args);
	if (t->bytes == -ENOMEM)
		return -ENOMEM;
	err_clear(); /* gone, or it has none: it keeps its name */
	return 0;
}

/* One text where there were others: the process wrote it. Arguments that it changed remain several.
 */
static bool is_new_title(const struct known_process *known, const char *args, size_t len)
{
	size_t text_len = strnlen(args, len), end = len;

	while (end && !args[end - 1])
		end--;
	return end && end == text_len &&
	       (strlen(known->command_line) != end || memcmp(known->command_line, args, end) != 0);
}

static int set_title(struct processes *ps, struct known_process *known, const char *args,
		     size_t len)
{
	uint32_t title;
	int r = set_args(known, args, len, true);

	if (r < 0)
		return r;
	known->has_title = true;
	if (known->id == NO_ID)
		return 0;
	r = intern(ps, known->command_line, &title);
	return r < 0 ? r : profile_title_process(ps->profile, known->id, title);
}

static int title_take(struct question *q)
{
	const struct title_question *t = (const struct title_question *)q;
	struct processes *ps = t->processes;
	struct known_process *known = processes_find(ps, q->target.process);

	if (q->r == -ENOMEM)
		return q->r;
	if (!known)
		return 0;
	known->is_title_asked = false;
	if (q->r || t->bytes <= 0 || known->is_awaited ||
	    !is_new_title(known, t->args, (size_t)t->bytes))
		return 0;
	return set_title(ps, known, t->args, (size_t)t->bytes);
}

static int ask_title(struct processes *ps, struct known_process *known, uint64_t now_ns)
{
	struct title_question *t;
	int r;

	if (known->is_title_asked || !known->event.start_ns)
		return 0;
	if (!(t = calloc(1, sizeof(*t))))
		return -ENOMEM;
	t->question = (struct question){ .target = { .process = known->event.process,
						     .pid = known->event.pid },
					 .look = title_look,
					 .take = title_take,
					 .free = question_free };
	t->processes = ps;
	r = discovery_ask(ps->discovery, &t->question);
	if (r < 0)
		return r == -EAGAIN ? 0 : r; /* at the next sample */
	known->is_title_asked = true;
	known->is_seen = false;
	known->looked_ns = now_ns;
	if (known->wait_ns < TITLE_MAX_NS)
		known->wait_ns += known->wait_ns / 4;
	return 0;
}

int processes_ask_title(struct processes *ps, uint64_t process, uint64_t now_ns)
{
	struct known_process *known = processes_find(ps, process);

	if (!known)
		return 0;
	known->is_seen = true;
	return now_ns < known->looked_ns + known->wait_ns ? 0 : ask_title(ps, known, now_ns);
}

void processes_renamed(struct processes *ps, uint64_t process)
{
	struct known_process *known = processes_find(ps, process);

	if (known && known->wait_ns > NS_PER_SECOND)
		known->wait_ns = NS_PER_SECOND;
}

static bool has_ended(const struct known_process *known)
{
	pid_t pid = (pid_t)known->event.pid;

	return thread_has_ended(pid, pid);
}

int processes_settle(struct processes *ps, bool is_last)
{
	int r = 0;

	for (size_t i = 0; i < ps->known.len && !r; i++) {
		struct known_process *known = &ps->known.items[i];

		if (is_last && known->is_seen && !has_ended(known))
			r = ask_title(ps, known, monotonic_ns());
		if (!known->is_awaited || r)
			continue;
		known->is_final = true;
		if (!known->is_asked)
			r = ask_details(ps, known);
	}
	return r;
}

/* Known already: with its arguments this time? */
static int add_args(struct processes *ps, struct known_process *known,
		    const struct process_event *e)
{
	int r;

	if (*known->command_line || !e->args_bytes)
		return 0;
	r = set_args(known, (const char *)(e + 1), e->args_bytes, false);
	if (!r)
		set_awaited(ps, known, known->is_asked);
	return r;
}

int processes_add(struct processes *ps, const struct process_event *e, size_t size)
{
	struct known_process known = { .event = *e,
				       .id = NO_ID,
				       .looked_ns = monotonic_ns(),
				       .wait_ns = TITLE_MIN_NS },
			     *before;
	int r;

	if (sizeof(*e) + e->args_bytes > size)
		return -EBADMSG;
	before = processes_find(ps, e->process);
	if (before)
		return add_args(ps, before, e);
	if ((r = set_args(&known, (const char *)(e + 1), e->args_bytes, false)) < 0)
		return r;
	r = idmap_reserve(&ps->ids);
	if (!r)
		r = vec_push(&ps->known, known);
	if (r < 0) {
		known_process_release(&known);
		return r;
	}
	idmap_insert(&ps->ids, e->process, ps->known.len - 1);
	ps->met++;
	return ask_details(ps, &ps->known.items[ps->known.len - 1]);
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

/* The recording names the build of the interpreter if all that were met are of one. */
static int note_build(struct processes *ps, const char *build)
{
	char **text = &profile_recording(ps->profile)->build;

	if (!*build || ps->has_builds)
		return 0;
	if (!*text)
		return recording_set_text(text, build);
	ps->has_builds = strcmp(*text, build);
	return ps->has_builds ? recording_set_text(text, NULL) : 0;
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
	if ((r = intern(ps, known->has_title ? known->command_line : comm, &process.name)) < 0 ||
	    (r = intern(ps, known->command_line, &process.command_line)) < 0 ||
	    (r = intern(ps, text.version, &process.python_version)) < 0 ||
	    (r = intern(ps, text.implementation, &process.implementation)) < 0 ||
	    (r = intern(ps, text.path, &process.executable)) < 0 ||
	    (r = note_build(ps, text.build)) < 0 ||
	    (r = intern_place(ps, known->place, &process)) < 0)
		return r;
	return profile_add_process(ps->profile, &process, &known->id);
}

int processes_introduce(struct processes *ps, const struct sample_event *e, const char *comm)
{
	struct process_event stand_in = {
		.kind = EVENT_PROCESS, .pid = e->pid, .process = e->process, .layout = LAYOUT_NONE
	};

	if (comm)
		memcpy(stand_in.comm, comm, sizeof(stand_in.comm));
	return processes_find(ps, e->process) ? 0 : processes_add(ps, &stand_in, sizeof(stand_in));
}

int processes_id(struct processes *ps, uint64_t process, uint32_t *id)
{
	struct known_process *known = processes_find(ps, process);
	int r;

	if (known->id == NO_ID && (r = add_to_profile(ps, known)) < 0)
		return r;
	*id = known->id;
	return 0;
}

bool processes_is_awaited(const struct processes *ps, uint64_t process)
{
	const struct known_process *known = ps->awaited ? processes_find(ps, process) : NULL;

	return known && known->is_awaited;
}

int processes_gil(struct processes *ps, uint64_t process, uint64_t gil, uint16_t *number)
{
	struct known_process *known = gil ? processes_find(ps, process) : NULL;
	size_t i = 0;

	*number = 0;
	if (!known)
		return 0;
	while (i < known->gils.len && known->gils.items[i] != gil)
		i++;
	if (i == GILS_MAX)
		return 0;
	if (i == known->gils.len && vec_push(&known->gils, gil) < 0)
		return -ENOMEM;
	*number = (uint16_t)(i + 1);
	return 0;
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
			set_awaited(ps, known, false);
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
