// http_address.c - splits an address into its parts, and searches the jobs of this machine for its
// token.
#include "client/http_address.h"

#include "client/forwarded.h"
#include "http/tokens.h"
#include "launch/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool http_address_is_loopback(const char *url)
{
    static const char *const names[] = {"127.", "localhost", "[::1]"};
    const char *host = strstr(url, "://") + 3;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncasecmp(host, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int read_token(const char *path, char **out, struct error *e)
{
    char token[TOKEN_TEXT_MAX];
    if (token_read(path, false, token, e) < 0)
        return error_prefix(e, "the job's token");
    *out = strdup(token);
    explicit_bzero(token, sizeof token);
    return *out ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int take_job(struct http_address *a, const struct job *job, struct error *e)
{
    char path[FOLDER_PATH_MAX + 16];
    if (!job->url[0])
        return error_set(e, -ENOENT, "job %s has no HTTP server", job->id);
    snprintf(path, sizeof path, "%s/token", job->folder);
    free(a->url);
    a->url = strdup(job->url);
    if (!a->url)
        return error_set(e, -ENOMEM, "out of memory");
    a->of_job = true;
    if (!a->socket && http_address_is_loopback(a->url))
        a->socket = forwarded_socket(job->folder);
    free(a->certificate);
    a->certificate = job->certificate[0] ? strdup(job->certificate) : NULL;
    return a->token ? 0 : read_token(path, &a->token, e);
}

// Finds the token of the running job that has this address. It is not an error if there is none,
// because the server says whether it needs one.
static int find_token(struct http_address *a, struct error *e)
{
    const char *own = getenv("SONDE_URL"), *file = getenv("SONDE_TOKEN_FILE");
    char base[FOLDER_PATH_MAX];
    struct job *jobs;
    size_t count, i = 0;
    if (file && *file && (a->from_environment || (own && strcmp(own, a->url) == 0)))
        return read_token(file, &a->token, e);
    if (folder_base_path(getenv("SONDE_RUN_DIR"), base, NULL) < 0 ||
        job_list(base, false, &jobs, &count, NULL) < 0)
        return 0;
    while (i < count && strcmp(jobs[i].url, a->url) != 0)
        i++;
    int rc = i < count ? take_job(a, &jobs[i], e) : 0;
    job_list_free(jobs, count);
    return rc;
}

// Removes "?token=…" (and everything else after '?' or '#') from the address.
static int take_url(struct http_address *a, const char *url, struct error *e)
{
    size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                    : strncasecmp(url, "https://", 8) == 0 ? 8
                                                           : 0;
    size_t size = strcspn(url, "?#");
    if (!scheme || size == scheme)
        return error_set(e, -EINVAL,
                         "'%.200s' is not an address: http://HOST:PORT or https://HOST:PORT", url);
    struct str parameters = str_of(url + size + (url[size] == '?'));
    parameters = str_cut(&parameters, '#');
    while (parameters.data && !a->token) {
        struct str part = str_cut(&parameters, '&');
        if (str_starts(part, STR("token=")) && !(a->token = strndup(part.data + 6, part.size - 6)))
            return error_set(e, -ENOMEM, "out of memory");
    }
    while (size > scheme && url[size - 1] == '/')
        size--;
    a->url = strndup(url, size);
    return a->url ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int keep_token(struct http_address *a, const char *token, struct error *e)
{
    if (token && *token && !(a->token = strdup(token)))
        return error_set(e, -ENOMEM, "out of memory");
    a->token_given = a->token != NULL;
    return 0;
}

int http_address_of_url(struct http_address *a, const char *url, const char *token, struct error *e)
{
    const char *own = getenv("SONDE_URL");
    int rc = keep_token(a, token, e);
    if (rc)
        return rc;
    a->from_environment = !url;
    rc = take_url(a, url ? url : own ? own : "", e);
    a->token_given |= url && a->token;
    bool is_own = !url || (own && !rc && strcmp(own, a->url) == 0);
    if (!rc && !a->token && is_own && http_address_is_loopback(a->url))
        a->socket = forwarded_socket_of_environment();
    return rc || a->token || a->socket ? rc : find_token(a, e);
}

int http_address_of_job(struct http_address *a, const struct job *job, const char *token,
                        struct error *e)
{
    int rc = keep_token(a, token, e);
    return rc ? rc : take_job(a, job, e);
}

int http_address_copy(struct http_address *a, const struct http_address *other, struct error *e)
{
    *a = *other;
    a->url = strdup(other->url);
    a->token = other->token ? strdup(other->token) : NULL;
    a->certificate = other->certificate ? strdup(other->certificate) : NULL;
    a->socket = other->socket ? strdup(other->socket) : NULL;
    bool copied = a->url && (a->token || !other->token) &&
                  (a->certificate || !other->certificate) && (a->socket || !other->socket);
    return copied ? 0 : error_set(e, -ENOMEM, "out of memory");
}

void http_address_free(struct http_address *a)
{
    free(a->url);
    free(a->token);
    free(a->certificate);
    free(a->socket);
    *a = (struct http_address){0};
}
