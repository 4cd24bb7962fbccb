// test.h - every unit test includes it: cmocka, with the headers that it needs before it.
#ifndef SONDE_TESTS_TEST_H
#define SONDE_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

static inline void assert_str_equal(struct str s, const char *text)
{
    assert_int_equal(s.size, strlen(text));
    if (s.size)
        assert_memory_equal(s.data, text, s.size);
}

#endif
