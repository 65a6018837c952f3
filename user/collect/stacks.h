/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_STACKS_H
#define COLLECT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/discover.h"
#include "profile/profile.h"

/*
 * What samples say of a stack -> a stack of the profile: code objects as the kernel describes them,
 * and lossy caches of the frames and stacks that were made of them.
 */
struct stacks;

/*
 * session, discovery and profile are borrowed and must outlive it. seed: of the cache's hash. A
 * code object that is forgotten is sent again with the next sample that has it.
 */
int stacks_new(struct session *session, struct discovery *discovery, struct profile *profile,
	       uint64_t seed, struct stacks **out);
void stacks_free(struct stacks *st);
DEFINE_CLEANUP(struct stacks *, stacks_free)

/*
 * A code object, a further piece of its line table. 0, -ENOMEM, or -EBADMSG: the record is shorter
 * than it says, or of a layout there is not. What a line table lacks is asked of the target once a
 * sample needs it; what a hostile one lacks shows as approximate lines.
 */
int stacks_add_code(struct stacks *st, const struct code_event *e, size_t size);
int stacks_add_lines(struct stacks *st, const struct lines_event *e, size_t size);

/* A sample's stack, in the profile. */
struct sample_stack {
	uint32_t id;
	bool has_leaf;       /* Python code, which is shown */
	bool is_approximate; /* some frame's line is */
	bool is_unnamed;     /* some frame goes without its name */
	bool awaits_lines;   /* some line is asked for; not set where the stack is told */
};

/* From now on stacks show where C called Python code. Before the first sample. */
void stacks_show_native(struct stacks *st);

/* A marker on top of a stack of the profile. 0 and *stack, or -ENOMEM. */
int stacks_push_marker(struct stacks *st, const char *name, uint32_t *stack);

/* Python frames, leaf first, and what they stand on. */
struct stack_part {
	const struct frame_record *frames;
	uint32_t depth;
	uint8_t status; /* enum unwind_status */
	uint32_t below; /* a stack of the profile; 0: nothing */
};

/*
 * 0, -ENOMEM, or -EAGAIN: a code object is not known yet, or a line of one whose table has come in
 * part, and allow_unknown is false.
 */
int stacks_intern(struct stacks *st, const struct stack_part *part, bool allow_unknown,
		  struct sample_stack *out);

/* What the function of a frame is called; NULL: not known. Borrowed, as of code_find(). */
const char *stacks_name(struct stacks *st, const struct frame_record *record);

/* The file of a code object; NULL: not known whole. Borrowed, as of code_find(). */
const char *stacks_file(struct stacks *st, uint64_t code);

/* Whether lines are asked for; and those, too, that will be as soon as they can. */
bool stacks_is_asking(const struct stacks *st);
bool stacks_awaits_lines(struct stacks *st);

/* The caches are of no use any more: after profile_reset(). */
void stacks_forget_ids(struct stacks *st);

/* Forgets the code objects of processes that is_wanted() says false of, and that no stack has had
 * since the last call. */
void stacks_retain(struct stacks *st, bool (*is_wanted)(void *arg, uint64_t process), void *arg);

/* Bytes of the code objects, CODE_TABLE_BYTES_DEFAULT at most. */
size_t stacks_bytes(const struct stacks *st);

#endif
