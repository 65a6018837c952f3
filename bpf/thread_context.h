/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_THREAD_CONTEXT_H
#define BPF_THREAD_CONTEXT_H

/*
 * The context that a thread is in as its process publishes it for readers outside (OpenTelemetry's
 * OTEP 4947, oteps/profiles/4947-thread-ctx.md): a thread-local pointer to a record, packed:
 *
 *   u8 trace_id[16], span_id[8]; u8 valid; u8 flags; u16 attributes_bytes;
 *   then of each attribute u8 key, u8 bytes, bytes
 *
 * The thread itself writes it, with no regard for other CPUs: it is read where the thread is
 * interrupted or off the CPU. Into s->labels; needs py_context.slot.
 */

#include "bpf/python.h"

#define THREAD_CONTEXT_BYTES 28
#define THREAD_CONTEXT_SPAN 16
#define THREAD_CONTEXT_VALID 24 /* 1, and nothing else */
#define THREAD_CONTEXT_ATTRIBUTES 26
#define ATTRIBUTE_HEAD_BYTES 2
#define TABLE_NO_BLOCK ~0ULL /* TLS_DTV_UNALLOCATED of glibc */

extern const volatile struct label_config label_configs[CONTEXT_LABELS_MAX];

/* The record's address; 0: the thread is in none. What cannot be read is none, too. */
static __always_inline __u64 find_thread_context(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	const struct thread_context_row *row = &s->context.slot;
	__u64 block = s->thread.pointer, table;
	struct door door = l->door;

	if (row->module) {
		table = read_pointer(door, s, block + row->table_at);
		block = table ? read_pointer(door, s, table + (__u64)row->module * row->table_step)
			      : 0;
		if (!block || block == TABLE_NO_BLOCK)
			return 0;
	}
	return read_pointer(door, s, block + row->offset);
}

/* The next value of s->labels, empty; NULL: there is room for no more. */
static __always_inline struct label_value *next_value(struct py_scratch *s)
{
	struct label_value *v;

	if (s->labels.count >= CONTEXT_LABELS_MAX)
		return NULL;
	v = &s->labels.values[s->labels.count & (CONTEXT_LABELS_MAX - 1)];
	__builtin_memset(v, 0, sizeof(*v));
	return v;
}

/* The record's head is in s->text: the ids that labels ask for. */
static int read_id_step(__u32 number, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct label_value *v;
	__u32 part;

	if (number >= CONTEXT_LABELS_MAX || !label_configs[number].name_bytes)
		return LOOP_STOP;
	part = label_configs[number].part;
	if (!part)
		return LOOP_NEXT;
	s->context.found |= 1U << number;
	v = next_value(s);
	if (!v)
		return LOOP_STOP;
	v->number = number;
	v->kind = LABEL_ID;
	v->bytes = part == LABEL_SPAN_ID ? 8 : 16;
	v->value[0] = field_u64(s->text, part == LABEL_SPAN_ID ? THREAD_CONTEXT_SPAN : 0,
				STRING_HEAD_BYTES - 1);
	v->value[1] = part == LABEL_SPAN_ID ? 0 : field_u64(s->text, 8, STRING_HEAD_BYTES - 1);
	s->labels.count++;
	return LOOP_NEXT;
}

LOOP_STEP(read_id_step)

/* One of the attributes: where c->span is, of c->steps bytes that there are still. */
static int read_attribute_step(__u32 i, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	struct door door = l->door;
	struct label_value *v;
	__u8 *head = (__u8 *)c->type_name;
	__u64 bytes;

	if (c->steps < ATTRIBUTE_HEAD_BYTES ||
	    py_read(door, s, head, ATTRIBUTE_HEAD_BYTES, c->span))
		return LOOP_STOP;
	c->steps -= ATTRIBUTE_HEAD_BYTES;
	c->span += ATTRIBUTE_HEAD_BYTES;
	if (head[1] > c->steps)
		return LOOP_STOP;
	v = next_value(s);
	if (!v)
		return LOOP_STOP;
	bytes = at_most(head[1], LABEL_BYTES_MAX);
	v->kind = LABEL_ATTRIBUTE;
	v->key = head[0];
	v->char_bytes = 1;
	v->is_cut = head[1] > LABEL_BYTES_MAX;
	v->bytes = bytes;
	if (bytes && py_read(door, s, v->value, bytes, c->span))
		return LOOP_STOP;
	s->labels.count++;
	c->steps -= head[1];
	c->span += head[1];
	return LOOP_NEXT;
}

LOOP_STEP(read_attribute_step)

/* Before all other labels. */
static __always_inline void py_read_thread_context(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	struct door door = l->door;
	__u64 record;

	s->labels.count = 0;
	s->labels.labels = 0;
	c->found = 0;
	if (!c->slot.process || c->slot.process != s->walk.process)
		return;
	record = find_thread_context(l);
	if (!record || py_read(door, s, s->text, THREAD_CONTEXT_BYTES, record) ||
	    s->text[THREAD_CONTEXT_VALID] != 1)
		return;
	c->span = record + THREAD_CONTEXT_BYTES;
	c->steps = *(const __u16 *)&s->text[THREAD_CONTEXT_ATTRIBUTES];
	if (field_u64(s->text, 0, STRING_HEAD_BYTES - 1) ||
	    field_u64(s->text, 8, STRING_HEAD_BYTES - 1))
		LOOP(CONTEXT_LABELS_MAX, read_id_step, l);
	LOOP(CONTEXT_LABELS_MAX, read_attribute_step, l);
}

#endif
