#include "aggregator/relay.h"

#include "aggregator/control.h"
#include "aggregator/sources.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

// The view of one question.
struct opened {
    struct arena arena;
    struct sources_view view;
};

int relay_view(const struct sources_view *view, struct arena *arena, struct wire_view *out, struct error *e)
{
    struct store_reader **readers = arena_array(arena, view->count, sizeof *readers);
    if (!readers)
        return error_set(e, -ENOMEM, "no memory for an answer");
    for (size_t i = 0; i < view->count; i++)
        readers[i] = (struct store_reader *)(uintptr_t)source_reader(view->files[i]);
    *out =
        (struct wire_view){.stores = view->snapshots, .readers = readers, .labels = view->labels, .count = view->count};
    return 0;
}

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    struct opened *o = calloc(1, sizeof *o);
    if (!o)
        return error_set(e, -ENOMEM, "no memory for an answer");
    int r = sources_open(user, &o->arena, &o->view, e);
    bool opened = r == 0;
    if (opened)
        r = relay_view(&o->view, &o->arena, out, e);
    if (r == 0) {
        out->user = o;
        return 0;
    }
    if (opened)
        sources_close(&o->view);
    arena_free(&o->arena);
    free(o);
    return r;
}

static void close_view(void *user, struct wire_view *view)
{
    struct opened *o = view->user;
    (void)user;
    sources_close(&o->view);
    arena_free(&o->arena);
    free(o);
}

static int start(const struct relay_options *o, struct sources *sources, struct wire_loop *loop, struct wire_bulk *bulk,
                 struct wire_link **out, struct error *e)
{
    struct wire_link_options link = {
        .bulk = bulk,
        .settings = {.job = str_of(o->job)},
        .parent_host = o->parent_host,
        .parent_port = o->parent_port,
        .host = str_of(o->host),
        .session = (uint64_t)clock_realtime_ns(),
        .source = {open_view, close_view, sources},
    };
    int r = wire_key_read(o->key_file, link.settings.key, e);
    if (r == 0)
        r = wire_link_create(loop, &link, out, e);
    explicit_bzero(link.settings.key, sizeof link.settings.key);
    return r;
}

int relay_run(const struct relay_options *options, int control_fd, struct error *e)
{
    struct error own = {0};
    struct control control;
    struct sources *sources = NULL;
    struct wire_loop *loop = NULL;
    struct wire_bulk *bulk = NULL;
    struct wire_link *link = NULL;
    int r = control_open(&control, control_fd, &own);
    if (r == 0)
        r = sources_create(&options->folder, 1, false, &sources, &own);
    if (r == 0)
        r = wire_loop_start(&loop, &own);
    if (r == 0 && options->transport)
        r = wire_bulk_open(loop, options->transport, WIRE_LINK, options->parent_host, &bulk, &own);
    if (r == 0)
        r = start(options, sources, loop, bulk, &link, &own);
    if (r) {
        control_say(&control, "error %s", own.text);
    } else {
        control_say(&control, "ready");
        while (control_wait(&control, -1, NULL, NULL))
            ;
        wire_link_destroy(link);
    }
    wire_bulk_close(bulk);
    if (loop)
        wire_loop_stop(loop);
    if (sources)
        sources_destroy(sources);
    control_close(&control);
    if (r && e)
        *e = own;
    return r;
}
