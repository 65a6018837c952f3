/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SAMPLE_H
#define COLLECT_SAMPLE_H

#include <stddef.h>

#include "bpf/events.h"

/* A sample as the ring brings it: a head, and so far one part, of Python frames. */

/* Status of a part that no sampler has sent: of time that no sample stands for. */
#define UNWIND_NOT_SAMPLED (UNWIND_UNIDENTIFIED + 1)

static inline const struct sample_part *sample_part(const struct sample_event *e)
{
	return (const struct sample_part *)(e + 1);
}

static inline const struct frame_record *part_frames(const struct sample_part *part)
{
	return (const struct frame_record *)(part + 1);
}

static inline size_t sample_size(const struct sample_event *e)
{
	const struct sample_part *part = sample_part(e);

	return sizeof(*e) + sizeof(*part) + part->depth * sizeof(struct frame_record);
}

#endif
