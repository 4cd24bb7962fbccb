#include "formats/tfrecord.h"
#include "unit/test.h"

// The first record of every event file of TensorBoard, except for its time, from tensorboard's own
// RecordWriter.
static void bytes_are_those_of_the_format(void **state)
{
    (void)state;
    struct buf b = {0};
    size_t begin = tfrecord_begin(&b);
    buf_add_str(&b, STR("\x1a\x0d"
                        "brain.Event:2"));
    tfrecord_end(&b, begin);
    assert_int_equal(b.size, 15 + TFRECORD_FRAME_BYTES);
    static const char wanted[] = "\x0f\0\0\0\0\0\0\0\x6d\x53\x2b\x09"
                                 "\x1a\x0d"
                                 "brain.Event:2"
                                 "\xfc\x98\x51\x29";
    assert_memory_equal(b.data, wanted, b.size);
    uint64_t size;
    assert_true(tfrecord_size((const uint8_t *)b.data, &size));
    assert_int_equal(size, 15);
    uint32_t crc;
    memcpy(&crc, b.data + TFRECORD_HEAD_BYTES + 15, sizeof crc);
    assert_true(tfrecord_is_whole((struct str){b.data + TFRECORD_HEAD_BYTES, 15}, crc));
    for (size_t bit = 0; bit < 8 * (TFRECORD_HEAD_BYTES + 15); bit++) {
        b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
        assert_false(tfrecord_size((const uint8_t *)b.data, &size) &&
                     tfrecord_is_whole((struct str){b.data + TFRECORD_HEAD_BYTES, 15}, crc));
        b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
    }
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_those_of_the_format)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
