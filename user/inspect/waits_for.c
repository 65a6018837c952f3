/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/waits_for.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/escape.h"
#include "base/hash.h"

#define FLOAT_VALUE 0 /* PyFloatObject.ob_fval, from its head's end */
#define SOCKET_FD 0   /* PySocketSockObject.sock_fd (Modules/socketmodule.h) */
#define DEQUE_LENGTH 0
#define CHILDREN_MAX 100000

/* What is said of it beside its name. */
enum detail {
	DETAIL_NONE,
	DETAIL_SECONDS, /* the first argument */
	DETAIL_TIMEOUT, /* the second argument */
	DETAIL_OBJECT,  /* the method's object, and who else waits for it */
	DETAIL_FD,      /* the second argument, a socket */
	DETAIL_STREAM,  /* the fd behind a stream's transport */
	DETAIL_COUNT,   /* entries of the first argument */
	DETAIL_TASKS,   /* of the group */
};

struct wait_row {
	const char *file;  /* how its path ends */
	const char *name;  /* of the coroutine function, its own one */
	const char *words; /* NULL: its name, behind the type of its object */
	enum detail detail;
};

/* Coroutines of libraries, which wait in their callers' stead: that which the program called
 * counts. */
static const struct wait_row rows[] = {
	{ "asyncio/tasks.py", "sleep", "sleep", DETAIL_SECONDS },
	{ "asyncio/tasks.py", "wait_for", "wait_for", DETAIL_TIMEOUT },
	{ "asyncio/tasks.py", "_wait", "wait", DETAIL_COUNT },
	{ "asyncio/tasks.py", "_wait_for_one", "as_completed", DETAIL_NONE },
	{ "asyncio/locks.py", "acquire", NULL, DETAIL_OBJECT },
	{ "asyncio/locks.py", "wait", NULL, DETAIL_OBJECT },
	{ "asyncio/locks.py", "wait_for", NULL, DETAIL_OBJECT },
	{ "asyncio/queues.py", "get", NULL, DETAIL_OBJECT },
	{ "asyncio/queues.py", "put", NULL, DETAIL_OBJECT },
	{ "asyncio/queues.py", "join", NULL, DETAIL_OBJECT },
	{ "asyncio/streams.py", "_wait_for_data", "data from a stream", DETAIL_STREAM },
	{ "asyncio/streams.py", "_drain_helper", "room in a stream", DETAIL_STREAM },
	{ "asyncio/selector_events.py", "sock_recv", "sock_recv", DETAIL_FD },
	{ "asyncio/selector_events.py", "sock_recv_into", "sock_recv_into", DETAIL_FD },
	{ "asyncio/selector_events.py", "sock_recvfrom", "sock_recvfrom", DETAIL_FD },
	{ "asyncio/selector_events.py", "sock_recvfrom_into", "sock_recvfrom_into", DETAIL_FD },
	{ "asyncio/selector_events.py", "sock_sendall", "sock_sendall", DETAIL_FD },
	{ "asyncio/selector_events.py", "sock_sendto", "sock_sendto", DETAIL_FD },
	{ "asyncio/selector_events.py", "sock_connect", "sock_connect", DETAIL_FD },
	{ "asyncio/selector_events.py", "sock_accept", "sock_accept", DETAIL_FD },
	{ "asyncio/base_events.py", "serve_forever", "serve_forever", DETAIL_NONE },
	{ "asyncio/base_events.py", "getaddrinfo", "getaddrinfo in a thread", DETAIL_NONE },
	{ "asyncio/base_subprocess.py", "_wait", "a child process", DETAIL_NONE },
	{ "asyncio/threads.py", "to_thread", "a thread of to_thread", DETAIL_NONE },
	{ "asyncio/taskgroups.py", "_aexit", "TaskGroup", DETAIL_TASKS },
	{ "asyncio/taskgroups.py", "__aexit__", "TaskGroup", DETAIL_TASKS },
	{ "anyio/_backends/_asyncio.py", "__aexit__", "TaskGroup", DETAIL_TASKS },
	{ "anyio/_backends/_asyncio.py", "run_sync_in_worker_thread", "a thread of run_sync",
	  DETAIL_NONE },
	{ "anyio/_backends/_asyncio.py", "acquire", NULL, DETAIL_OBJECT },
	{ "anyio/_core/_synchronization.py", "acquire", NULL, DETAIL_OBJECT },
	{ "anyio/streams/memory.py", "receive", NULL, DETAIL_OBJECT },
	{ "anyio/streams/memory.py", "send", NULL, DETAIL_OBJECT },
	{ "gevent/hub.py", "sleep", "sleep", DETAIL_SECONDS },
	{ "gevent/select.py", "select", "select", DETAIL_NONE },
	{ "gevent/select.py", "poll", "poll", DETAIL_NONE },
	{ "gevent/thread.py", "acquire", NULL, DETAIL_OBJECT },
	{ "gevent/_socket3.py", "accept", NULL, DETAIL_OBJECT },
	{ "gevent/_socket3.py", "connect", NULL, DETAIL_OBJECT },
	{ "gevent/_socket3.py", "recv", NULL, DETAIL_OBJECT },
	{ "gevent/_socket3.py", "recv_into", NULL, DETAIL_OBJECT },
	{ "gevent/_socket3.py", "recvfrom", NULL, DETAIL_OBJECT },
	{ "gevent/_socket3.py", "send", NULL, DETAIL_OBJECT },
	{ "gevent/_socket3.py", "sendall", NULL, DETAIL_OBJECT },
	{ "trio/_timeouts.py", "sleep", "sleep", DETAIL_SECONDS },
	{ "trio/_timeouts.py", "sleep_forever", "sleep_forever", DETAIL_NONE },
	{ "trio/_core/_run.py", "_nested_child_finished", "nursery", DETAIL_TASKS },
	{ "trio/_sync.py", "acquire", NULL, DETAIL_OBJECT },
	{ "trio/_sync.py", "wait", NULL, DETAIL_OBJECT },
	{ "trio/_channel.py", "receive", NULL, DETAIL_OBJECT },
	{ "trio/_channel.py", "send", NULL, DETAIL_OBJECT },
	{ "trio/_threads.py", "to_thread_run_sync", "a thread of to_thread.run_sync", DETAIL_NONE },
	{ "trio/_subprocess.py", "wait", "a child process", DETAIL_NONE },
	{ "trio/_core/_io_epoll.py", "wait_readable", "wait_readable", DETAIL_FD },
	{ "trio/_core/_io_epoll.py", "wait_writable", "wait_writable", DETAIL_FD },
};

