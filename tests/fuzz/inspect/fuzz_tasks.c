/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of a program with tasks of asyncio or trio, or with greenlets, as it was and changed in
 * any way. The reading must end after no more reads than it may do, and what it says must hold
 * together.
 */
#include <stdlib.h>

#include "task_image.h"
#include "inspect/tasks.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define READS_MAX 200000

static void check(bool is_so)
{
	if (!is_so)
		abort();
}

static void check_range(uint32_t first, uint32_t len, size_t count)
{
	check(first <= count && len <= count - first);
}

static void check_tasks(const struct inspect_tasks *t)
{
	for (size_t i = 0; i < t->tasks.len; i++) {
		const struct inspect_task *task = &t->tasks.items[i];

		check(task->loop < t->loops.len && task->name && task->coroutine);
		check_range(task->frames, task->frames_len, t->frames.len);
		check_range(task->created, task->created_len, t->frames.len);
		check_range(task->awaited_by, task->awaited_by_len, t->links.len);
	}
	for (size_t i = 0; i < t->cycles.len; i++)
		check_range(t->cycles.items[i].first, t->cycles.items[i].len, t->links.len);
	for (size_t i = 0; i < t->links.len; i++)
		check(t->links.items[i] < t->tasks.len);
	for (size_t i = 0; i < t->frames.len; i++) {
		const struct task_frame *f = &t->frames.items[i];

		check(f->name && f->file && f->line >= 0 && (f->line || f->first_line));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct task_image image;
	struct inspect_tasks tasks = { 0 };
	struct tasks_process process = { .read = image_read,
					 .peek = image_peek,
					 .arg = &image,
					 .off = &image.off,
					 .reads_max = READS_MAX,
					 .has_greenlets = true,
					 .is_uncached = true };

	if (!image_open(&image, bytes, len))
		return 0;
	process.runtime = image.runtime;
	if (!tasks_collect(&process, &tasks))
		check_tasks(&tasks);
	inspect_tasks_release(&tasks);
	return 0;
}
