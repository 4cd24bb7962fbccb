// Several threads unpack frames at the same time. After a damaged frame, and one of another size,
// the next one is unpacked as before.
#include "../test.h"
#include "store/unpack.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { THREADS = 8, ROUNDS = 300, SIZE_MAX_BYTES = 20000 };

static void *use(void *number)
{
    unsigned seed = *(unsigned *)number;
    size_t bound = ZSTD_compressBound(SIZE_MAX_BYTES);
    uint8_t *raw = malloc(SIZE_MAX_BYTES), *out = malloc(SIZE_MAX_BYTES), *frame = malloc(bound);
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = 1 + (size_t)rand_r(&seed) % SIZE_MAX_BYTES;
        for (size_t i = 0; i < size; i++)
            raw[i] = (uint8_t)(rand_r(&seed) % 7);
        size_t packed = ZSTD_compress(frame, bound, raw, size, 1);
        assert_int_equal(unpack(out, size - 1, frame, packed), -EBADMSG);
        assert_int_equal(unpack(out, size, frame, packed / 2), -EBADMSG);
        assert_int_equal(unpack(out, size, frame, packed), 0);
        assert_memory_equal(out, raw, size);
    }
    free(raw);
    free(out);
    free(frame);
    return NULL;
}

static void many_threads_unpack(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, use, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_threads_unpack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
