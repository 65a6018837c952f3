/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * task_image PID FILE: what `dump --async` reads of a process that rests (workloads/few_awaits.py,
 * few_nurseries.py, few_greenlets.py), for the corpus fuzz/corpus/tasks
 * (fuzz/inspect/task_image.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "inspect/tasks.h"
#include "inspect/walker.h"
#include "target/debug_offsets.h"
#include "target/mem.h"
#include "target/runtime.h"

#define GRAIN 64 /* bytes: reads lie close to each other */

struct image {
	pid_t pid;
	const struct py_runtime *runtime;
	struct walker *walker;
	VEC(uint64_t) grains;
};

static int note(struct image *image, uint64_t addr, size_t len)
{
	for (uint64_t grain = addr / GRAIN; grain <= (addr + len - 1) / GRAIN; grain++)
		if (vec_push(&image->grains, grain) < 0)
			return -ENOMEM;
	return 0;
}

static int read_noting(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct image *image = arg;
	int r = mem_read(image->pid, addr, buf, len);

	return r < 0 ? r : note(image, addr, len);
}

static int peek(void *arg, uint64_t ident, const struct walk_frame **frames, uint32_t *depth)
{
	struct image *image = arg;
	const struct walk_process process = { .read = read_noting,
					      .arg = image,
					      .off = &image->runtime->offsets,
					      .runtime = image->runtime->runtime_addr,
					      .identity = 1 };
	const struct walk_thread thread = { .tid = image->pid, .pointer = ident };
	struct walk walk;
	int r = walker_walk(image->walker, &process, &thread, &walk);

	if (r < 0)
		return r;
	*frames = walk.frames;
	*depth = walk.depth;
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Pieces of grains that follow each other; written only if f is not NULL. Returns how many. */
static uint32_t write_pieces(const struct image *image, FILE *f)
{
	uint32_t count = 0;

	for (size_t i = 0, n; i < image->grains.len; i += n) {
		uint64_t first = image->grains.items[i], last = first;
		uint64_t addr = first * GRAIN;
		uint8_t *bytes;
		uint32_t len;

		for (n = 1; i + n < image->grains.len && image->grains.items[i + n] <= last + 1;)
			last = image->grains.items[i + n++];
		count++;
		len = (uint32_t)((last - first + 1) * GRAIN);
		bytes = f ? calloc(1, len) : NULL;
		if (!bytes)
			continue;
		mem_read(image->pid, addr, bytes, len);
		fwrite(&addr, sizeof(addr), 1, f);
		fwrite(&len, sizeof(len), 1, f);
		fwrite(bytes, 1, len, f);
		free(bytes);
	}
	return count;
}

static int record(struct image *image)
{
	const struct py_runtime *runtime = image->runtime;
	const struct tasks_process process = { .read = read_noting,
					       .peek = peek,
					       .arg = image,
					       .off = &runtime->offsets,
					       .runtime = runtime->runtime_addr,
					       .reads_max = TASK_READS_MAX,
					       .has_greenlets = true,
					       .is_uncached = true };
	struct inspect_tasks tasks = { 0 };
	int r = tasks_collect(&process, &tasks);

	printf("%zu tasks, %u unreadable\n", tasks.tasks.len, tasks.unreadable);
	inspect_tasks_release(&tasks);
	return r < 0 ? r : note(image, runtime->runtime_addr, DEBUG_OFFSETS_BYTES);
}

int main(int argc, char **argv)
{
	_cleanup_(runtime_cache_freep) struct runtime_cache *cache = NULL;
	_cleanup_(walker_freep) struct walker *walker = NULL;
	struct py_runtime runtime;
	struct image image = { .pid = argc > 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0,
			       .runtime = &runtime };
	uint32_t count;
	FILE *f;
	int r;

	if ((r = runtime_cache_new(&cache)) < 0 || (r = walker_new(&walker)) < 0 ||
	    (r = runtime_find(cache, image.pid, &runtime)) < 0) {
		fprintf(stderr, "%s\n", err_message(r));
		return 1;
	}
	image.walker = walker;
	if (record(&image) < 0)
		return 1;
	qsort(image.grains.items, image.grains.len, sizeof(*image.grains.items), compare);
	if (!(f = fopen(argv[2], "we")))
		return 1;
	count = write_pieces(&image, NULL);
	fwrite(&runtime.version, sizeof(runtime.version), 1, f);
	fwrite(&count, sizeof(count), 1, f);
	fwrite(&runtime.runtime_addr, sizeof(runtime.runtime_addr), 1, f);
	write_pieces(&image, f);
	vec_release(&image.grains);
	return fclose(f) ? 1 : 0;
}
