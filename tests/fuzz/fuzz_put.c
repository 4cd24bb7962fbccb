// Parses random bytes as a body of points or annotations: they give lines that the agent's parser
// accepts, or an error with a message.
#include "faces/opentsdb/put.h"
#include "ingest/lines_parse.h"

#include <stdlib.h>

static struct line line;

static bool series_tags(void *user, struct str tsuid, struct buf *out)
{
    (void)user;
    buf_add_str(out, STR(" host=a\\sb gpu=0"));
    return tsuid.size % 2;
}

// Checks that each line has exactly the items of its point, so that no body can smuggle in another
// line or another protocol.
static void check(const struct put_batch *batch, bool annotations)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct put_point *p = &batch->points[i];
        if (p->refused.size)
            continue;
        if (!p->line.size || str_find_char(p->line, '\n') >= 0 || !p->json.size)
            abort();
        if (line_parse(&line, p->line) &&
            (annotations ? !line.annotation.size : line.item_count != 1))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    for (int form = 0; form < 3; form++) {
        struct arena arena = arena_limited(16 << 20);
        struct put_batch batch = {0};
        struct error e = {0};
        int r = form == 0   ? put_parse_opentsdb(body, &arena, &batch, &e)
                : form == 1 ? put_parse_dragon(body, &arena, &batch, &e)
                            : put_parse_annotations(body, series_tags, NULL, &arena, &batch, &e);
        if (r && !e.text[0])
            abort();
        line_init(&line);
        if (!r)
            check(&batch, form == 2);
        line_free(&line);
        arena_free(&arena);
    }
    return 0;
}
