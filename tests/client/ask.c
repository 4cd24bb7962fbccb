// ask.c - src/client/http.h for tests/client/test_http.py: one question a line of arguments, what came of it as JSON lines.
//
//   ask URL|- TOKEN|- WHAT PATH [BODY]…     WHAT: get, post, twice (the second time in a child), cancel (at once), follow, follow3 (stops after three pieces)
#include "base/json_writer.h"
#include "client/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int pieces, most_pieces;

static int take(void *user, struct str data)
{
    buf_add_str(user, data);
    return ++pieces == most_pieces ? -EINTR : 0;
}

static void say(int rc, const struct http_answer *a, const struct error *e, const struct http_client *c)
{
    struct buf out = {0};
    struct json_writer w = json_to(&out);
    json_object(&w);
    json_key_string(&w, "rc", str_of(rc ? strerrorname_np(-rc) : ""));
    json_key_string(&w, "words", str_of(rc ? e->text : ""));
    json_key_i64(&w, "status", a->status);
    json_key_string(&w, "body", buf_str(&a->body));
    json_key_string(&w, "type", str_of(a->type));
    json_key_string(&w, "missing", str_of(a->missing ? a->missing : ""));
    json_key_string(&w, "url", str_of(c ? http_client_url(c) : ""));
    json_object_end(&w);
    puts(buf_cstr(&out));
    fflush(stdout);
    buf_free(&out);
}

static void ask(struct http_client *c, const char *path, const char *body, const atomic_bool *cancel)
{
    struct http_answer a = {0};
    struct error e = {0};
    const char *timeout = getenv("ASK_TIMEOUT_MS");
    int rc = http_ask(c, path, str_of(body), body ? "text/plain" : NULL, timeout ? atoi(timeout) : 0, cancel, &a, &e);
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
    const char *url = strcmp(argv[1], "-") ? argv[1] : NULL, *token = strcmp(argv[2], "-") ? argv[2] : NULL,
               *what = argv[3];
    const char *job = url && !strncmp(url, "job:", 4) ? url + 4 : NULL;
    int rc = job ? http_client_create_for_job(job, &c, &e) : http_client_create(url, token, &c, &e);
    if (rc) {
        say(rc, &a, &e, c);
        return 0;
    }
    static atomic_bool yes = true;
    if (!strcmp(what, "follow") || !strcmp(what, "follow3")) {
        most_pieces = strcmp(what, "follow") ? 3 : 0;
        rc = http_follow(c, argv[4], NULL, take, &a.body, &e);
        say(rc, &a, &e, c);
        http_answer_free(&a);
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
