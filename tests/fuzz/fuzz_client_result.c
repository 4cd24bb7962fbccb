// Reads an answer in columns of a hostile server: it is refused, or usable as series and as an
// Arrow table.
#include "client/arrow_interface.h"
#include "client/result.h"
#include "faces/native/binary.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static double sum;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_answer answer = {0};
    struct sonde_result *r;
    struct error e = {0};
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    size_t points = 0, rows = 0;
    buf_add_str(&answer.body, STR(NATIVE_BINARY_MAGIC)); // so that the fuzzer need not find it
    buf_add(&answer.body, data, size);
    if (result_read(&answer, &r, &e) != 0) {
        if (!e.text[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < sonde_result_count(r); i++) {
        const struct sonde_series *s = sonde_result_series(r, i);
        for (size_t k = 0; k < s->count; k++)
            sum += s->values[k] + (double)s->time_ns[k];
        points += s->count + 0 * (strlen(s->metric) + strlen(s->unit));
    }
    if (sonde_result_arrow(r, &stream, NULL) != 0)
        abort();
    sonde_result_free(r);
    while (stream.get_next(&stream, &batch) == 0 && batch.release) {
        rows += (size_t)batch.length;
        for (int64_t c = 2; c < batch.n_children; c++)
            for (int64_t i = 0; i < batch.length; i++)
                if (((const int32_t *)batch.children[c]->buffers[1])[i] >=
                    (batch.children[c]->dictionary->length ? batch.children[c]->dictionary->length
                                                           : 1))
                    abort();
        batch.release(&batch);
    }
    stream.release(&stream);
    if (rows != points)
        abort();
    return 0;
}
