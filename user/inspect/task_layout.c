/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/task_layout.h"

#include <errno.h>
#include <stdbool.h>

#include "base/err.h"

#define TASK_BYTES_MAX 4096
#define TSTATE_BYTES_MAX 32768
#define INTERP_BYTES_MAX (1u << 20)

/* clang-format off */
#define FUTURE .loop = 16, .callback = 24, .callbacks = 40
#define CORO(at) .fut_waiter = (at) - 8, .coro = (at), .name = (at) + 8
/* FRAME_CREATED and so on: pycore_frame.h, from 3.15 on pycore_interpframe_structs.h */
#define STATES_3_11 .created = -2, .suspended = -1, .awaiting = -1, .awaiting_2 = -1, \
	.running = 0, .cleared = 1
#define STATES_3_13 .created = -3, .suspended = -2, .awaiting = -1, .awaiting_2 = -1, \
	.running = 0, .cleared = 1
#define STATES_3_15 .created = 0, .suspended = 1, .awaiting = 2, .awaiting_2 = 3, \
	.running = 4, .cleared = 5

static const struct task_layout rows[] = {
	{ .minor = 8, .await = AWAIT_STACKTOP, .frame = 16, .stack = 72, .valuestack = 64,
	  .locals = 360,
	  .task_bytes = 144, FUTURE, CORO(112), .source_traceback = 64, .future_state = 72,
	  .tstate_dict = 152,  },
	{ .minor = 9, .await = AWAIT_STACKTOP, .frame = 16, .stack = 72, .valuestack = 64,
	  .locals = 360,
	  .task_bytes = 184, FUTURE, CORO(152), .source_traceback = 64, .future_state = 80,
	  .tstate_dict = 152,  },
	{ .minor = 10, .await = AWAIT_STACKDEPTH, .frame = 16, .state = 108, STATES_3_11,
	  .stack = 80, .valuestack = 64, .locals = 352,
	  .task_bytes = 192, FUTURE, CORO(160), .source_traceback = 72, .future_state = 88,
	  .tstate_dict = 152 },
	{ .minor = 11, .await = AWAIT_OPARG, .frame = 80, .state = 75, STATES_3_11,
	  .stack = 64, .locals = 72,
	  .task_bytes = 176, FUTURE, CORO(136), .source_traceback = 72, .future_state = 88,
	  .tstate_dict = 128 },
	{ .minor = 12, .await = AWAIT_OPARG, .frame = 72, .state = 67, STATES_3_11,
	  .stack = 64, .locals = 72,
	  .task_bytes = 176, FUTURE, CORO(136), .source_traceback = 72, .future_state = 88,
	  .tstate_dict = 112 },
	{ .minor = 13, .await = AWAIT_STATE, .frame = 72, .state = 67, STATES_3_13,
	  .stack = 64, .locals = 72,
	  .task_bytes = 144, FUTURE, CORO(120), .source_traceback = 72, .future_state = 96,
	  .running_loop = 304, .running_loop_2 = 312 },
	{ .minor = 13, .is_free_threaded = true, .await = AWAIT_STATE, .frame = 88, .state = 83,
	  STATES_3_13, .stack = 64, .locals = 72,
	  .task_bytes = 160, .loop = 32, .callback = 40, .callbacks = 56, CORO(136),
	  .source_traceback = 88, .future_state = 112, .running_loop = 304, .running_loop_2 = 312 },
	{ .minor = 14, .await = AWAIT_POINTER, .frame = 72, .state = 67, STATES_3_13,
	  .stack = 64, .locals = 80, .above = 8,
	  .task_bytes = 168, FUTURE, CORO(128), .source_traceback = 72, .future_state = 104,
	  .awaited_by = 96, .awaited_by_is_set = 109, .task_node = 152,
	  .running_loop = 864, .running_task = 872, .tstate_tasks = 880, .interp_tasks = 10880 },
	{ .minor = 15, .await = AWAIT_POINTER, .frame = 72, .state = 67, STATES_3_15,
	  .stack = 64, .locals = 80, .above = 16,
	  .task_bytes = 168, FUTURE, CORO(128), .source_traceback = 72, .future_state = 104,
	  .awaited_by = 96, .awaited_by_is_set = 109, .task_node = 152,
	  .running_loop = 1024, .running_task = 1032, .tstate_tasks = 1048, .interp_tasks = 10856 },
};
/* clang-format on */

int task_layout_find(const struct py_offsets *off, struct task_layout *out)
{
	if (off->is_best_effort)
		return err_set(-ENOTSUP, "tasks of CPython 3.%u are not known", off->minor);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].minor == off->minor &&
		    rows[i].is_free_threaded == off->is_free_threaded) {
			*out = rows[i];
			return 0;
		}
	}
	return err_set(-ENOTSUP, "tasks of %sCPython 3.%u are not known",
		       off->is_free_threaded ? "free-threaded " : "", off->minor);
}

int task_layout_apply_debug(struct task_layout *layout, const uint64_t words[ASYNCIO_DEBUG_WORDS])
{
	enum {
		TASK_BYTES,
		TASK_NAME,
		TASK_AWAITED_BY,
		TASK_IS_TASK,
		TASK_AWAITED_BY_IS_SET,
		TASK_CORO,
		TASK_NODE,
		INTERP_BYTES,
		INTERP_TASKS,
		THREAD_BYTES,
		THREAD_LOOP,
		THREAD_TASK,
		THREAD_TASKS,
	};
	struct task_layout l = *layout;

	if (words[TASK_BYTES] > TASK_BYTES_MAX || words[INTERP_BYTES] > INTERP_BYTES_MAX ||
	    words[THREAD_BYTES] > TSTATE_BYTES_MAX)
		return -EBADMSG;
	for (int i = TASK_NAME; i <= TASK_NODE; i++)
		if (words[i] >= words[TASK_BYTES])
			return -EBADMSG;
	for (int i = THREAD_LOOP; i <= THREAD_TASKS; i++)
		if (words[i] % 8 || words[i] >= words[THREAD_BYTES])
			return -EBADMSG;
	if (words[INTERP_TASKS] >= words[INTERP_BYTES] || words[INTERP_TASKS] % 8 ||
	    words[TASK_CORO] % 8 || words[TASK_NODE] % 8 || words[TASK_NAME] % 8 ||
	    words[TASK_AWAITED_BY] % 8 || words[TASK_CORO] < 8)
		return -EBADMSG;
	l.task_bytes = words[TASK_BYTES];
	l.name = words[TASK_NAME];
	l.awaited_by = words[TASK_AWAITED_BY];
	l.awaited_by_is_set = words[TASK_AWAITED_BY_IS_SET];
	l.coro = words[TASK_CORO];
	l.fut_waiter = l.coro - 8;
	l.task_node = words[TASK_NODE];
	l.interp_tasks = words[INTERP_TASKS];
	l.running_loop = words[THREAD_LOOP];
	l.running_task = words[THREAD_TASK];
	l.tstate_tasks = words[THREAD_TASKS];
	*layout = l;
	return 0;
}
