/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_FORMAT_H
#define STORE_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The .pyebpf file: FORMAT.md is the specification, this its numbers. */

#define FORMAT_MAJOR 2
#define FORMAT_MINOR 1
#define FORMAT_MINOR_TITLES 1 /* no file before it has any */
#define FORMAT_MAGIC "\x89PYEBPF\n"

/* First bytes of a file. Little-endian, as everything else. */
struct format_header {
	uint8_t magic[8];
	uint8_t major[2];
	uint8_t minor[2];
};
_Static_assert(sizeof(struct format_header) == 12, "file format");

/* In front of each chunk: checksum of all that follows, type, then a varint: bytes of content. */
struct chunk_head {
	uint8_t crc[4]; /* CRC-32C of the rest of the chunk */
	uint8_t type;   /* enum chunk_type */
};
_Static_assert(sizeof(struct chunk_head) == 5, "file format");

enum chunk_type {
	CHUNK_METADATA = 1,
	CHUNK_FLUSH = 2,
	CHUNK_SEGMENT = 3,
	CHUNK_INDEX = 4,
	CHUNK_END = 5,
	CHUNK_RECORDING = 6,
	CHUNK_TITLES = 7,
};

#define CHUNK_CONTENT_MAX (16u << 20) /* bytes: bounds the reader's memory */
#define CHUNK_TEXT_MAX (5u << 20)     /* bytes of strings, decompressed */
#define CHUNK_ROWS_MAX 65536u         /* of each table, and samples */
#define CHUNK_BYTES_MIN 6             /* head, length 0 */
#define CHUNK_END_BYTES 14            /* head, length 8, u64 offset of the index chunk */
#define RECORDINGS_MAX 1024u          /* of a file */
#define INDEX_ROWS_MAX (1u << 20)     /* chunks; twelve days of a flush a second */

/* Ids of the parts of a flush chunk, in this order. Who does not know a critical one would misread
 * the samples. */
#define SECTION_CRITICAL 0x40
enum section {
	SECTION_STRINGS = 1,
	SECTION_FRAMES = 2,
	SECTION_STACKS = 3,
	SECTION_PROCESSES = 4,
	SECTION_THREADS = 5,
	SECTION_SAMPLES = 6,
	SECTION_COUNTERS = 7,
	SECTION_OPCODES = 8,
	SECTION_PLACES = 9,
	SECTION_TIMES = 10,
	SECTION_SOURCES = 11,
	SECTION_GILS = 12,
	SECTION_KINDS = SECTION_CRITICAL | 1,
	SECTION_LABEL_SETS = SECTION_CRITICAL | 2,
	SECTION_SAMPLE_KINDS = SECTION_CRITICAL | 3,
	SECTION_SAMPLE_LABELS = SECTION_CRITICAL | 4,
	SECTION_DURATIONS = SECTION_CRITICAL | 5,
	SECTION_PADDING = 128,
};

/* How a stack entry's frame is told, given its parent's. Below CHILD_RECENT: one of the latest. */
#define CHILD_RECENT 8
#define CHILD_NEXT 8     /* the lowest frame id no entry has used yet */
#define CHILD_EXPLICIT 9 /* in the column of frame ids */

#define ANCESTOR_MAX 255 /* steps up from the previous entry; beyond: an explicit distance */

enum grid {
	GRID_THREAD = 0, /* ticks of a thread lie on one grid of time */
	GRID_CPU = 1,    /* ticks of a CPU do */
};

#define TIME_UNIT_NS 16000
#define INTERVAL_DEFAULT_NS 1000000 /* of the grid, where metadata has none */
#define INTERVAL_MAX_NS (UINT64_C(1) << 40)

static inline void put_le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint32_t get_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

static inline uint64_t get_le64(const uint8_t *p)
{
	return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

#endif