/* Functions that a future calls when it is done, and who made it. */
static const struct {
	const char *name;
	const char *words;
} makers[] = {
	{ "_call_check_cancel", "a thread of an executor" }, /* asyncio.futures._chain_future */
	{ "_outer_done_callback", "shield" },
};

/* Of a class, which may be any bytes. */
static int put_name(const char *name, struct strbuf *out)
{
	return escape_append(out, name, strlen(name), "");
}

/* --- details: what cannot be read is not said --------------------------------------------------
 */

static int put_seconds(struct await_reader *a, uint64_t object, struct strbuf *out)
{
	enum object_kind kind;
	double seconds;
	int64_t whole;

	if (object_kind(&a->kinds, &a->objects, object, &kind) < 0 || kind == KIND_NONE)
		return 0;
	if (kind == KIND_FLOAT && !object_get(&a->objects, object + a->objects.head + FLOAT_VALUE,
					      &seconds, sizeof(seconds)))
		return strbuf_appendf(out, "(%.6g)", seconds);
	if (!object_long(&a->objects, object, &whole))
		return strbuf_appendf(out, "(%lld)", (long long)whole);
	return 0;
}

/* How many wait for the same: its deque of waiters. */
static int put_waiters(struct await_reader *a, uint64_t object, const char *attribute,
		       struct strbuf *out)
{
	struct object_reader *r = &a->objects;
	enum object_kind kind;
	uint64_t waiters, count;

	if (object_attribute(r, object, attribute, &waiters) < 0 ||
	    object_kind(&a->kinds, r, waiters, &kind) < 0 || kind == KIND_NONE ||
	    object_get_pointer(r, waiters + r->head + DEQUE_LENGTH, &count) < 0 || count < 2 ||
	    count > TASKS_MAX)
		return 0;
	return strbuf_appendf(out, ", %llu wait", (unsigned long long)count);
}

