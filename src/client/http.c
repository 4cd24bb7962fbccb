#include "client/http.h"

#include "base/clock.h"
#include "client/authorities.h"
#include "client/curl.h"
#include "client/http_address.h"
#include "client/proved.h"
#include "wire/forwarder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum {
    WORDS_MAX = 64 * 1024, // maximum bytes of an error response that are kept
};

struct http_client {
    struct http_address at;
    pid_t pid; // process that opened the connection
    CURL *easy;
    CURLM *multi;
    bool (*stop)(void *user);
    void *stop_user;
};

// ---------------------------------------------------------------- create, destroy

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

// Makes a client without an address.
static int make(struct http_client **out, struct error *e)
{
    *out = NULL;
    int rc = curl_load(e);
    if (!rc && !(*out = calloc(1, sizeof **out)))
        rc = no_memory(e);
    return rc;
}

static int done(struct http_client *c, int rc, struct http_client **out)
{
    if (rc) {
        http_client_destroy(c);
        c = NULL;
    }
    *out = c;
    return rc;
}

int http_client_create(const char *url, const char *token, struct http_client **out,
                       struct error *e)
{
    struct http_client *c;
    int rc = make(&c, e);
    return done(c, rc ? rc : http_address_of_url(&c->at, url, token, e), out);
}

int http_client_create_for(const struct job *job, const char *token, struct http_client **out,
                           struct error *e)
{
    struct http_client *c;
    int rc = make(&c, e);
    return done(c, rc ? rc : http_address_of_job(&c->at, job, token, e), out);
}

int http_client_create_like(const struct http_client *other, struct http_client **out,
                            struct error *e)
{
    struct http_client *c;
    int rc = make(&c, e);
    return done(c, rc ? rc : http_address_copy(&c->at, &other->at, e), out);
}

void http_client_on_look(struct http_client *c, bool (*stop)(void *user), void *user)
{
    c->stop = stop;
    c->stop_user = user;
}

void http_client_destroy(struct http_client *c)
{
    if (!c)
        return;
    if (c->pid == getpid()) {
        curl.easy_cleanup(c->easy);
        curl.multi_cleanup(c->multi);
    }
    http_address_free(&c->at);
    free(c);
}

const char *http_client_url(const struct http_client *c)
{
    return c->at.url;
}

// ---------------------------------------------------------------- a request

struct transfer {
    struct http_client *client;
    struct http_answer *answer;
    struct buf *body; // of the response; in a stream, the caller's buffer
    bool stream;
    int stopped; // -EFBIG or -ENOMEM, if the callback has stopped the transfer
    int64_t connect_by_ns;
    struct error unproved; // why the client does not send the token; code 0: it may send it
    char words[CURL_ERROR_SIZE];
};

static size_t on_body(char *data, size_t one, size_t size, void *user)
{
    (void)one; // the size of an element, always 1
    struct transfer *t = user;
    long status = 0;
    curl.easy_getinfo(t->client->easy, CURLINFO_RESPONSE_CODE, &status);
    struct buf *words = &t->answer->body;
    if (status < 200 || status > 299) {
        buf_add(words, data, words->size < WORDS_MAX ? size : 0);
    } else {
        buf_add(t->body, data, size);
        t->stopped = !t->body->failed                         ? 0
                     : t->body->size + size > HTTP_ANSWER_MAX ? -EFBIG
                                                              : -ENOMEM;
    }
    return t->stopped ? 0 : size;
}

static size_t on_header(char *data, size_t one, size_t size, void *user)
{
    (void)one;
    struct transfer *t = user;
    struct str value = {data, size}, name = str_cut(&value, ':');
    if (!value.data)
        return size;
    value = str_trim(value);
    uint64_t length;
    if (str_eq_nocase(name, STR("content-length")) && !t->stream && str_to_u64(value, &length) &&
        length < HTTP_ANSWER_MAX) {
        buf_reserve(t->body, (size_t)length);
    } else if (str_eq_nocase(name, STR("content-type"))) {
        snprintf(t->answer->type, sizeof t->answer->type, "%.*s", STR_ARG(value));
    } else if (str_eq_nocase(name, STR("x-sonde-missing")) && value.size > 0) {
        free(t->answer->missing);
        t->answer->missing = strndup(value.data, value.size);
    }
    return size;
}

