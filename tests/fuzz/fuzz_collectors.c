// Requests of collectors. The body of an HTTP request becomes one line, from which the agent reads
// the same request. Random bytes as such a line, and as scripts, are parsed or refused with a
// message.
#include "agent/collectors.h"
#include "faces/native/handlers.h"
#include "http/json_body.h"
#include "wire/collector_line.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *asked; // the line of the request

static void on_line(void *user, struct str wanted)
{
    (void)user;
    if (asked || wanted.size > COLLECTOR_LINE_MAX || memchr(wanted.data, '\n', wanted.size) ||
        memchr(wanted.data, 0, wanted.size))
        abort();
    asked = strndup(wanted.data, wanted.size);
}

static void check_spec(const struct script_spec *s)
{
    if (!s->command.size || s->rate_s < 0 || s->timeout_s < 0 ||
        strlen(s->name) >= SCRIPT_NAME_SIZE)
        abort();
}

static struct str parameter(const struct request *r, const char *name)
{
    struct str value = STR("");
    request_parameter(r, name, &value);
    return value;
}

static void check_line(const struct request *r)
{
    struct str command = str_trim(parameter(r, "command")), rest = str_of(asked);
    struct script_spec s;
    struct error e;
    bool per_gpu;
    if (!command.size) { // a request to stop the collector
        if (!str_eq(rest, parameter(r, "name")))
            abort();
        return;
    }
    if (collector_parse(asked, &s, &per_gpu, &e) != 0)
        abort();
    check_spec(&s);
    if (!str_eq(str_of(s.name), parameter(r, "name")) || !str_eq(s.command, command) ||
        !str_eq(s.input, parameter(r, "input")) || per_gpu != request_flag(r, "per_gpu") ||
        (s.rate_s > 0) != request_flag(r, "rate"))
        abort();
}

static void take_body(struct str body)
{
    static const char address[] = "/sonde/v1/collectors";
    struct service service = {.collector = on_line};
    struct request r = {.method = METHOD_POST, .body = body};
    struct answer a;
    asked = NULL;
    answer_begin(&a, 1 << 20);
    if (request_parse_target(&r, STR(address), NULL))
        abort();
    native_collectors(&service, &r, &a);
    if ((a.status == 200) != (asked != NULL) || !a.body.size)
        abort();
    if (asked)
        check_line(&r);
    free(asked);
    answer_free(&a);
    request_free(&r);
}

static void take_line(struct str bytes)
{
    char *line = strndup(bytes.data, bytes.size);
    struct script_spec s;
    struct error e = {0};
    bool per_gpu;
    if (collector_parse(line, &s, &per_gpu, &e) == 0)
        check_spec(&s);
    else if (!e.text[0])
        abort();
    e = (struct error){0};
    if (scripts_check(line, &e) && !e.text[0])
        abort();
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    if (size && data[0] == '{')
        take_body(bytes);
    else if (size)
        take_line(bytes);
    return 0;
}
