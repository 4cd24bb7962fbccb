#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/open_page.h"
#include "cli/serve.h"

#include "base/log.h"
#include "client/forwarded.h"
#include "client/http.h"
#include "client/target.h"
#include "http/tokens.h"
#include "launch/tunnel.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STATUS_TIMEOUT_MS = 5000 };

// Opens the address. If the browser is on another machine, prints the address and the ssh command
// instead. `here`: the server listens on this node.
static void show(const struct options *o, const struct job *job, bool here, const char *url,
                 const char *folder, char file[OPEN_PAGE_PATH_MAX])
{
    char line[TUNNEL_LINE_MAX];
    bool loopback = tunnel_line(job, line);
    printf("%s\n", url);
    if (loopback && (!here || tunnel_needed()))
        printf("on another machine, there first: %s\n", line);
    fflush(stdout);
    file[0] = 0;
    if (!options_flag(o, OPT_NO_BROWSER) && (here || !loopback))
        open_page(url, folder, file);
}

// ---- a running job

// Finds the first node's name. On another node, the job's folder names that node, but the server
// knows the first node.
static int find_first_node(struct job *job, struct error *e)
{
    struct http_client *client = NULL;
    struct http_answer answer = {0};
    int rc = http_client_create_for(job, NULL, &client, e);
    if (!rc)
        rc = http_ask(client, "/sonde/v1/status", (struct str){0}, NULL, STATUS_TIMEOUT_MS, NULL,
                      &answer, e);
    json_t *status = rc ? NULL : json_loadb(answer.body.data, answer.body.size, 0, NULL);
    const json_t *run = json_array_get(json_object_get(status, "runs"), 0);
    const char *host = json_string_value(json_object_get(run, "host"));
    if (host)
        snprintf(job->host, sizeof job->host, "%s", host);
    else if (!rc)
        rc = error_set(e, -EPROTO, "job %s does not name its first node", job->id);
    json_decref(status);
    http_answer_free(&answer);
    http_client_destroy(client);
    return rc;
}

static int show_job(const struct options *o, struct job *job, struct error *e)
{
    char path[FOLDER_PATH_MAX + 16], control[TOKEN_TEXT_MAX], view[TOKEN_TEXT_MAX],
        file[OPEN_PAGE_PATH_MAX];
    char url[JOB_URL_MAX + TOKEN_TEXT_MAX + 16];
    if (!job->url[0])
        return error_set(e, -ENOENT, "the aggregator of job %s does not run, so no page is served",
                         job->id);
    snprintf(path, sizeof path, "%s/token", job->folder);
    char *forwarded = forwarded_socket(job->folder);
    bool here = !forwarded;
    free(forwarded);
    int rc = token_read(path, false, control, e);
    if (!rc && !here)
        rc = find_first_node(job, e);
    if (rc)
        return rc;
    token_of_role(str_of(control), ROLE_VIEW, view);
    explicit_bzero(control, sizeof control);
    snprintf(url, sizeof url, "%s/?token=%s", job->url, view);
    show(o, job, here, url, job->folder, file); // the file is removed with the job's folder
    return 0;
}

// ---- recordings

struct replayed {
    const struct options *o;
    char file[OPEN_PAGE_PATH_MAX];
};

static void served(void *user, const char *address, const char *url)
{
    struct replayed *r = user;
    struct job job = {0};
    char base[FOLDER_PATH_MAX];
    struct error e = {0};
    job_host(job.host);
    snprintf(job.url, sizeof job.url, "%s", address);
    int rc = folder_base_path(options_text(r->o, OPT_RUN_DIR), base, &e);
    int fd = rc ? rc : folder_make_private(base, &e);
    if (fd >= 0)
        close(fd);
    else
        log_warning("%s", e.text);
    show(r->o, &job, true, url, base, r->file);
    fprintf(stderr, "sonde: the page is there until Ctrl-C\n");
}

int command_open(const struct options *o)
{
    struct error e = {0};
    struct job job;
    const char *given = o->argument_count ? o->arguments[0] : NULL;
    bool path = given && access(given, F_OK) == 0;
    log_setup(LOG_WARNING, "sonde");
    struct target_options where = data_request_targets(o);
    // Serve the files of all runs in this process, because one page compares several runs, and each
    // running job has a server of its own.
    bool several = o->argument_count > 1;
    if (!several && !path && target_running(given, &where, &job, &e) == 0) {
        int rc = show_job(o, &job, &e);
        job_free(&job);
        return rc ? command_failed(EXIT_FAILED, &e) : EXIT_OK;
    }
    struct replayed r = {.o = o};
    int code = serve_recordings(o, served, &r);
    if (r.file[0])
        unlink(r.file);
    return code;
}