// Called when libcurl needs a connection. Makes a connection to a server that has proved that it
// knows the token, so that libcurl may send the token.
static curl_socket_t on_open(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct transfer *t = user;
    struct error e;
    int fd = proved_connect(&address->addr, address->addrlen, str_of(t->client->at.token),
                            !t->client->at.token_given, t->connect_by_ns, &e);
    if (fd >= 0)
        return fd;
    if (e.code == -EACCES || e.code == -ETIMEDOUT)
        t->unproved = e;
    snprintf(t->words, sizeof t->words, "%.*s", (int)sizeof t->words - 1, e.text);
    return CURL_SOCKET_BAD;
}

static int on_opened(void *user, curl_socket_t fd, curlsocktype purpose)
{
    (void)user;
    (void)fd;
    (void)purpose;
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

// Opens a connection. A child process makes its own, because its requests would disturb the
// parent's.
static int open_connection(struct http_client *c, struct error *e)
{
    if (c->easy && c->pid == getpid())
        return 0;
    c->pid = getpid();
    c->easy = curl.easy_init();
    c->multi = curl.multi_init();
    return c->easy && c->multi ? 0 : error_set(e, -ENOMEM, "cannot start libcurl");
}

static int set_up(struct transfer *t, const char *path, struct str body, const char *type,
                  int timeout_ms, struct curl_slist **headers, struct error *e)
{
    struct http_client *c = t->client;
    struct buf line = {0};
    int rc = open_connection(c, e);
    if (rc)
        return rc;
    curl.easy_reset(c->easy);
    buf_printf(&line, "%s%s", c->at.url, path);
    curl.easy_setopt(c->easy, CURLOPT_URL, buf_cstr(&line));
    line.size = 0;
    // send the body without waiting for a response to the headers
    *headers = curl.slist_append(NULL, "Expect:");
    if (c->at.token && *c->at.token && !c->at.socket) {
        buf_printf(&line, "Authorization: Bearer %s", c->at.token);
        *headers = curl.slist_append(*headers, buf_cstr(&line));
        line.size = 0;
    }
    if (body.data) {
        buf_printf(&line, "Content-Type: %s", type ? type : "application/json");
        *headers = curl.slist_append(*headers, buf_cstr(&line));
        curl.easy_setopt(c->easy, CURLOPT_POST, 1L);
        curl.easy_setopt(c->easy, CURLOPT_POSTFIELDS, body.data);
        curl.easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
    }
    bool failed = line.failed || !*headers;
    buf_free(&line);
    if (failed)
        return no_memory(e);
    const char *authorities = getenv("SONDE_CA");
    if (!authorities || !*authorities)
        authorities = c->at.certificate ? c->at.certificate : getenv("CURL_CA_BUNDLE");
    if (!authorities || !*authorities)
        authorities = authorities_default();
    if (authorities && *authorities)
        curl.easy_setopt(c->easy, CURLOPT_CAINFO, authorities);
    curl.easy_setopt(c->easy, CURLOPT_HTTPHEADER, *headers);
    curl.easy_setopt(c->easy, CURLOPT_PROXY, "");
    curl.easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(c->easy, CURLOPT_USERAGENT, "sonde/" SONDE_VERSION);
    curl.easy_setopt(c->easy, CURLOPT_ERRORBUFFER, t->words);
    curl.easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(c->easy, CURLOPT_WRITEDATA, t);
    curl.easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl.easy_setopt(c->easy, CURLOPT_HEADERDATA, t);
    curl.easy_setopt(c->easy, CURLOPT_BUFFERSIZE, 512L * 1024);
    long whole_ms = timeout_ms > 0 ? timeout_ms : HTTP_TIMEOUT_DEFAULT_MS;
    curl.easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     whole_ms < HTTP_CONNECT_TIMEOUT_MS ? whole_ms : (long)HTTP_CONNECT_TIMEOUT_MS);
    if (c->at.socket) {
        curl.easy_setopt(c->easy, CURLOPT_UNIX_SOCKET_PATH, c->at.socket);
    } else if (c->at.token && *c->at.token &&
               strncasecmp(c->at.url, "http://", strlen("http://")) == 0) {
        int64_t patience_ms =
            whole_ms < HTTP_CONNECT_TIMEOUT_MS ? whole_ms : HTTP_CONNECT_TIMEOUT_MS;
        t->connect_by_ns = clock_monotonic_ns() + patience_ms * NS_PER_MS;
        curl.easy_setopt(c->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
        curl.easy_setopt(c->easy, CURLOPT_OPENSOCKETDATA, t);
        curl.easy_setopt(c->easy, CURLOPT_SOCKOPTFUNCTION, on_opened);
    }
    if (t->stream) {
        curl.easy_setopt(c->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl.easy_setopt(c->easy, CURLOPT_LOW_SPEED_TIME, (long)HTTP_SILENCE_MS / 1000);
    } else {
        curl.easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, whole_ms);
    }
    return 0;
}

static bool cancelled(const struct http_client *c, const atomic_bool *cancel)
{
    return (cancel && atomic_load(cancel)) || (c->stop && c->stop(c->stop_user));
}

// Returns the result of a transfer that has ended.
static CURLcode ending(struct http_client *c)
{
    CURLcode code = CURLE_OUT_OF_MEMORY;
    int left;
    for (const CURLMsg *m; (m = curl.multi_info_read(c->multi, &left));)
        if (m->msg == CURLMSG_DONE)
            code = m->data.result;
    return code;
}

// Runs a transfer until it has ended (with CURLE_OK or an error) or is cancelled.
static int run(struct http_client *c, const atomic_bool *cancel, CURLcode *out)
{
    int running = 1;
    bool stopped = false;
    *out = CURLE_OUT_OF_MEMORY;
    if (curl.multi_add_handle(c->multi, c->easy) != CURLM_OK)
        return 0;
    while (running && !(stopped = cancelled(c, cancel)))
        if (curl.multi_perform(c->multi, &running) != CURLM_OK ||
            (running && curl.multi_poll(c->multi, NULL, 0, HTTP_LOOK_MS, NULL) != CURLM_OK))
            break;
    if (!running)
        *out = ending(c);
    curl.multi_remove_handle(c->multi, c->easy);
    return stopped ? -ECANCELED : 0;
}

// ---------------------------------------------------------------- errors

static int not_reached(const struct http_client *c, int code, const char *why, struct error *e)
{
    const char *nodes = getenv("SONDE_NODELIST");
    if (c->at.socket)
        return error_set(e, code,
                         "the relay of this node, which leads to %s on the job's first node, does "
                         "not answer at %s: %s",
                         c->at.url, c->at.socket, why);
    bool elsewhere = http_address_is_loopback(c->at.url) &&
                     (c->at.from_environment ? nodes && strpbrk(nodes, ",[") : c->at.of_job);
    return error_set(
        e, code, "no server answers at %s: %s%s", c->at.url, why,
        elsewhere
            ? "; if this is not the job's first node: the job's run folder here (SONDE_JOB in "
              "SONDE_RUN_DIR) has no " WIRE_FORWARDER_SOCKET ", which would lead there"
            : "");
}

static int transport_failed(const struct transfer *t, CURLcode code, struct error *e)
{
    const struct http_client *c = t->client;
    const char *words = t->words[0] ? t->words : curl.easy_strerror(code);
    if (t->unproved.code)
        return error_set(e, t->unproved.code, "%s", t->unproved.text);
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        return not_reached(c, -ECONNREFUSED, words, e);
    case CURLE_COULDNT_RESOLVE_HOST:
        return not_reached(c, -EHOSTUNREACH, words, e);
    case CURLE_OPERATION_TIMEDOUT:
        return error_set(e, -ETIMEDOUT, "%s does not answer in time: %s", c->at.url, words);
    case CURLE_PEER_FAILED_VERIFICATION:
        return error_set(
            e, -EKEYREJECTED,
            "%s: %s; SONDE_CA names a file with certificates to trust, the job's own for one",
            c->at.url, words);
    case CURLE_SSL_CACERT_BADFILE:
        return error_set(e, -EKEYREJECTED, "the certificates to trust cannot be read: %s", words);
    case CURLE_OUT_OF_MEMORY:
        return no_memory(e);
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
        return error_set(e, -ECONNRESET, "%s ended the connection in the middle of its answer: %s",
                         c->at.url, words);
    default:
        return error_set(e, -EPROTO, "%s: %s", c->at.url, words);
    }
}

