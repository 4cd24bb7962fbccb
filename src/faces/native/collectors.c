// collectors.c - /sonde/v1/collectors: starts a command on every node or, without a command, stops
// it.
//
// A client with access can run programs as the job's user: ACCESS_HERE (routes.h). The launcher
// receives the command (wire/collector_line.h); this handler only checks that it is one line of
// that form.
#include "faces/native/handlers.h"
#include "http/json_body.h"
#include "wire/collector_line.h"

#include <ctype.h>
#include <errno.h>

static int check_name(struct str name, struct error *e)
{
    if (!name.size || name.size > COLLECTOR_NAME_MAX)
        return error_set(e, -EINVAL, "a collector needs a name of up to %d bytes",
                         COLLECTOR_NAME_MAX);
    for (size_t i = 0; i < name.size; i++)
        if (!isalnum((unsigned char)name.data[i]) && !strchr("_./-", name.data[i]))
            return error_set(e, -EINVAL,
                             "the name of a collector may hold only letters, digits and _ . / -");
    return 0;
}

static int check_command(struct str command, struct error *e)
{
    if (command.size > COLLECTOR_COMMAND_MAX)
        return error_set(e, -E2BIG, "a collector's command has more than %d bytes",
                         COLLECTOR_COMMAND_MAX);
    for (size_t i = 0; i < command.size; i++)
        if ((unsigned char)command.data[i] < ' ')
            return error_set(e, -EINVAL,
                             "a collector's command has to be one line without control characters");
    return 0;
}

static int check_input(struct str input, struct error *e)
{
    if (input.size > COLLECTOR_INPUT_MAX)
        return error_set(e, -E2BIG, "a collector's input has more than %d bytes",
                         COLLECTOR_INPUT_MAX);
    for (size_t i = 0; i < input.size; i++)
        if (!isalnum((unsigned char)input.data[i]) && !strchr("+/=-_", input.data[i]))
            return error_set(e, -EINVAL,
                             "a collector's input has to be a word as base64 makes them");
    return 0;
}

static int add_seconds(struct request *r, const char *key, struct buf *line, struct error *e)
{
    struct str text;
    double seconds;
    if (!request_parameter(r, key, &text))
        return 0;
    if (!str_to_double(text, &seconds) ||
        !(seconds >= COLLECTOR_SECONDS_MIN && seconds <= COLLECTOR_SECONDS_MAX))
        return error_set(e, -EINVAL, "%s has to be seconds from %g to %g", key,
                         COLLECTOR_SECONDS_MIN, COLLECTOR_SECONDS_MAX);
    buf_printf(line, " %s=%.17g", key, seconds);
    return 0;
}

static int make_line(struct request *r, struct str name, struct buf *line, struct error *e)
{
    struct str command = STR(""), input = STR("");
    request_parameter(r, "command", &command);
    request_parameter(r, "input", &input);
    int rc = check_command(command, e);
    if (!rc)
        rc = check_input(input, e);
    if (rc)
        return rc;
    buf_add_str(line, name);
    if (!str_trim(command).size)
        return 0;
    if (request_flag(r, "per_gpu"))
        buf_add_str(line, STR(" per_gpu"));
    if (input.size)
        buf_printf(line, " input=%.*s", STR_ARG(input));
    rc = add_seconds(r, "rate", line, e);
    if (!rc)
        rc = add_seconds(r, "timeout", line, e);
    // protects any first word of the command
    buf_printf(line, " -- %.*s", STR_ARG(str_trim(command)));
    return rc ? rc : line->failed ? error_set(e, -ENOMEM, "no memory for the collector") : 0;
}

void native_collectors(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct str name = STR("");
    struct buf line = {.limit = COLLECTOR_LINE_MAX};
    if (!service->collector) {
        answer_error(a, 501, "no collectors can be started here",
                     "There is no launcher: sonde run starts them.");
        return;
    }
    int rc = json_body_take(r, &e);
    request_parameter(r, "name", &name);
    if (!rc)
        rc = check_name(name, &e);
    if (!rc)
        rc = make_line(r, name, &line, &e);
    if (rc) {
        answer_failure(a, &e);
    } else {
        service->collector(service->collector_user, buf_str(&line));
        struct json_writer w = json_to(&a->body);
        json_begin_object(&w);
        json_key_string(&w, "asked", STR("collector"));
        json_key_string(&w, "name", name);
        json_end_object(&w);
    }
    buf_free(&line);
}
