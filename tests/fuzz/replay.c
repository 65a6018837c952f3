/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Drives a fuzz target without libFuzzer: replay FOLDER [MUTATIONS] runs every file of the folder,
 * then so many mutations of them (or as many as PYEBPF_MUTATIONS says, or 5000). The seed is fixed,
 * so a failure comes back; its input is left in crash-TARGET, in the working folder.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define INPUT_BYTES_MAX (1 << 20)
#define FILES_MAX 1024

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Of the sanitizer's runtime, where there is one: it ends the program without a signal. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

struct input {
	uint8_t *bytes;
	size_t len;
};

static struct input running;
static char crash_file[256];

static uint64_t next_random(uint64_t *state)
{
	/* xorshift64*, Vigna 2014 */
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

static void keep_input(void)
{
	FILE *f = running.bytes ? fopen(crash_file, "we") : NULL; /* leaks: no input's own */

	if (f) {
		fwrite(running.bytes, 1, running.len, f);
		fclose(f);
	}
}

static void on_crash(int signal_number)
{
	keep_input();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* A block of its own, so that a sanitizer sees each byte read behind it. */
static void run(const uint8_t *bytes, size_t len)
{
	running.bytes = malloc(len ? len : 1);
	if (!running.bytes)
		abort();
	memcpy(running.bytes, bytes, len);
	running.len = len;
	LLVMFuzzerTestOneInput(running.bytes, len);
	free(running.bytes);
	running = (struct input){ NULL, 0 };
}

/* A number of 1, 2, 4 or 8 bytes at the edge of some range. */
static size_t extreme(uint8_t *out, uint64_t *seed)
{
	static const uint64_t values[] = {
		0,          1,          0x7f,       0x80,
		0xff,       0x7fff,     0x8000,     0xffff,
		0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		4096,       UINT64_MAX, INT64_MAX,  (uint64_t)INT64_MIN,
	};
	uint64_t value = values[next_random(seed) % (sizeof(values) / sizeof(values[0]))];

	memcpy(out, &value, sizeof(value)); /* little-endian, as the formats we read */
	return (size_t)1 << next_random(seed) % 4;
}

/* Puts count bytes of from at place at, over or before what is there. Returns the new length. */
static size_t place(uint8_t *bytes, size_t len, size_t at, const uint8_t *from, size_t count,
		    bool insert)
{
	size_t behind = insert ? len - at : 0;

	if (at + count + behind > INPUT_BYTES_MAX)
		return len;
	memmove(bytes + at + count, bytes + at, behind);
	memcpy(bytes + at, from, count);
	len += insert ? count : 0;
	return at + count > len ? at + count : len;
}

/* One to eight changes: a bit, a byte, an extreme number, a cut, a copy, a piece of another. */
static size_t mutate(uint8_t *bytes, size_t len, const struct input *other, uint64_t *seed)
{
	for (uint64_t changes = 1 + next_random(seed) % 8; changes; changes--) {
		size_t at = len ? next_random(seed) % len : 0;
		size_t count = 1 + next_random(seed) % 32;
		bool insert = next_random(seed) & 1;
		uint8_t piece[32];
		size_t from;

		switch (next_random(seed) % 7) {
		case 0:
			if (len)
				bytes[at] ^= (uint8_t)(1u << next_random(seed) % 8);
			break;
		case 1:
			if (len)
				bytes[at] = (uint8_t)next_random(seed);
			break;
		case 2:
			count = extreme(piece, seed);
			len = place(bytes, len, at, piece, count, insert);
			break;
		case 3: /* cut a piece out */
			count = count < len - at ? count : len - at;
			memmove(bytes + at, bytes + at + count, len - at - count);
			len -= count;
			break;
		case 4: /* the end is missing */
			len = next_random(seed) % 4 ? len : at;
			break;
		case 5: /* say a piece twice */
			count = count < len - at ? count : len - at;
			memcpy(piece, bytes + at, count);
			len = place(bytes, len, at, piece, count, true);
			break;
		default:
			if (!other->len)
				break;
			count = count < other->len ? count : other->len;
			from = next_random(seed) % (other->len - count + 1);
			len = place(bytes, len, at, other->bytes + from, count, insert);
		}
	}
	return len;
}

static bool read_input(const char *folder, const char *name, struct input *out)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	out->bytes = malloc(INPUT_BYTES_MAX);
	if (!out->bytes)
		return false;
	out->len = fread(out->bytes, 1, INPUT_BYTES_MAX, f);
	return !ferror(f) && fgetc(f) == EOF; /* a file cut short would test something else */
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_input(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	static struct input inputs[FILES_MAX];
	static uint8_t mutated[INPUT_BYTES_MAX];
	uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
	struct dirent **names = NULL;
	const char *asked;
	long mutations;
	char *end;
	int count;

	asked = argc == 3 ? argv[2] : getenv("PYEBPF_MUTATIONS") ?: "5000";
	mutations = strtol(asked, &end, 10);
	if (argc < 2 || argc > 3 || mutations < 0 || end == asked || *end) {
		fprintf(stderr, "usage: %s FOLDER [MUTATIONS]\n", argv[0]);
		return 2;
	}
	count = scandir(argv[1], &names, is_input, by_name);
	if (count < 1 || count > FILES_MAX) {
		fprintf(stderr, "%s: %s: no corpus (1 to %d files)\n", argv[0], argv[1], FILES_MAX);
		return 1;
	}

	snprintf(crash_file, sizeof(crash_file), "crash-%s", program_invocation_short_name);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(keep_input);
	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGFPE, on_crash);
	for (int i = 0; i < count; i++) {
		if (!read_input(argv[1], names[i]->d_name, &inputs[i])) {
			fprintf(stderr, "%s: %s/%s: not readable, or larger than %d bytes\n",
				argv[0], argv[1], names[i]->d_name, INPUT_BYTES_MAX);
			return 1;
		}
		free(names[i]);
		run(inputs[i].bytes, inputs[i].len);
	}
	free(names);

	for (long i = 0; i < mutations; i++) {
		const struct input *from = &inputs[next_random(&seed) % (uint64_t)count];
		const struct input *other = &inputs[next_random(&seed) % (uint64_t)count];

		memcpy(mutated, from->bytes, from->len);
		run(mutated, mutate(mutated, from->len, other, &seed));
	}
	for (int i = 0; i < count; i++)
		free(inputs[i].bytes);
	printf("%d inputs, %ld mutations\n", count, mutations);
	return 0;
}
