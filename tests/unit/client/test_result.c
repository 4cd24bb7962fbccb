// An answer in columns: read unchanged, and refused if it is truncated or changed anywhere.
#include "base/bytes.h"
#include "client/arrow_interface.h"
#include "client/result.h"
#include "faces/native/binary.h"
#include "unit/test.h"

#include <errno.h>
#include <stdlib.h>

static void add_series(struct buf *out, size_t points, const char *tag, bool shared)
{
    struct buf d = {0};
    buf_varint(&d, 0);
    buf_short(&d, STR("loss"));
    buf_u8(&d, NATIVE_BINARY_COUNTER);
    buf_short(&d, STR("nats"));
    buf_varint(&d, 1);
    buf_short(&d, STR("host"));
    buf_short(&d, str_of(tag));
    buf_varint(&d, 1);
    buf_short(&d, STR("rank"));
    buf_varint(&d, 3);
    buf_u8(&d, 1);
    buf_u64(out, d.size);
    buf_add_str(out, buf_str(&d));
    while (out->size % 8)
        buf_add_char(out, 0);
    buf_u64(out, points | (shared ? NATIVE_BINARY_SHARED : 0));
    for (size_t i = 0; !shared && i < points; i++)
        buf_u64(out, 1000 + i);
    for (size_t i = 0; i < points; i++)
        buf_f64(out, (double)i / 2);
    buf_free(&d);
}

static void make_answer(struct buf *out)
{
    buf_add_str(out, STR(NATIVE_BINARY_MAGIC));
    add_series(out, 3, "a", false);
    add_series(out, 0, "bcd", false);
    add_series(out, 2, "", false);
    add_series(out, 2, "e", true);
    buf_u64(out, 0);
    buf_u64(out, 4);
    buf_u64(out, 7);
    buf_u64(out, 17);
}

// Reads a copy, which the result takes over.
static int read_bytes(const void *data, size_t size, struct sonde_result **out, struct error *e)
{
    struct http_answer answer = {0};
    buf_add(&answer.body, data, size);
    return result_read(&answer, out, e);
}

static void test_full_io(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct sonde_result *r;
    struct error e = {0};
    make_answer(&bytes);
    assert_int_equal(read_bytes(bytes.data, bytes.size, &r, &e), 0);
    assert_int_equal(r->count, 4);
    assert_int_equal(r->points_read, 17);
    const struct sonde_series *s = sonde_result_series(r, 0);
    assert_string_equal(s->tags[0].value, "a");
    assert_string_equal(s->aggregate_tags[0], "rank");
    assert_int_equal(s->source_series, 3);
    assert_true(s->estimated);
    assert_int_equal(s->kind, SONDE_COUNTER);
    assert_int_equal(s->time_ns[2], 1002);
    assert_float_equal(s->values[2], 1, 0);
    assert_int_equal((uintptr_t)s->values % 8, 0);
    assert_ptr_equal(sonde_result_series(r, 3)->time_ns, sonde_result_series(r, 2)->time_ns);
    assert_float_equal(sonde_result_series(r, 3)->values[1], 0.5, 0);
    sonde_result_free(r);
    buf_free(&bytes);
}

// Shared times without a previous series, or with another number of points.
static void test_times_that_are_not_there(void **state)
{
    (void)state;
    for (size_t before = 0; before < 4; before++) {
        struct buf bytes = {0};
        struct sonde_result *r;
        struct error e = {0};
        buf_add_str(&bytes, STR(NATIVE_BINARY_MAGIC));
        if (before)
            add_series(&bytes, before, "a", false);
        add_series(&bytes, 2, "b", true);
        buf_u64(&bytes, 0);
        buf_u64(&bytes, 1 + (before != 0));
        buf_u64(&bytes, before + 2);
        buf_u64(&bytes, 0);
        assert_int_equal(read_bytes(bytes.data, bytes.size, &r, &e), before == 2 ? 0 : -EBADMSG);
        sonde_result_free(r);
        buf_free(&bytes);
    }
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct sonde_result *r;
    make_answer(&bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        struct error e = {0};
        assert_int_equal(read_bytes(bytes.data, size, &r, &e), -EBADMSG);
        assert_null(r);
        assert_true(e.text[0]);
    }
    buf_add_char(&bytes, 0);
    assert_int_equal(read_bytes(bytes.data, bytes.size, &r, NULL), -EBADMSG);
    buf_free(&bytes);
}

// Whatever byte changes, nothing outside is read, and accepted data can be used.
static void test_changed_anywhere(void **state)
{
    (void)state;
    static const unsigned char with[] = {0, 1, 0x7f, 0x80, 0xff};
    struct buf bytes = {0};
    make_answer(&bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        for (size_t k = 0; k < sizeof with; k++) {
            struct sonde_result *r;
            struct ArrowArrayStream stream;
            struct ArrowArray batch;
            char before = bytes.data[i];
            bytes.data[i] = (char)with[k];
            int rc = read_bytes(bytes.data, bytes.size, &r, NULL);
            bytes.data[i] = before;
            if (rc)
                continue;
            assert_int_equal(sonde_result_arrow(r, &stream, NULL), 0);
            sonde_result_free(r);
            while (stream.get_next(&stream, &batch) == 0 && batch.release)
                batch.release(&batch);
            stream.release(&stream);
        }
    }
    buf_free(&bytes);
}

static bool from_the_second(void *user, const struct sonde_series *s, size_t *first)
{
    (void)user;
    *first = 1;
    return s->count > 0;
}

static void test_narrow(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct sonde_result *r;
    make_answer(&bytes);
    assert_int_equal(read_bytes(bytes.data, bytes.size, &r, NULL), 0);
    result_narrow(r, from_the_second, NULL);
    assert_int_equal(r->count, 3);
    assert_int_equal(r->series[0].count, 2);
    assert_int_equal(r->series[0].time_ns[0], 1001);
    assert_float_equal(r->series[1].values[0], 0.5, 0);
    assert_int_equal(r->series[2].time_ns[0], 1001);
    sonde_result_free(r);
    buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_io),      cmocka_unit_test(test_times_that_are_not_there),
        cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_changed_anywhere),
        cmocka_unit_test(test_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
