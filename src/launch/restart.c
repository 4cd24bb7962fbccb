#include "launch/restart.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int restart_init(struct restart *r, const struct restart_rules *rules, size_t count,
                 struct error *e)
{
    *r = (struct restart){.rules = *rules, .count = count};
    size_t wanted = rules->nodes ? rules->nodes : count;
    if (count == 0)
        return error_set(e, -EINVAL, "there are no nodes");
    if (wanted > count)
        return error_set(e, -EINVAL, "--nodes=%zu, but the job has %zu node%s", wanted, count,
                         count == 1 ? "" : "s");
    r->places = calloc(count, sizeof *r->places);
    if (!r->places)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < wanted; i++)
        r->places[i] = RESTART_TAKES_PART;
    r->rules.nodes = wanted;
    return 0;
}

void restart_free(struct restart *r)
{
    free(r->places);
    *r = (struct restart){0};
}

size_t restart_taking_part(const struct restart *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++)
        n += r->places[i] == RESTART_TAKES_PART;
    return n;
}

static struct restart_answer answer(enum restart_verb verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static struct restart_answer answer(enum restart_verb verb, const char *format, ...)
{
    struct restart_answer a = {.verb = verb};
    va_list args;
    va_start(args, format);
    vsnprintf(a.reason, sizeof a.reason, format, args);
    va_end(args);
    return a;
}

// Fills free places with reserves. Returns false if there are too few reserves.
static bool swap_in(struct restart *r)
{
    size_t missing = r->rules.nodes - restart_taking_part(r);
    for (size_t i = 0; i < r->count && missing > 0; i++) {
        if (r->places[i] != RESTART_RESERVE)
            continue;
        r->places[i] = RESTART_TAKES_PART;
        missing--;
    }
    return missing == 0;
}

// Decides after nodes were lost or excluded, or a restart was requested.
static struct restart_answer again(struct restart *r)
{
    if (r->rules.max_restarts >= 0 && restart_count(r) >= r->rules.max_restarts)
        return answer(RESTART_GIVE_UP, "it was started again %d times already (--max-restarts)",
                      restart_count(r));
    bool full = swap_in(r);
    size_t left = restart_taking_part(r);
    if (!full && !r->rules.exhaust)
        return answer(
            RESTART_GIVE_UP,
            "%zu of %zu nodes are left and no reserve (--exhaust-resources goes on with fewer)",
            left, r->rules.nodes);
    r->pending = true;
    return answer(RESTART_AGAIN, "starting it again on %zu node%s", left, left == 1 ? "" : "s");
}

struct restart_answer restart_node_lost(struct restart *r, size_t node)
{
    if (node >= r->count || r->places[node] == RESTART_OUT)
        return answer(RESTART_GO_ON, "%s", "");
    bool took_part = r->places[node] == RESTART_TAKES_PART;
    if (r->attempts == 0 && node > 0) {
        r->places[node] = RESTART_OUT;
        swap_in(r);
        return answer(RESTART_GO_ON, "the run begins without it");
    }
    if (!r->rules.resilient && took_part)
        return answer(RESTART_GO_ON, "the command goes on without its data");
    if (node == 0)
        return answer(RESTART_GIVE_UP,
                      "it is the first node, without which the command cannot be started again");
    r->places[node] = RESTART_OUT;
    if (!took_part)
        return answer(RESTART_GO_ON, "it was a reserve");
    return again(r);
}

struct restart_answer restart_reboot(struct restart *r, const size_t *excluded,
                                     size_t excluded_count)
{
    if (!r->rules.resilient)
        return answer(RESTART_REFUSED, "the run is not --resilient");
    for (size_t i = 0; i < excluded_count; i++) {
        if (excluded[i] > 0 && excluded[i] < r->count)
            r->places[excluded[i]] = RESTART_OUT;
    }
    return again(r);
}

struct restart_answer restart_command_ended(struct restart *r, int exit_code)
{
    if (r->pending) // the command was stopped for this restart
        return answer(RESTART_AGAIN, "%s", "");
    if (r->rules.exit_code < 0 || exit_code != r->rules.exit_code)
        return answer(RESTART_OVER, "%s", "");
    struct restart_answer a = again(r);
    if (a.verb == RESTART_GIVE_UP)
        a.verb = RESTART_OVER;
    return a;
}

void restart_begin(struct restart *r)
{
    r->pending = false;
    r->attempts++;
}