static int put_object(struct await_reader *a, uint64_t object, const struct task_frame *frame,
		      struct strbuf *out)
{
	const char *attribute = !strcmp(frame->own_name, "get")   ? "_getters"
				: !strcmp(frame->own_name, "put") ? "_putters"
								  : "_waiters";
	uint64_t type;
	char name[64];
	int e;

	if (object_type(&a->objects, object, &type) < 0 ||
	    object_type_name(&a->objects, type, name, sizeof(name)) < 0)
		return strbuf_puts(out, frame->own_name);
	e = put_name(name, out);
	if (!e)
		e = strbuf_appendf(out, ".%s of 0x%llx", frame->own_name,
				   (unsigned long long)object);
	return e < 0 ? e : put_waiters(a, object, attribute, out);
}

static int put_fd(struct await_reader *a, uint64_t object, struct strbuf *out)
{
	int64_t number;
	int32_t fd;

	if (!object_long(&a->objects, object, &number))
		return strbuf_appendf(out, ", fd %lld", (long long)number);
	if (object_get(&a->objects, object + a->objects.head + SOCKET_FD, &fd, sizeof(fd)) < 0 ||
	    fd < 0)
		return 0;
	return strbuf_appendf(out, ", fd %d", fd);
}

static int put_stream(struct await_reader *a, uint64_t stream, struct strbuf *out)
{
	uint64_t transport, fd;
	int64_t number;

	if (object_attribute(&a->objects, stream, "_transport", &transport) < 0 ||
	    object_attribute(&a->objects, transport, "_sock_fd", &fd) < 0 ||
	    object_long(&a->objects, fd, &number) < 0)
		return 0;
	return strbuf_appendf(out, ", fd %lld", (long long)number);
}

static int put_count(struct await_reader *a, uint64_t object, struct strbuf *out)
{
	uint64_t count;

	if (object_length(&a->objects, object, &count) < 0 || count > TASKS_MAX)
		return 0;
	return strbuf_appendf(out, " of %llu", (unsigned long long)count);
}

static int put_tasks(struct await_reader *a, uint64_t group, struct strbuf *out)
{
	uint64_t tasks;

	if (object_attribute(&a->objects, group, "_tasks", &tasks) < 0 &&
	    object_attribute(&a->objects, group, "_children", &tasks) < 0)
		return 0;
	return put_count(a, tasks, out);
}

/* One that inner functions use, too, is in a cell. */
static int argument_of(struct await_reader *a, uint64_t frame, unsigned int index, uint64_t *out)
{
	struct object_reader *r = &a->objects;
	enum object_kind kind;
	uint64_t object;
	int e;

	if ((e = await_argument(a, frame, index, &object)) < 0 ||
	    (e = object_kind(&a->kinds, r, object, &kind)) < 0)
		return e;
	if (kind == KIND_CELL &&
	    (e = object_get_pointer(r, object + r->head + OBJECT_CELL, &object)) < 0)
		return e;
	if (!object)
		return -ENOENT;
	*out = object;
	return 0;
}

static int put_detail(struct await_reader *a, const struct wait_row *row,
		      const struct task_frame *frame, struct strbuf *out)
{
	bool is_second = row->detail == DETAIL_TIMEOUT || row->detail == DETAIL_FD;
	uint64_t object;

	if (row->detail == DETAIL_NONE || argument_of(a, frame->frame, is_second, &object) < 0)
		return row->words ? 0 : strbuf_puts(out, frame->own_name);
	switch (row->detail) {
	case DETAIL_SECONDS:
	case DETAIL_TIMEOUT:
		return put_seconds(a, object, out);
	case DETAIL_OBJECT:
		return put_object(a, object, frame, out);
	case DETAIL_FD:
		return put_fd(a, object, out);
	case DETAIL_STREAM:
		return put_stream(a, object, out);
	case DETAIL_COUNT:
		return put_count(a, object, out);
	case DETAIL_TASKS:
		return put_tasks(a, object, out);
	case DETAIL_NONE:
		break;
	}
	return 0;
}

/* --- by its coroutines ------------------------------------------------------------------------ */

static const struct wait_row *row_of(const struct task_frame *frame)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(rows[i].name, frame->own_name) &&
		    code_file_ends_in(frame->file, rows[i].file))
			return &rows[i];
	return NULL;
}

