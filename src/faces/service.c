#include "faces/service.h"

#include "http/workers.h"

int service_read(struct service *service, struct request *r, int64_t until_ns, struct reading *out,
                 struct error *e)
{
    struct reading_for request = {.arena = &r->arena,
                                  .watch = workers_watch(),
                                  .deadline_ns = r->arrived_ns + service->limits.query_deadline_ns,
                                  .node_deadline_ns = service->limits.node_deadline_ns,
                                  .memory_bytes = service->limits.query_memory_bytes};
    return reading_open(&service->reads, &request, until_ns, out, e);
}

void service_read_end(struct reading *d, struct answer *a)
{
    struct buf value = {0};
    if (a)
        reading_name_missing(d, &value);
    if (value.size)
        answer_header(a, "X-Sonde-Missing",
                      value.failed ? NULL : arena_strdup(d->request.arena, buf_str(&value)));
    buf_free(&value);
    reading_close(d);
}
