#include "ask/question.h"

#include "ask/question_internal.h"
#include "base/clock.h"

#include <errno.h>

static const struct ask_question_row *const rows[ASK_QUESTION_COUNT] = {
    [ASK_QUERY] = &ask_query_row,   [ASK_NAMES] = &ask_names_row,   [ASK_SERIES] = &ask_series_row,
    [ASK_EVENTS] = &ask_events_row, [ASK_STATUS] = &ask_status_row, [ASK_COPY] = &ask_copy_row,
    [ASK_RECENT] = &ask_recent_row,
};

const struct ask_question_row *ask_question_row(unsigned question)
{
    return question < ASK_QUESTION_COUNT ? rows[question] : NULL;
}

int64_t ask_question_until(unsigned question, struct str request)
{
    const struct ask_question_row *row = ask_question_row(question);
    return row && row->until ? row->until(request) : INT64_MAX;
}

int ask_answer_begin(struct wire_answer *a, unsigned question, struct str request,
                     const struct wire_view *view, struct str host, int64_t deadline_ns,
                     const struct work_watch *watch, struct error *e)
{
    *a = (struct wire_answer){.view = view,
                              .host = host,
                              .deadline_ns = deadline_ns,
                              .watch = watch,
                              .reservation.watch = watch,
                              .arena = arena_limited(ASK_ANSWER_MEMORY),
                              .row = ask_question_row(question)};
    if (!a->row)
        return error_set(e, -ENOSYS, "this node does not know question %u", question);
    int r = a->row->begin(a, request, e);
    return r ? r : ask_answer_hold(a, 0, e);
}

int ask_answer_hold(struct wire_answer *a, size_t bytes, struct error *e)
{
    return reservation_grow(&a->reservation, a->arena.used_bytes + bytes, e);
}

int ask_answer_step(struct wire_answer *a, struct buf *out, struct error *e)
{
    if (clock_monotonic_ns() > a->deadline_ns)
        return error_set(e, -ETIMEDOUT, "the answer was not ready in time");
    int r = a->row->step(a, out, e), held = ask_answer_hold(a, 0, e);
    return held ? held : r;
}

void ask_answer_end(struct wire_answer *a)
{
    if (a->row && a->row->end)
        a->row->end(a);
    reservation_shrink(&a->reservation, 0);
    arena_free(&a->arena);
    *a = (struct wire_answer){0};
}
