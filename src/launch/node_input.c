#include "launch/node_input.h"

#include "wire/collector_line.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// The verbs whose value is stored unchanged, and the member of each.
#define TEXT(verb, member)                                            \
    {                                                                 \
        {verb, sizeof verb - 1}, offsetof(struct node_input, member), \
            sizeof((struct node_input *)0)->member                    \
    }
static const struct {
    struct str verb;
    size_t at, size;
} texts[] = {
    TEXT("job", job),
    TEXT("folder", folder),
    TEXT("token", token),
    TEXT("key", key),
    TEXT("name", name),
    TEXT("transport", transport),
    TEXT("record", record),
    TEXT("parent", parents),
    TEXT("finish", mark),
    TEXT("url", url),
    TEXT("dragon-port", dragon_port),
};

#define PLACE(verb, member)                                          \
    {                                                                \
        {verb, sizeof verb - 1}, offsetof(struct node_input, member) \
    }
static const struct {
    struct str verb;
    size_t at;
} owned[] = {PLACE("command", command), PLACE("hosts", hosts), PLACE("children", children)},
  times[] = {PLACE("beat-ms", beat_ms), PLACE("orphan-ms", orphan_ms), PLACE("stop-ms", stop_ms)};

static const struct {
    struct str verb;
    enum node_input_news news;
} told_of[] = {
    {{"parent", 6}, NODE_INPUT_PARENT},
    {{"children", 8}, NODE_INPUT_CHILDREN},
    {{"hosts", 5}, NODE_INPUT_HOSTS},
    {{"finish", 6}, NODE_INPUT_FINISH},
    {{"drop", 4}, NODE_INPUT_DROP},
    {{COLLECTOR_VERB, sizeof COLLECTOR_VERB - 1}, NODE_INPUT_COLLECTOR},
    {{"url", 3}, NODE_INPUT_URL},
    {{"name-in", 7}, NODE_INPUT_NAME_IN},
    {{"end", 3}, NODE_INPUT_END},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

void node_input_init(struct node_input *t)
{
    *t = (struct node_input){.beat_ms = 5000,
                             .orphan_ms = 120000,
                             .stop_ms = 10000,
                             .pending = {.limit = NODE_INPUT_LINE_MAX}};
}

void node_input_free(struct node_input *t)
{
    free(t->command);
    free(t->hosts);
    free(t->children);
    for (size_t i = 0; i < t->argument_count; i++)
        free(t->arguments[i]);
    buf_free(&t->pending);
    node_input_init(t);
}

static int take_owned(char **place, struct str value, struct error *e)
{
    char *text = strndup(value.data, value.size);
    if (!text)
        return error_set(e, -ENOMEM, "out of memory");
    free(*place);
    *place = text;
    return 0;
}

static int take_text(char *place, size_t size, struct str verb, struct str value, struct error *e)
{
    if (value.size >= size)
        return error_set(e, -EMSGSIZE, "\"%.*s\" with %zu bytes, at most %zu are taken",
                         STR_ARG(verb), value.size, size - 1);
    memcpy(place, value.data, value.size);
    place[value.size] = 0;
    return 0;
}

static int keep(struct node_input *t, struct str verb, struct str value, struct error *e)
{
    for (size_t i = 0; i < COUNT(texts); i++)
        if (str_eq(verb, texts[i].verb))
            return take_text((char *)t + texts[i].at, texts[i].size, verb, value, e);
    for (size_t i = 0; i < COUNT(owned); i++)
        if (str_eq(verb, owned[i].verb))
            return take_owned((char **)((char *)t + owned[i].at), value, e);
    for (size_t i = 0; i < COUNT(times); i++) {
        int64_t ms;
        if (str_eq(verb, times[i].verb) && str_to_i64(value, &ms) && ms > 0 && ms <= INT32_MAX)
            *(int64_t *)((char *)t + times[i].at) = ms;
    }
    if (str_eq(verb, STR("agent"))) {
        if (t->argument_count == NODE_INPUT_ARGUMENTS_MAX)
            return error_set(e, -E2BIG, "more than %d arguments for the agent",
                             NODE_INPUT_ARGUMENTS_MAX);
        t->arguments[t->argument_count] = NULL;
        int rc = take_owned(&t->arguments[t->argument_count], value, e);
        t->argument_count += rc == 0;
        return rc;
    }
    t->whole |= str_eq(verb, STR("go"));
    return 0;
}

static int take_line(struct node_input *t, struct str line, node_input_news_fn *news, void *user,
                     struct error *e)
{
    struct str value = line, verb = str_cut(&value, ' ');
    int64_t version;
    if (t->versioned && str_starts(verb, STR("@"))) {
        if (!value.data || !t->name[0] || !str_eq(str_slice(verb, 1, verb.size), str_of(t->name)))
            return 0;
        verb = str_cut(&value, ' ');
    }
    if (!value.data)
        value = STR("");
    if (!t->versioned) {
        if (!str_eq(verb, STR("sonde-node")) || !str_to_i64(value, &version) ||
            version != NODE_INPUT_VERSION)
            return error_set(e, -EPROTO,
                             "this is sonde %s, which was started by another version: both nodes "
                             "need the same one",
                             SONDE_VERSION);
        t->versioned = true;
        return 0;
    }
    for (size_t i = 0; i < COUNT(told_of); i++)
        if (str_eq(verb, told_of[i].verb))
            news(user, told_of[i].news, value);
    return keep(t, verb, value, e);
}

int node_input_take(struct node_input *t, struct str piece, node_input_news_fn *news, void *user,
                    struct error *e)
{
    int rc = 0;
    while (piece.size && rc == 0) {
        ptrdiff_t end = str_find_char(piece, '\n');
        struct str part = str_slice(piece, 0, end < 0 ? piece.size : (size_t)end);
        piece = str_slice(piece, part.size + (end >= 0), piece.size);
        buf_add(&t->pending, part.data, part.size);
        if (t->pending.failed)
            return error_set(e, -EMSGSIZE, "a line of more than %d bytes", NODE_INPUT_LINE_MAX);
        if (end < 0)
            break;
        rc = take_line(t, buf_str(&t->pending), news, user, e);
        t->pending.size = 0;
    }
    return rc;
}
