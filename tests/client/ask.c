// ask.c - sends requests with src/client/http.h, and prints the results as JSON lines, for
// tests/client/test_http.py.
//
//   ask URL|- TOKEN|- WHAT PATH [BODY]…
//
//   WHAT   get, post
//          twice     sends two requests, the second one in a child process
//          cancel    sends a request and cancels it at once
//          follow    reads a stream; follow3 stops after three chunks
//          quiet     reads a stream until no data arrive
#include "base/json_writer.h"
#include "client/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAP_MS = 50 };

// Reads at most this many chunks of a stream; with 0, to its end. With `quiet`, it stops when no
// data arrive.
static int follow(struct http_client *c, const char *path, int most, bool quiet, struct buf *out,
                  struct error *e)
{
    struct http_stream *s;
    int rc = http_stream_open(c, path, &s, e), pieces = 0;
    while (rc == 0 && (!most || pieces < most)) {
        rc = http_stream_next(s, NAP_MS, out, e);
        pieces += rc == 0;
        rc = rc == -EAGAIN && !quiet ? 0 : rc;
    }
    http_stream_close(s);
    return rc;
}

static void say(int rc, const struct http_answer *a, const struct error *e,
                const struct http_client *c)
{
    struct buf out = {0};
    struct json_writer w = json_to(&out);
    json_begin_object(&w);
    json_key_i64(&w, "errno", -rc);
    json_key_string(&w, "words", str_of(rc ? e->text : ""));
    json_key_i64(&w, "status", a->status);
    json_key_string(&w, "body", buf_str(&a->body));
    json_key_string(&w, "type", str_of(a->type));
    json_key_string(&w, "missing", str_of(a->missing ? a->missing : ""));
    json_key_string(&w, "url", str_of(c ? http_client_url(c) : ""));
    json_end_object(&w);
    puts(buf_cstr(&out));
    fflush(stdout);
    buf_free(&out);
}

static void ask(struct http_client *c, const char *path, const char *body,
                const atomic_bool *cancel)
{
    struct http_answer a = {0};
    struct error e = {0};
    const char *timeout = getenv("ASK_TIMEOUT_MS");
    int rc = http_ask(c, path, str_of(body), body ? "text/plain" : NULL,
                      timeout ? atoi(timeout) : 0, cancel, &a, &e);
    say(rc, &a, &e, c);
    http_answer_free(&a);
}

int main(int argc, char **argv)
{
    struct http_client *c = NULL;
    struct http_answer a = {0};
    struct error e = {0};
    if (argc < 5)
        return 2;
    const char *url = strcmp(argv[1], "-") ? argv[1] : NULL,
               *token = strcmp(argv[2], "-") ? argv[2] : NULL, *what = argv[3];
    const char *job = url && !strncmp(url, "job:", 4) ? url + 4 : NULL;
    struct target target = {0};
    int rc = url && !job ? http_client_create(url, token, &c, &e)
                         : target_find(job, token, NULL, &target, &e);
    if (!url || job)
        c = target.client;
    if (rc) {
        say(rc, &a, &e, c);
        return 0;
    }
    static atomic_bool yes = true;
    if (!strcmp(what, "follow") || !strcmp(what, "follow3") || !strcmp(what, "quiet")) {
        rc = follow(c, argv[4], strcmp(what, "follow3") ? 0 : 3, !strcmp(what, "quiet"), &a.body,
                    &e);
        say(rc, &a, &e, NULL);
        http_answer_free(&a);
        return 0;
    } else {
        ask(c, argv[4], argc > 5 ? argv[5] : NULL, strcmp(what, "cancel") ? NULL : &yes);
    }
    if (!strcmp(what, "twice")) {
        pid_t child = fork();
        ask(c, argv[4], NULL, NULL);
        http_client_destroy(c);
        if (!child)
            return 0;
        waitpid(child, NULL, 0);
    } else {
        http_client_destroy(c);
    }
    return 0;
}
