// `sonde completion SHELL` prints a script. The script calls `sonde completion words KIND [WORD]`
// for words that depend on data: names of metrics and tags, ids of jobs. If there are no data, or a
// job does not answer at once, the command prints no words and no error.
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/help.h"

#include "base/log.h"
#include "launch/trace.h"

#include <errno.h>
#include <stdlib.h>

enum { WORDS_TIMEOUT_MS = 500 };

// Prints a word if it has only characters that a shell neither expands nor executes.
static void add_word(struct buf *out, struct str prefix, struct str word, const char *end,
                     struct str typed)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-+@%";
    struct buf whole = {0};
    bool sound = word.size > 0;
    for (size_t i = 0; i < word.size; i++)
        sound &= word.data[i] && strchr(plain, word.data[i]) != NULL;
    buf_add_str(&whole, prefix);
    buf_add_str(&whole, word);
    buf_printf(&whole, "%s", end);
    if (sound && str_starts(buf_str(&whole), typed))
        buf_printf(out, "%s\n", buf_cstr(&whole));
    buf_free(&whole);
}

static ptrdiff_t last_of(struct str text, const char *characters)
{
    for (size_t i = text.size; i > 0; i--)
        if (strchr(characters, text.data[i - 1]))
            return (ptrdiff_t)i - 1;
    return -1;
}

// Completes "avg:1s-avg:lo" with names of metrics, "loss{ra" with tags, and "loss{rank=" with their
// values.
static void add_expressions(struct data_request *a, struct str typed, struct buf *out)
{
    struct error ignored;
    json_t *rows = NULL;
    struct str rest = typed, head = str_cut(&rest, '{');
    size_t name_at = (size_t)(last_of(head, ":") + 1);
    if (!rest.data) {
        data_request_list(a, "/sonde/v1/metrics", "metrics", &rows, &ignored);
        for (size_t i = 0; i < json_array_size(rows); i++)
            add_word(out, str_slice(typed, 0, name_at),
                     str_of(data_request_text(json_array_get(rows, i), "name")), "", typed);
        json_decref(rows);
        return;
    }
    struct buf path = {0}, metric = {0};
    size_t at = (size_t)(last_of(typed, "{,") + 1);
    struct str value = str_slice(typed, at, typed.size), key = str_cut(&value, '=');
    buf_add_str(&path, STR("/sonde/v1/tags?examples=100"));
    buf_add_str(&metric, str_slice(head, name_at, head.size));
    client_add_parameter(&path, "metric", buf_cstr(&metric));
    data_request_list(a, buf_cstr(&path), "tags", &rows, &ignored);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *tag = json_array_get(rows, i), *examples = json_object_get(tag, "examples");
        struct str known = str_of(data_request_text(tag, "key"));
        if (!value.data)
            add_word(out, str_slice(typed, 0, at), known, "=", typed);
        for (size_t k = 0; value.data && str_eq(known, key) && k < json_array_size(examples); k++)
            add_word(out, str_slice(typed, 0, at + key.size + 1),
                     str_of(json_string_value(json_array_get(examples, k))), "", typed);
    }
    json_decref(rows);
    buf_free(&path);
    buf_free(&metric);
}

// "io,m" is completed with the tracers that the list does not have yet.
static void add_tracers(struct str typed, struct buf *out)
{
    size_t at = (size_t)(last_of(typed, ",") + 1);
    for (size_t i = 0; i < TRACERS; i++) {
        struct str rest = str_slice(typed, 0, at);
        bool listed = false;
        while (rest.data)
            listed |= str_eq(str_cut(&rest, ','), str_of(tracers[i].name));
        if (!listed)
            add_word(out, str_slice(typed, 0, at), str_of(tracers[i].name), "", typed);
    }
}

struct ids {
    struct buf *out;
    struct str typed;
};

static void add_id(void *user, struct str id, bool running)
{
    struct ids *ids = user;
    (void)running;
    add_word(ids->out, STR(""), id, "", ids->typed);
}

static int print_words(const struct options *o)
{
    const struct target_options targets = data_request_targets(o);
    const struct sonde_client_options options = {.timeout_ms = WORDS_TIMEOUT_MS};
    struct str kind = str_of(o->arguments[1]),
               typed = str_of(o->argument_count > 2 ? o->arguments[2] : "");
    struct data_request a = {.o = o};
    struct error ignored;
    struct buf out = {0};
    log_setup(LOG_ERROR, "sonde");
    if (str_eq(kind, STR("job"))) {
        struct ids ids = {&out, typed};
        target_each_id(&targets, add_id, &ids);
    } else if (str_eq(kind, STR("trace"))) {
        add_tracers(typed, &out);
    } else if (str_eq(kind, STR("expression")) &&
               client_open(NULL, 0, &targets, &options, &a.client, &ignored) == 0) {
        add_expressions(&a, typed, &out);
        sonde_client_close(a.client);
    }
    buf_free(&a.missing);
    return command_print(&out);
}

int command_completion(const struct options *o)
{
    struct buf out = {0};
    struct error e;
    if (o->argument_count > 1 && strcmp(o->arguments[0], "words") == 0)
        return print_words(o);
    if (o->argument_count > 1)
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "'%.80s' is one argument too many", o->arguments[1]), &e));
    if (!help_completion(&out, o->arguments[0])) {
        error_set(&e, -EINVAL, "no completion for '%.80s'; there is bash, zsh and fish",
                  o->arguments[0]);
        return command_failed(EXIT_USAGE, &e);
    }
    return command_print(&out);
}