// Returns 0, or converts the error of the transfer.
static int outcome(struct transfer *t, CURLcode code, struct error *e)
{
    long status = 0;
    curl.easy_getinfo(t->client->easy, CURLINFO_RESPONSE_CODE, &status);
    t->answer->status = (int)status;
    if (t->stopped)
        return t->stopped == -ENOMEM
                   ? no_memory(e)
                   : error_set(e, -EFBIG, "the answer is larger than %d bytes", HTTP_ANSWER_MAX);
    if (code != CURLE_OK)
        return transport_failed(t, code, e);
    return status < 200 || status > 299 ? http_refused(t->answer, t->client->at.url, e) : 0;
}

int http_ask(struct http_client *c, const char *path, struct str body, const char *type,
             int timeout_ms, const atomic_bool *cancel, struct http_answer *out, struct error *e)
{
    struct transfer t = {.client = c, .answer = out, .body = &out->body};
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_OK;
    *out = (struct http_answer){.body = {.limit = HTTP_ANSWER_MAX}};
    int rc = set_up(&t, path, body, type, timeout_ms, &headers, e);
    if (!rc) {
        rc = run(c, cancel, &code);
        rc = rc ? error_set(e, rc, "the request to %s was cancelled", c->at.url)
                : outcome(&t, code, e);
        curl.easy_setopt(c->easy, CURLOPT_HTTPHEADER, NULL);
    }
    curl.slist_free_all(headers);
    if (rc) {
        int status = out->status;
        http_answer_free(out);
        out->status = status;
    }
    return rc;
}

