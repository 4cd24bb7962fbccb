#include "cli/run_facts.h"

#include "base/str.h"

#include <stdio.h>

static void set_text(json_t *to, const char *prefix, const char *key, const char *text)
{
    struct buf name = {0};
    buf_printf(&name, "%s%s%s", prefix, *prefix ? "." : "", key);
    if (text && *text)
        json_object_set_new(to, buf_cstr(&name), json_string(text));
    buf_free(&name);
}

// Adds a scalar, a list or an object within "about".
static void flatten(json_t *to, const char *prefix, const char *key, const json_t *value)
{
    struct buf text = {0};
    if (json_is_object(value)) {
        const char *inner;
        json_t *member;
        buf_printf(&text, "%s%s%s", prefix, *prefix ? "." : "", key);
        json_object_foreach((json_t *)(uintptr_t)value, inner, member)
        {
            flatten(to, buf_cstr(&text), inner, member);
        }
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            buf_printf(&text, "%s%s", i ? ", " : "",
                       json_string_value(json_array_get(value, i)) ?: "");
        set_text(to, prefix, key, buf_cstr(&text));
    } else if (json_is_integer(value)) {
        buf_printf(&text, "%lld", (long long)json_integer_value(value));
        set_text(to, prefix, key, buf_cstr(&text));
    } else {
        set_text(to, prefix, key, json_string_value(value));
    }
    buf_free(&text);
}

static void add_about(json_t *to, const json_t *about)
{
    // "name" and "note" are left out, because their purpose is to distinguish runs.
    static const char *const members[] = {"config",  "tags",        "git",     "nodes",
                                          "machine", "environment", "modules", "directory"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        flatten(to, "", members[i], json_object_get(about, members[i]));
}

json_t *run_facts_of(const json_t *about)
{
    json_t *out = json_object();
    if (out)
        add_about(out, about);
    return out;
}

json_t *run_facts(const struct job *job)
{
    char number[32];
    json_t *out = json_object();
    if (!out)
        return NULL;
    set_text(out, "", "command", job->command);
    set_text(out, "", "host", job->host);
    snprintf(number, sizeof number, "%d", job->level);
    set_text(out, "", "level", number);
    if (job->end_ns) {
        snprintf(number, sizeof number, "%d", job->exit_code);
        set_text(out, "", "exit", number);
    }
    add_about(out, job->about);
    return out;
}

void run_facts_join(json_t *side, const json_t *run)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)run, key, value)
    {
        const char *had = json_string_value(json_object_get(side, key));
        const char *text = json_string_value(value);
        struct str rest = str_of(had);
        bool known = false;
        while (rest.data && !known) {
            ptrdiff_t at = str_find(rest, STR(" | "));
            struct str one = at < 0 ? rest : str_slice(rest, 0, (size_t)at);
            known = str_eq(one, str_of(text));
            rest = at < 0 ? (struct str){0} : str_slice(rest, (size_t)at + 3, rest.size);
        }
        if (!had)
            json_object_set(side, key, value);
        else if (!known)
            json_object_set_new(side, key, json_sprintf("%s | %s", had, text));
    }
}
