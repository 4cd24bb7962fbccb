// Reads a stream of a hostile server: it is divided into valid parts, or refused.
#include "base/bytes.h"
#include "client/feed.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size}, piece;
    size_t taken = 0;
    while (feed_cut(&rest, &piece) == 1) {
        struct http_answer answer = {0};
        struct sonde_result *r;
        taken += 8 + piece.size;
        if (piece.data < (const char *)data || rest.size != size - taken ||
            piece.data + piece.size != rest.data)
            abort();
        buf_add_str(&answer.body, piece);
        result_read(&answer, &r, NULL);
        sonde_result_free(r);
    }
    return 0;
}
