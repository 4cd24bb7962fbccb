// `sonde put`, `sonde annotate`: send lines to the agent's socket, and print its answer.
#include "cli/agent_lines.h"
#include "cli/commands.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/json_writer.h"
#include "base/storable_name.h"
#include "client/client.h"
#include "launch/parameters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PUT_ANSWER_TIMEOUT_MS = 10000 // timeout of a request over HTTP
};

// Joins NAME VALUE KEY=VALUE… to one line. Rejects blanks in arguments, because they would split
// words.
static int make_line(const struct options *o, struct buf *line, struct error *e)
{
    if (o->argument_count == 1)
        return error_set(e, -EINVAL, "a value is missing: sonde put %.80s VALUE", o->arguments[0]);
    for (int i = 0; i < o->argument_count; i++) {
        if (!o->arguments[i][0] || o->arguments[i][strcspn(o->arguments[i], " \t\r\n")])
            return error_set(e, -EINVAL, "argument %d is empty or has a blank in it", i + 1);
        buf_printf(line, "%s%s", i > 0 ? " " : "", o->arguments[i]);
    }
    buf_add_char(line, '\n');
    return 0;
}

// Sends the lines to the agent of the options, and frees them. Returns EXIT_OK if the agent has
// accepted all.
static int send_lines(const struct options *o, struct buf *lines, int more)
{
    struct error e;
    int refused = agent_lines_send(o, buf_str(lines), more, &e);
    buf_free(lines);
    if (refused < 0)
        return command_failed(EXIT_FAILED, &e);
    return refused ? EXIT_FAILED : EXIT_OK;
}

// True if only the address of the job is known.
static bool is_elsewhere(const struct options *o)
{
    const char *url = getenv("SONDE_URL");
    return url && *url && !options_text(o, OPT_SOCKET) && o->value[OPT_JOB].source != FROM_FLAG;
}

// Sends the annotation over HTTP, to the job of SONDE_URL.
static int post_annotation(const char *text, const char *const *tags, size_t count)
{
    struct error e;
    struct sonde_client *client;
    struct http_answer answer = {0};
    struct buf body = {0};
    struct json_writer w = json_to(&body);
    json_begin_object(&w);
    json_key_i64(&w, "startTime", clock_realtime_ns() / NS_PER_MS);
    json_key_string(&w, "description", str_of(text));
    json_key(&w, STR("custom"));
    json_begin_object(&w);
    for (size_t i = 0; i < count; i++) {
        struct str value = str_of(tags[i]), key = str_cut(&value, '=');
        json_key(&w, key);
        json_put_string(&w, value);
    }
    json_end_object(&w);
    json_end_object(&w);
    const struct sonde_client_options options = {.timeout_ms = PUT_ANSWER_TIMEOUT_MS};
    int status = client_open(NULL, 0, NULL, &options, &client, &e);
    if (status == 0) {
        status = client_ask(client, "/api/annotation", buf_str(&body), 0, &answer, &e);
        http_answer_free(&answer);
        sonde_client_close(client);
    }
    buf_free(&body);
    return status < 0 ? command_failed(EXIT_FAILED, &e) : EXIT_OK;
}

// Each of `tags` is KEY=VALUE, in the agent's syntax.
static int send_annotation(const struct options *o, const char *text, const char *const *tags,
                           size_t count)
{
    struct buf line = {0};
    if (is_elsewhere(o))
        return post_annotation(text, tags, count);
    buf_add_str(&line, STR("annotate"));
    for (size_t i = 0; i < count; i++) {
        struct str value = str_of(tags[i]), key = str_cut(&value, '=');
        buf_printf(&line, " %.*s=", STR_ARG(key));
        escape_word(&line, value);
    }
    buf_add_str(&line, STR(" -- "));
    escape_word(&line, str_of(text));
    buf_add_char(&line, '\n');
    return send_lines(o, &line, -1);
}

// ---------------------------------------------------------------- parameters

static int check_parameters(const struct options *o, struct error *e)
{
    if (o->argument_count == 0)
        return error_set(e, -EINVAL, "a parameter is missing: sonde put --parameters KEY=VALUE");
    for (int i = 0; i < o->argument_count; i++) {
        struct str value = str_of(o->arguments[i]), key = str_cut(&value, '=');
        if (!value.data || !storable_name_is(key, PARAMETERS_KEY_MAX))
            return error_set(e, -EINVAL,
                             "'%.80s' is not a parameter: write KEY=VALUE, with a key of letters, "
                             "digits and _ . / : -, at most %d bytes",
                             o->arguments[i], PARAMETERS_KEY_MAX);
        if (value.size > PARAMETERS_VALUE_MAX)
            return error_set(e, -EINVAL, "the value of %.*s has more than %d bytes", STR_ARG(key),
                             PARAMETERS_VALUE_MAX);
    }
    return 0;
}

// Writes the parameters into as few annotations as possible (launch/parameters.h).
static int put_parameters(const struct options *o)
{
    static const char *const tag = PARAMETERS_TAG;
    struct buf text = {0};
    struct error e;
    int code = EXIT_OK;
    if (check_parameters(o, &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    for (int i = 0; i < o->argument_count && code == EXIT_OK; i++) {
        struct str value = str_of(o->arguments[i]), key = str_cut(&value, '=');
        struct buf word = {0};
        buf_printf(&word, "%.*s=", STR_ARG(key));
        escape_word(&word, value);
        if (text.size && text.size + 1 + word.size > STORE_TEXT_MAX) {
            code = send_annotation(o, buf_cstr(&text), &tag, 1);
            text.size = 0;
        }
        buf_printf(&text, "%s%s", text.size ? " " : "", buf_cstr(&word));
        buf_free(&word);
    }
    if (code == EXIT_OK)
        code = send_annotation(o, buf_cstr(&text), &tag, 1);
    buf_free(&text);
    return code;
}

// ---------------------------------------------------------------- the commands

int command_put(const struct options *o)
{
    struct error e;
    struct buf line = {0};
    if (options_flag(o, OPT_PARAMETERS))
        return put_parameters(o);
    if (o->argument_count > 0 && make_line(o, &line, &e) < 0) {
        buf_free(&line);
        return command_failed(EXIT_USAGE, &e);
    }
    return send_lines(o, &line, o->argument_count == 0 ? STDIN_FILENO : -1);
}

int command_annotate(const struct options *o)
{
    struct error e;
    for (int i = 1; i < o->argument_count; i++) {
        const char *tag = o->arguments[i];
        if (*tag && *tag != '=' && tag[strcspn(tag, " \t\r\n=")] == '=')
            continue;
        error_set(&e, -EINVAL, "'%.80s' is not a tag: sonde annotate TEXT KEY=VALUE", tag);
        return command_failed(EXIT_USAGE, &e);
    }
    return send_annotation(o, o->arguments[0], (const char *const *)o->arguments + 1,
                           (size_t)o->argument_count - 1);
}