// ---------------------------------------------------------------- a stream

struct http_stream {
    struct transfer transfer;
    struct http_answer answer; // message of a refused stream
    struct curl_slist *headers;
};

void http_stream_close(struct http_stream *s)
{
    if (!s)
        return;
    struct http_client *c = s->transfer.client;
    if (c->multi && c->pid == getpid())
        curl.multi_remove_handle(c->multi, c->easy);
    http_client_destroy(c);
    curl.slist_free_all(s->headers);
    http_answer_free(&s->answer);
    free(s);
}

int http_stream_open(struct http_client *c, const char *path, struct http_stream **out,
                     struct error *e)
{
    struct http_stream *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) {
        http_client_destroy(c);
        return no_memory(e);
    }
    s->transfer = (struct transfer){.client = c, .answer = &s->answer, .stream = true};
    int rc = set_up(&s->transfer, path, (struct str){0}, NULL, 0, &s->headers, e);
    if (!rc && curl.multi_add_handle(c->multi, c->easy) != CURLM_OK)
        rc = no_memory(e);
    if (rc)
        http_stream_close(s);
    else
        *out = s;
    return rc;
}

int http_stream_next(struct http_stream *s, int timeout_ms, struct buf *out, struct error *e)
{
    struct http_client *c = s->transfer.client;
    const size_t before = out->size;
    const int64_t end_ns = clock_monotonic_ns() + (int64_t)timeout_ms * NS_PER_MS;
    int running = 1;
    s->transfer.body = out;
    while (true) {
        if (curl.multi_perform(c->multi, &running) != CURLM_OK)
            return no_memory(e);
        if (out->size > before)
            return 0;
        if (!running) {
            int rc = outcome(&s->transfer, ending(c), e);
            return rc ? rc : error_set(e, -ECONNRESET, "%s has ended the stream", c->at.url);
        }
        if (cancelled(c, NULL))
            return error_set(e, -ECANCELED, "the stream from %s was cancelled", c->at.url);
        int64_t left_ms = (end_ns - clock_monotonic_ns() + NS_PER_MS - 1) / NS_PER_MS;
        if (left_ms <= 0)
            return -EAGAIN;
        if (curl.multi_poll(c->multi, NULL, 0, left_ms < HTTP_LOOK_MS ? (int)left_ms : HTTP_LOOK_MS,
                            NULL) != CURLM_OK)
            return no_memory(e);
    }
}
