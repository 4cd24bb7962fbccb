#include "agent/script_spec.h"

#include <errno.h>
#include <string.h>

static const double RATE_MIN_S = 0.05, RATE_MAX_S = 86400, TIMEOUT_DEFAULT_S = 10;

static bool take_seconds(struct str value, double least, double *out)
{
    return str_to_double(value, out) && *out >= least && *out <= RATE_MAX_S;
}

int script_parse(struct str line, struct script_spec *spec, struct error *e)
{
    *spec = (struct script_spec){.kind = "script"};
    struct str name = {0};
    for (;;) {
        struct str rest = line, word = str_word(&rest), value = word, key = str_cut(&value, '=');
        if (value.data && str_eq(key, STR("name"))) {
            name = value;
            if (name.size == 0 || name.size >= SCRIPT_NAME_SIZE)
                return error_set(e, -EINVAL, "the name of a script has 1 to %d bytes",
                                 SCRIPT_NAME_SIZE - 1);
        } else if (value.data && str_eq(key, STR("rate"))) {
            if (!take_seconds(value, RATE_MIN_S, &spec->rate_s))
                return error_set(e, -EINVAL, "a script's rate '%.*s' is not seconds from %g to %g",
                                 STR_ARG(value), RATE_MIN_S, RATE_MAX_S);
        } else if (value.data && str_eq(key, STR("timeout"))) {
            if (!take_seconds(value, RATE_MIN_S, &spec->timeout_s))
                return error_set(e, -EINVAL,
                                 "a script's time-out '%.*s' is not seconds from %g to %g",
                                 STR_ARG(value), RATE_MIN_S, RATE_MAX_S);
        } else {
            line = str_eq(word, STR("--")) ? rest : line;
            break;
        }
        line = rest;
    }
    spec->command = str_trim(line);
    if (spec->command.size == 0)
        return error_set(e, -EINVAL, "a script has no command");
    struct str rest = spec->command, first = str_word(&rest);
    name = name.size ? name
                     : str_slice(first, 0,
                                 first.size < SCRIPT_NAME_SIZE ? first.size : SCRIPT_NAME_SIZE - 1);
    // the name becomes the value of a tag, so check its characters
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("_./-", c);
        spec->name[i] = plain ? c : '_';
    }
    if (spec->rate_s > 0 && spec->timeout_s == 0)
        spec->timeout_s = spec->rate_s > TIMEOUT_DEFAULT_S ? spec->rate_s : TIMEOUT_DEFAULT_S;
    return 0;
}

int scripts_parse(const char *text, struct script_spec specs[SCRIPTS_MAX], size_t *count,
                  struct error *e)
{
    *count = 0;
    for (struct str rest = str_of(text); rest.data;) {
        struct str line = str_trim(str_cut(&rest, '\n'));
        if (line.size == 0)
            continue;
        if (*count == SCRIPTS_MAX)
            return error_set(e, -E2BIG, "more than %d scripts", SCRIPTS_MAX);
        int failed = script_parse(line, &specs[*count], e);
        if (failed)
            return failed;
        ++*count;
    }
    return 0;
}

int scripts_check(const char *text, struct error *e)
{
    struct script_spec specs[SCRIPTS_MAX];
    size_t count;
    return scripts_parse(text, specs, &count, e);
}
