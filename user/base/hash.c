/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/hash.h"

#include <sys/random.h>
#include <time.h>

struct hash_key hash_key;

void hash_set_key(const struct hash_key *key)
{
	hash_key = *key;
}

/* In front of main(), so that hashing needs neither a check nor a lock. */
__attribute__((constructor)) static void draw_key(void)
{
	struct timespec now;

	/* Early in boot there may be no entropy yet: then where and when this runs has to do. */
	if (getrandom(&hash_key, sizeof(hash_key), GRND_NONBLOCK) == sizeof(hash_key))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	hash_key = (struct hash_key){ { (uintptr_t)&now, (uint64_t)now.tv_nsec },
				      { ~(uint64_t)now.tv_nsec, ~(uint64_t)(uintptr_t)&now } };
}

static uint64_t load(const unsigned char *p, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

static uint64_t rotate(uint64_t v, unsigned int by)
{
	return v << by | v >> (64 - by);
}

struct sip {
	uint64_t a, b, c, d; /* v0 to v3 of the paper */
};

static inline void sip_round(struct sip *s)
{
	s->a += s->b;
	s->b = rotate(s->b, 13) ^ s->a;
	s->a = rotate(s->a, 32);
	s->c += s->d;
	s->d = rotate(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = rotate(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = rotate(s->b, 17) ^ s->c;
	s->c = rotate(s->c, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
	s->d ^= word;
	sip_round(s);
	s->a ^= word;
}

uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
	const uint64_t k0 = hash_key.of_text[0] ^ seed, k1 = hash_key.of_text[1];
	struct sip s = { /* "somepseudorandomlygeneratedbytes" */
			 k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
			 k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)
	};
	const unsigned char *p = bytes;
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8)
		sip_word(&s, load(p, 8));
	sip_word(&s, load(p, left) | (uint64_t)len << 56);
	s.c ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

uint64_t hash_words(const void *words, size_t count, uint64_t seed)
{
	uint64_t h = hash_combine(seed, count);
	const unsigned char *p = words;

	for (; count >= 2; count -= 2, p += 16)
		h = hash_fold(load(p, 8) ^ hash_key.of_numbers[1], load(p + 8, 8) ^ h);
	return count ? hash_combine(h, load(p, 8)) : hash_u64(h);
}
