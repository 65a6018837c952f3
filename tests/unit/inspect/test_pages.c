/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "inspect/pages.h"

/* Memory whose bytes tell their address, but for one page that is not there. */
#define HOLE (5 * PAGES_BLOCK_BYTES + PAGES_BYTES)

struct memory {
	uint32_t reads;
};

static uint8_t byte_at(uint64_t addr)
{
	return (uint8_t)(addr * 31 + addr / 251);
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct memory *m = arg;

	m->reads++;
	if (addr < HOLE + PAGES_BYTES && addr + len > HOLE)
		return -EFAULT;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = byte_at(addr + i);
	return 0;
}

static void check(struct pages *p, uint64_t addr, size_t len)
{
	uint8_t buf[3 * PAGES_BLOCK_BYTES];

	assert_int_equal(pages_read(p, addr, buf, len), 0);
	for (size_t i = 0; i < len; i++)
		if (buf[i] != byte_at(addr + i))
			fail_msg("0x%llx is wrong", (unsigned long long)(addr + i));
}

static void test_each_block_is_read_once(void **state)
{
	struct memory m = { 0 };
	struct pages p;

	(void)state;
	pages_init(&p, read_memory, &m);
	for (uint64_t addr = PAGES_BLOCK_BYTES; addr < 3 * PAGES_BLOCK_BYTES; addr += 8)
		check(&p, addr, 8);
	assert_int_equal(m.reads, 2);
	check(&p, 2 * PAGES_BLOCK_BYTES - 5, 20);
	check(&p, PAGES_BLOCK_BYTES, 2 * PAGES_BLOCK_BYTES);
	assert_int_equal(m.reads, 2);
	pages_release(&p);
}

static void test_what_is_missing_hides_no_page_beside_it(void **state)
{
	struct memory m = { 0 };
	struct pages p;
	uint8_t buf[16];

	(void)state;
	pages_init(&p, read_memory, &m);
	check(&p, HOLE - 8, 8);
	check(&p, HOLE + PAGES_BYTES, 8);
	assert_int_equal(pages_read(&p, HOLE, buf, 8), -EFAULT);
	assert_int_equal(pages_read(&p, HOLE - 8, buf, 16), -EFAULT);
	assert_int_equal(pages_read(&p, HOLE + PAGES_BYTES - 8, buf, 16), -EFAULT);
	assert_int_equal(m.reads, 1 + PAGES_BLOCK_BYTES / PAGES_BYTES);
	pages_release(&p);
}

static void test_the_end_of_the_address_space(void **state)
{
	struct memory m = { 0 };
	struct pages p;
	uint8_t buf[16];

	(void)state;
	pages_init(&p, read_memory, &m);
	assert_int_equal(pages_read(&p, UINT64_MAX - 8, buf, 16), -EFAULT);
	assert_int_equal(pages_read(&p, UINT64_MAX - 8, buf, 4), -EFAULT);
	check(&p, 0, 16);
	pages_release(&p);
}

static void test_memory_is_capped(void **state)
{
	const uint64_t blocks = PAGES_BYTES_MAX / PAGES_BLOCK_BYTES;
	struct memory m = { 0 };
	struct pages p;

	(void)state;
	pages_init(&p, read_memory, &m);
	for (uint64_t i = 0; i < blocks + 100; i++)
		check(&p, (i + 16) * PAGES_BLOCK_BYTES, 8);
	assert_int_equal(p.len, 100);
	check(&p, 16 * PAGES_BLOCK_BYTES, 8); /* read anew */
	assert_int_equal(m.reads, blocks + 101);
	pages_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_block_is_read_once),
		cmocka_unit_test(test_what_is_missing_hides_no_page_beside_it),
		cmocka_unit_test(test_the_end_of_the_address_space),
		cmocka_unit_test(test_memory_is_capped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
