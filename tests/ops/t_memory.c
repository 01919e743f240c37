/* t_memory.c - tests of the CPU allocator for tensors: freed blocks are reused. */
#include "check.h"

#include "ops/memory.h"

#include <string.h>

enum { MB = 1 << 20 };

static void is_clear(const unsigned char *data, size_t bytes)
{
    assert_true((uintptr_t)data % 64 == 0);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(data[i], 0);
}

static void t_again(void **state)
{
    struct memory m;
    memory_init(&m, 8 * MB);
    unsigned char *a = memory_alloc(&m, 3 * MB), *b;
    is_clear(a, 3 * MB);
    memset(a, 7, 3 * MB);
    memory_free(&m, a);
    b = memory_alloc(&m, 3 * MB - 100000);
    assert_ptr_equal(a, b);
    is_clear(b, 3 * MB - 100000);
    memory_free(&m, b);
    b = memory_alloc(&m, 2 * MB); /* the freed block would waste a third of its size */
    assert_ptr_not_equal(a, b);
    assert_int_equal(m.n, 1);
    memory_free(&m, b);
    void *nothing = memory_alloc(&m, 0), *small = memory_alloc(&m, 1000);
    assert_non_null(nothing);
    memory_free(&m, nothing);
    memory_free(&m, small);
    memory_free(&m, NULL);
    assert_int_equal(m.n, 2); /* small blocks are freed with free() */
    memory_close(&m);
}

static void t_limit(void **state)
{
    struct memory m;
    memory_init(&m, 10 * MB);
    void *block[4];
    for (int i = 0; i < 4; i++)
        block[i] = memory_alloc(&m, 3 * MB);
    for (int i = 0; i < 4; i++) {
        memory_free(&m, block[i]);
        assert_true(m.kept <= 10 * MB);
    }
    assert_int_equal(m.n, 3);
    assert_ptr_equal(m.blocks[0].data, block[1]);
    assert_ptr_equal(m.blocks[2].data, block[3]);
    memory_free(&m, memory_alloc(&m, 11 * MB)); /* above the limit */
    assert_int_equal(m.n, 3);
    for (int i = 0; i < 100; i++)
        block[i % 4] = memory_alloc(&m, 200 << 10), memory_free(&m, block[i % 4]);
    assert_true(m.n <= 64);
    memory_close(&m);
    assert_int_equal(m.kept, 0);

    memory_init(&m, 0);
    memory_free(&m, memory_alloc(&m, MB));
    assert_int_equal(m.n, 0);
    memory_close(&m);
}

static void t_none_left(void **state)
{
    struct memory m;
    memory_init(&m, 8 * MB);
    memory_free(&m, memory_alloc(&m, MB));
    assert_null(memory_alloc(&m, (size_t)1 << 46));
    assert_int_equal(m.n, 0);
    assert_int_equal(m.kept, 0);
    memory_close(&m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a freed block is used again, cleared, by a request that needs most of it", t_again),
    CLAIM("the most recently freed blocks are kept, up to the limit", t_limit),
    CLAIM("if the system is out of memory, kept blocks are released and NULL is returned", t_none_left),
};

CHECK_MAIN()
