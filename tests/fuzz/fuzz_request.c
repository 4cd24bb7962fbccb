// Parses a request and reads its parameters and small bodies as handlers do. The first line of the
// input is the address, the second has headers with lists, and the rest is a body, which may be
// compressed. The results are as documented, or an error with a message.
#include "ask/series_list.h"
#include "http/json_body.h"
#include "http/routes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 1 << 20, TAGS_MAX = 8 };

static void check_words(int rc, const struct error *e)
{
    if (rc && !e->text[0])
        abort();
}

static void check_parameters(const struct request *r)
{
    if (r->parameter_count > REQUEST_PARAMETERS_MAX)
        abort();
    for (size_t i = 0; i < r->parameter_count; i++) {
        const struct request_parameter *p = &r->parameters[i];
        struct store_label tags[TAGS_MAX];
        struct error e = {0};
        struct str metric;
        size_t count;
        int64_t number;
        if ((p->name.size && memchr(p->name.data, 0, p->name.size)) ||
            (p->value.size && memchr(p->value.data, 0, p->value.size)))
            abort();
        int rc = series_parse(p->value, &metric, tags, TAGS_MAX, &count, &e);
        check_words(rc, &e);
        if (!rc && (!metric.size || count > TAGS_MAX))
            abort();
        e = (struct error){0};
        rc = request_count(r, "limit", 1, &number, &e);
        check_words(rc, &e);
        if (!rc && number < 0)
            abort();
    }
}

static void take_body(struct request *r, struct error *e)
{
    size_t before = r->parameter_count;
    bool last = r->body.size % 2;
    int rc = last ? json_body_take_last(r, e) : json_body_take(r, e);
    check_words(rc, e);
    if (!rc && r->parameter_count < before)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size}, target = str_cut(&rest, '\n'),
               list = str_cut(&rest, '\n');
    struct request r = {.method = METHOD_POST, .body = rest.data ? rest : STR("")};
    struct error e = {0};
    r.headers[HEADER_CONTENT_ENCODING] = r.headers[HEADER_ACCEPT_ENCODING] = list;
    request_accepts(list, STR("gzip"), true);
    int rc = request_parse_target(&r, target, &e);
    check_words(rc, &e);
    if (!rc && (!r.path.size || r.path.data[0] != '/' || memchr(r.path.data, 0, r.path.size)))
        abort();
    if (!rc) {
        rc = request_decode_body(&r, BODY_MAX, &e);
        check_words(rc, &e);
        if (!rc && list.size && r.body.size > BODY_MAX && r.body.data != rest.data)
            abort();
    }
    if (!rc)
        take_body(&r, &e);
    if (!rc)
        check_parameters(&r);
    request_free(&r);
    return 0;
}
