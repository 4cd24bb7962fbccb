#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/open_page.h"
#include "cli/serve.h"

#include "base/log.h"
#include "client/target.h"
#include "http/tokens.h"
#include "launch/tunnel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Prints the address and, if the browser is probably on another machine, the ssh command; else
// opens it.
static void show(const struct options *o, const struct job *job, const char *url,
                 const char *folder, char file[OPEN_PAGE_PATH_MAX])
{
    char line[TUNNEL_LINE_MAX];
    printf("%s\n", url);
    if (tunnel_needed() && tunnel_line(job, line))
        printf("on another machine, there first: %s\n", line);
    fflush(stdout);
    file[0] = 0;
    if (!options_flag(o, OPT_NO_BROWSER))
        open_page(url, folder, file);
}

// ---- a running job

static int show_job(const struct options *o, const struct job *job, struct error *e)
{
    char path[FOLDER_PATH_MAX + 16], control[TOKEN_TEXT_MAX], view[TOKEN_TEXT_MAX],
        file[OPEN_PAGE_PATH_MAX];
    char url[JOB_URL_MAX + TOKEN_TEXT_MAX + 16];
    if (!job->url[0])
        return error_set(e, -ENOENT, "the aggregator of job %s does not run, so no page is served",
                         job->id);
    snprintf(path, sizeof path, "%s/token", job->folder);
    int rc = token_read(path, false, control, e);
    if (rc)
        return rc;
    token_of_role(str_of(control), ROLE_VIEW, view);
    explicit_bzero(control, sizeof control);
    snprintf(url, sizeof url, "%s/?token=%s", job->url, view);
    show(o, job, url, job->folder, file); // the file is removed with the job's folder
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
    show(r->o, &job, url, base, r->file);
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
    if (!path && target_running(given, &where, &job, &e) == 0) {
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
