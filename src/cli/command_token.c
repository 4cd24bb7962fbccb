#include "cli/commands.h"

#include "aggregator/tokens.h"
#include "launch/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The file with the control token.
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
        return n < FOLDER_PATH_MAX + 16 ? 0 : error_set(e, -ENAMETOOLONG, "the path of the token file is too long");
    }
    int rc = job_find(options_text(o, OPT_RUN_DIR), o->argument_count ? o->arguments[0] : NULL, &job, e);
    if (rc)
        return rc;
    snprintf(out, FOLDER_PATH_MAX + 16, "%s/token", job.folder);
    job_free(&job);
    return 0;
}

static int choose_role(const struct options *o, enum role *out, struct error *e)
{
    bool view = options_flag(o, OPT_VIEW), write = options_flag(o, OPT_WRITE), control = options_flag(o, OPT_CONTROL);
    *out = control ? ROLE_CONTROL : write ? ROLE_WRITE : ROLE_VIEW;
    return view + write + control > 1 ? error_set(e, -EINVAL, "choose one of --view, --write and --control") : 0;
}

int command_token(const struct options *o)
{
    struct error e;
    struct buf out = {0};
    char path[FOLDER_PATH_MAX + 16], control[TOKEN_TEXT_MAX], token[TOKEN_TEXT_MAX];
    enum role role;
    int rc = choose_role(o, &role, &e);
    if (!rc)
        rc = find_file(o, path, &e);
    if (!rc)
        rc = token_read(path, options_text(o, OPT_TOKEN_FILE) != NULL, control, &e);
    if (rc)
        return command_failed(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    token_of_role(str_of(control), role, token);
    buf_printf(&out, "%s%s\n", options_flag(o, OPT_HEADER) ? "Authorization: Bearer " : "", token);
    explicit_bzero(control, sizeof control);
    return command_print(&out);
}
