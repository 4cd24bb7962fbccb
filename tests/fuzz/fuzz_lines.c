// Divides random bytes into text lines, and parses these. The results obey the limits of store.h.
// They lie in the line or the arena: the target reads every byte, so that the sanitizer checks
// this.
#include "ingest/lines_parse.h"
#include "ingest/lines_split.h"

#include <stdlib.h>

static struct line line;

static unsigned touch(struct str s, size_t least, size_t most)
{
    unsigned sum = 0;
    if (s.size < least || s.size > most)
        abort();
    for (size_t i = 0; i < s.size; i++)
        sum += (unsigned char)s.data[i];
    return sum;
}

static void each(void *user, struct str text, bool too_long)
{
    unsigned *sum = user;
    if (too_long)
        return;
    if (!line_parse(&line, text)) {
        if (!line.error[0])
            abort();
        return;
    }
    *sum += touch(line.annotation, 0, STORE_TEXT_MAX);
    *sum += touch(line.span_name, line.span == LINE_SPAN_BEGIN, STORE_NAME_MAX);
    if ((line.annotation.size || line.span != LINE_NO_SPAN) && line.item_count)
        abort();
    for (size_t i = 0; i < line.item_count; i++) {
        *sum += touch(line.items[i].name, 1, STORE_NAME_MAX);
        if (line.items[i].kind == LINE_MEMBER)
            *sum += touch(line.items[i].member, 1, LINE_SIZE_MAX);
        else if (store_is_missing(line.items[i].value))
            abort();
    }
    for (size_t i = 0; i < line.label_count; i++)
        *sum += touch(line.labels[i].key, 1, STORE_KEY_MAX) +
                touch(line.labels[i].value, 1, STORE_VALUE_MAX);
    if (line.has_time && line.t_ns < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    struct lines_split split = {0};
    line_init(&line);
    // The input arrives in two pieces. The limit on a line is so small that the fuzzer exceeds it.
    size_t half = size / 2;
    lines_split_feed(&split, (struct str){(const char *)data, half}, 512, each, &sum);
    lines_split_feed(&split, (struct str){(const char *)data + half, size - half}, 512, each, &sum);
    lines_split_end(&split, 512, each, &sum);
    lines_split_free(&split);
    line_free(&line);
    __asm__ volatile("" : : "r"(sum)); // keeps the compiler from removing the reads
    return 0;
}
