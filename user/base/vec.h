/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * A typed growable array:
 *
 *	VEC(struct sample) samples = VEC_INIT;
 *
 *	r = vec_push(&samples, s);	0 or -ENOMEM
 *	samples.items[i], samples.len
 *	vec_release(&samples);
 *
 * A failed call leaves the array as it was. Items move when it grows: keep indices, not pointers.
 */
#define VEC(type)            \
	struct {             \
		type *items; \
		size_t len;  \
		size_t cap;  \
	}

#define VEC_INIT           \
	{                  \
		NULL, 0, 0 \
	}

/* The new items, with room for at least len + more, or NULL. Never shrinks. */
static inline void *vec_grow_(void *items, size_t *cap, size_t len, size_t more, size_t item_size)
{
	size_t need, bytes, want;

	if (__builtin_add_overflow(len, more, &need))
		return NULL;
	if (items && need <= *cap)
		return items;
	want = *cap + *cap / 2;
	if (want < need)
		want = need;
	if (want < 8)
		want = 8;
	if (__builtin_mul_overflow(want, item_size, &bytes) || bytes > PTRDIFF_MAX)
		return NULL;
	items = realloc(items, bytes);
	if (items)
		*cap = want;
	return items;
}

/* Makes room for more items beyond the present ones. */
#define vec_reserve(v, more)                                                                      \
	({                                                                                        \
		__auto_type reserve_v_ = (v);                                                     \
		void *reserved_ = vec_grow_(reserve_v_->items, &reserve_v_->cap, reserve_v_->len, \
					    (more), sizeof(*reserve_v_->items));                  \
		if (reserved_)                                                                    \
			reserve_v_->items = reserved_;                                            \
		reserved_ ? 0 : -ENOMEM;                                                          \
	})

#define vec_push(v, item)                                            \
	({                                                           \
		__auto_type push_v_ = (v);                           \
		__typeof__(*push_v_->items) push_item_ = (item);     \
		int push_r_ = vec_reserve(push_v_, 1);               \
		if (!push_r_)                                        \
			push_v_->items[push_v_->len++] = push_item_; \
		push_r_;                                             \
	})

/* Appends count items; from must not point into v. */
#define vec_append(v, from, count)                                              \
	({                                                                      \
		__auto_type append_v_ = (v);                                    \
		const __typeof__(*append_v_->items) *append_from_ = (from);     \
		size_t append_n_ = (count);                                     \
		int append_r_ = vec_reserve(append_v_, append_n_);              \
		if (!append_r_ && append_n_) {                                  \
			memcpy(append_v_->items + append_v_->len, append_from_, \
			       append_n_ * sizeof(*append_from_));              \
			append_v_->len += append_n_;                            \
		}                                                               \
		append_r_;                                                      \
	})

/* Frees the array, not what its items point to, and makes it as good as new. */
#define vec_release(v)                                 \
	do {                                           \
		__auto_type release_v_ = (v);          \
		free(release_v_->items);               \
		release_v_->items = NULL;              \
		release_v_->len = release_v_->cap = 0; \
	} while (0)

#endif
