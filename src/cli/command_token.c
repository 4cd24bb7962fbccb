#include "cli/commands.h"
#include "cli/data_request.h"

#include "client/target.h"
#include "http/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Finds the job and its address for --url.
static int find_job(const struct options *o, struct job *out, struct error *e)
{
    struct target_options where = data_request_targets(o);
    int rc = target_running(o->argument_count ? o->arguments[0] : NULL, &where, out, e);
    if (rc || out->url[0])
        return rc;
    job_free(out);
    return error_set(e, -ENOENT, "this job has no HTTP server: its aggregator does not run");
}

// Finds the file with the control token.
static int find_file(const struct options *o, char out[FOLDER_PATH_MAX + 16], struct error *e)
{
    const char *around = getenv("SONDE_TOKEN_FILE"), *given = options_text(o, OPT_TOKEN_FILE);
    struct job job;
    if (given && o->argument_count)
        return error_set(e, -EINVAL, "give a JOB or --token-file, not both");
    if (!given && !o->argument_count && around && *around)
        given = around;
    if (given) {
        int n = snprintf(out, FOLDER_PATH_MAX + 16, "%s", given);
        return n < FOLDER_PATH_MAX + 16
                   ? 0
                   : error_set(e, -ENAMETOOLONG, "the path of the token file is too long");
    }
    struct target_options where = data_request_targets(o);
    int rc = target_running(o->argument_count ? o->arguments[0] : NULL, &where, &job, e);
    if (rc)
        return rc;
    snprintf(out, FOLDER_PATH_MAX + 16, "%s/token", job.folder);
    job_free(&job);
    return 0;
}

static int choose_role(const struct options *o, enum role *out, struct error *e)
{
    bool view = options_flag(o, OPT_VIEW), write = options_flag(o, OPT_WRITE),
         control = options_flag(o, OPT_CONTROL);
    *out = control ? ROLE_CONTROL : write ? ROLE_WRITE : ROLE_VIEW;
    return view + write + control > 1
               ? error_set(e, -EINVAL, "choose one of --view, --write and --control")
               : 0;
}

static int check_form(const struct options *o, enum role role, struct error *e)
{
    if (!options_flag(o, OPT_URL))
        return 0;
    if (options_flag(o, OPT_HEADER))
        return error_set(e, -EINVAL, "choose one of --url and --header");
    if (options_text(o, OPT_TOKEN_FILE))
        return error_set(e, -EINVAL,
                         "a --token-file has no URL: give a JOB that runs with it, or nothing");
    if (role == ROLE_CONTROL)
        return error_set(e, -EINVAL,
                         "a URL cannot carry the control token: choose --view or --write");
    return 0;
}

int command_token(const struct options *o)
{
    struct error e;
    struct buf out = {0};
    char path[FOLDER_PATH_MAX + 16], control[TOKEN_TEXT_MAX], token[TOKEN_TEXT_MAX];
    struct job job = {0};
    enum role role;
    bool url = options_flag(o, OPT_URL);
    int rc = choose_role(o, &role, &e);
    if (!rc)
        rc = check_form(o, role, &e);
    if (!rc && url)
        rc = find_job(o, &job, &e);
    if (!rc && url)
        snprintf(path, sizeof path, "%s/token", job.folder);
    else if (!rc)
        rc = find_file(o, path, &e);
    if (!rc)
        rc = token_read(path, options_text(o, OPT_TOKEN_FILE) != NULL, control, &e);
    if (!rc) {
        token_of_role(str_of(control), role, token);
        struct str rest = str_of(job.url), scheme = str_cut(&rest, ':');
        if (url) // the parts before and after "//"
            buf_printf(&out, "%.*s://sonde:%s@%.*s\n", STR_ARG(scheme), token,
                       STR_ARG(str_slice(rest, strlen("//"), rest.size)));
        else
            buf_printf(&out, "%s%s\n", options_flag(o, OPT_HEADER) ? "Authorization: Bearer " : "",
                       token);
        explicit_bzero(control, sizeof control);
    }
    job_free(&job);
    return rc ? command_failed(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e) : command_print(&out);
}
