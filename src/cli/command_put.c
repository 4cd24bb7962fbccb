// `sonde put`, `sonde annotate`: lines to the agent's socket, and the agent's response.
#include "cli/asking.h"
#include "cli/commands.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/exchange.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/storable_name.h"
#include "client/client.h"
#include "client/target.h"
#include "emit/segment.h"
#include "launch/parameters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PUT_REPLY_MAX = 64 * 1024,    // bytes of the agent's words that are kept
    PUT_ANSWER_TIMEOUT_MS = 10000 // for the agent to take the lines and say what it thinks
};

static int find_socket(const struct options *o, char out[FOLDER_SOCKET_MAX + 1], struct error *e)
{
    char path[FOLDER_PATH_MAX + 16];
    if (options_text(o, OPT_SOCKET) && o->value[OPT_JOB].source != FROM_FLAG) {
        snprintf(path, sizeof path, "%s", options_text(o, OPT_SOCKET));
    } else {
        struct job job;
        struct target_options where = asking_targets(o);
        int status = target_running(NULL, &where, &job, e);
        if (status < 0)
            return status;
        snprintf(path, sizeof path, "%s/agent.sock", job.folder);
        job_free(&job);
    }
    if (strlen(path) > FOLDER_SOCKET_MAX)
        return error_set(e, -ENAMETOOLONG, "the path of the socket is longer than %d bytes: %.60s…",
                         FOLDER_SOCKET_MAX, path);
    memcpy(out, path, strlen(path) + 1);
    return 0;
}

static bool folder_is_here(const char *socket_path)
{
    char folder[FOLDER_SOCKET_MAX + 1];
    snprintf(folder, sizeof folder, "%s", socket_path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    return !slash || slash == folder || access(folder, F_OK) == 0;
}

static int send_to(const char *path, struct str lines, int more, struct buf *reply, struct error *e)
{
    int fd = exchange_open(path);
    if (fd == -ENOENT && !folder_is_here(path))
        return error_set(e, fd,
                         "no agent answers at %s: its job is over, or the folder is not to be seen "
                         "from here. %s",
                         path, SEGMENT_FOLDER_HINT);
    if (fd < 0)
        return error_set(e, fd, "no agent answers at %s: %s", path,
                         fd == -ENOENT || fd == -ECONNREFUSED ? "its job is over" : strerror(-fd));
    struct exchange x = {.who = "the agent",
                         .text = lines,
                         .more = more,
                         .patience_ms = PUT_ANSWER_TIMEOUT_MS,
                         .answer = reply};
    int status = exchange_run(fd, &x, e);
    close(fd);
    return status;
}

// NAME VALUE KEY=VALUE… as one plain line. Blanks would make other words of them.
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

// What the options' agent says to the lines: EXIT_OK when it took all of them. Frees them.
static int send_lines(const struct options *o, struct buf *lines, int more)
{
    struct error e;
    char path[FOLDER_SOCKET_MAX + 1];
    struct buf reply = {.limit = PUT_REPLY_MAX};
    int status = find_socket(o, path, &e);
    if (status == 0)
        status = send_to(path, buf_str(lines), more, &reply, &e);
    // One line for each that was refused, in the agent's words.
    struct str rest = buf_str(&reply);
    while (rest.data && rest.size > 0) {
        struct str words = str_trim(str_cut(&rest, '\n'));
        if (words.size > 0)
            log_error("%.*s", STR_ARG(words));
    }
    int code = reply.size > 0 ? EXIT_FAILED : EXIT_OK;
    buf_free(lines);
    buf_free(&reply);
    return status < 0 ? command_failed(EXIT_FAILED, &e) : code;
}

// Whether the job is one that only its address leads to.
static bool is_elsewhere(const struct options *o)
{
    const char *url = getenv("SONDE_URL");
    return url && *url && !options_text(o, OPT_SOCKET) && o->value[OPT_JOB].source != FROM_FLAG;
}

// Over HTTP, to the job of SONDE_URL.
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

// `tags`: KEY=VALUE each, as the agent takes them.
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
                             "'%.80s' is no parameter: write KEY=VALUE, with a key of letters, "
                             "digits and _ . / : -, at most %d bytes",
                             o->arguments[i], PARAMETERS_KEY_MAX);
        if (value.size > PARAMETERS_VALUE_MAX)
            return error_set(e, -EINVAL, "the value of %.*s has more than %d bytes", STR_ARG(key),
                             PARAMETERS_VALUE_MAX);
    }
    return 0;
}

// As few annotations as have room for them all (launch/parameters.h).
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