/* Is this code of a library that has rows? Its caller may have one then. */
static bool is_of_library(const struct task_frame *frame)
{
	return strstr(frame->file, "/asyncio/") || strstr(frame->file, "/trio/") ||
	       strstr(frame->file, "/anyio/") || strstr(frame->file, "/gevent/");
}

static const struct wait_words *words_of(struct await_reader *a, const struct task_frame *frame)
{
	struct wait_words *w = &a->words[hash_u64((uintptr_t)frame->own_name) % WAIT_WORDS];

	if (w->file != frame->file || w->name != frame->own_name)
		*w = (struct wait_words){ .file = frame->file,
					  .name = frame->own_name,
					  .row = row_of(frame),
					  .is_of_library = is_of_library(frame) };
	return w;
}

static int put_by_frames(struct await_reader *a, const struct task_frame *frames, size_t len,
			 struct strbuf *out)
{
	const struct wait_words *words;
	const struct wait_row *row = NULL;
	const struct task_frame *frame = NULL;
	int e = 0;

	for (; len && (words = words_of(a, &frames[len - 1]))->is_of_library; len--) {
		if (words->row) {
			row = words->row;
			frame = &frames[len - 1];
		}
	}
	if (!row)
		return 0;
	if (row->words)
		e = strbuf_puts(out, row->words);
	return e < 0 ? e : put_detail(a, row, frame, out);
}

/* --- by the future ---------------------------------------------------------------------------- */

struct children {
	struct await_reader *a;
	unsigned int count, done;
};

static int count_child(struct object_reader *r, uint64_t child, void *arg)
{
	struct children *c = arg;
	enum object_kind kind;
	struct future f;
	int e = object_kind(&c->a->kinds, r, child, &kind);

	if (e < 0 || (e = future_get(c->a, child, kind, &f)) < 0)
		return e;
	c->done += f.is_done;
	return ++c->count == CHILDREN_MAX ? -E2BIG : 0;
}

static int put_gather(struct await_reader *a, uint64_t future, struct strbuf *out)
{
	struct children c = { .a = a };
	uint64_t children;
	int e;

	if (object_attribute(&a->objects, future, "_children", &children) < 0 ||
	    object_sequence_each(&a->objects, children, count_child, &c) < 0)
		return strbuf_puts(out, "gather");
	e = strbuf_appendf(out, "gather of %u", c.count);
	return e < 0 || !c.done ? e : strbuf_appendf(out, ", %u done", c.done);
}

struct maker {
	struct await_reader *a;
	const char *words;
};

static int find_maker(struct object_reader *r, uint64_t callback, void *arg)
{
	struct maker *m = arg;
	const struct code_object *code;
	enum object_kind kind;
	uint64_t address;

	if (object_kind(&m->a->kinds, r, callback, &kind) < 0 || kind != KIND_FUNCTION ||
	    object_get_pointer(r, callback + r->head + r->layout->func_code, &address) < 0 ||
	    code_objects_get(m->a->codes, r, address, &code) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++)
		if (!strcmp(code->own_name, makers[i].name))
			m->words = makers[i].words;
	return m->words != NULL;
}

static int put_by_future(struct await_reader *a, uint64_t future, struct strbuf *out)
{
	struct maker m = { .a = a };
	enum object_kind kind;
	struct future f;
	uint64_t type;
	char name[64], *without_module;

	if (!future || object_type(&a->objects, future, &type) < 0 ||
	    object_type_name(&a->objects, type, name, sizeof(name)) < 0)
		return 0;
	if (!strcmp(name, "_GatheringFuture"))
		return put_gather(a, future, out);
	if (!object_kind(&a->kinds, &a->objects, future, &kind) &&
	    !future_get(a, future, kind, &f) && future_callbacks_each(a, &f, find_maker, &m) > 0)
		return strbuf_puts(out, m.words);
	if (!strncmp(name, "_cython_", strlen("_cython_")))
		return strbuf_puts(out, "a coroutine of Cython");
	without_module = strrchr(name, '.');
	return put_name(without_module ? without_module + 1 : name, out);
}

int waits_for_put(struct await_reader *a, uint64_t future, const struct task_frame *frames,
		  size_t len, struct strbuf *out)
{
	size_t before = out->len;
	int e = put_by_frames(a, frames, len, out);

	if (!e && out->len == before)
		e = put_by_future(a, future, out);
	return e < 0 ? e : a->objects.reads_left ? 0 : -E2BIG;
}
