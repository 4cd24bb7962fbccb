// main.c - finds the subcommand, parses its options, and runs it.
#include "base/full_io.h"
#include "base/log.h"
#include "cli/colour.h"
#include "cli/commands.h"
#include "cli/help.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static int (*const run[COMMAND_COUNT])(const struct options *o) = {
#define COMMAND(id, name, ...) [COMMAND_##id] = command_##name,
#include "cli/commands.def"
#undef COMMAND
};

int command_failed(int code, const struct error *e)
{
    log_error("%s", e->text);
    return code;
}

int command_print(struct buf *out)
{
    struct error e;
    int rc = out->failed ? -ENOMEM : full_write(STDOUT_FILENO, buf_str(out), -1);
    buf_free(out);
    if (rc == 0 || rc == -EPIPE)
        return EXIT_OK;
    error_set(&e, rc, "cannot write to standard output: %s", strerror(-rc));
    return command_failed(EXIT_FAILED, &e);
}

static int print_overview(int fd, int code)
{
    struct buf out = {0};
    help_overview(&out, colour_enabled(fd));
    if (fd == STDOUT_FILENO)
        return command_print(&out);
    fputs(buf_cstr(&out), stderr);
    buf_free(&out);
    return code;
}

static int unknown_command(const char *name)
{
    const char *near = command_nearest(name);
    struct error e;
    if (near)
        error_set(&e, -EINVAL, "unknown command '%.80s'; did you mean %s?", name, near);
    else
        error_set(&e, -EINVAL, "unknown command '%.80s'; see sonde help", name);
    return command_failed(EXIT_USAGE, &e);
}

static int run_command(enum command_id id, int argc, char **argv)
{
    struct options o;
    struct error e;
    bool wants_help;
    int code;
    if (options_parse_flags(id, argc, argv, &o, &wants_help, &e) < 0) {
        code = command_failed(EXIT_USAGE, &e);
    } else if (wants_help) {
        struct buf out = {0};
        help_command(&out, id, colour_enabled(STDOUT_FILENO));
        code = command_print(&out);
    } else if (options_complete(&o, &e) < 0) {
        code = command_failed(EXIT_USAGE, &e);
    } else {
        code = run[id](&o);
    }
    options_free(&o);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return print_overview(STDERR_FILENO, EXIT_USAGE);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_overview(STDOUT_FILENO, EXIT_OK);
    bool version = strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0;
    enum command_id id = version ? COMMAND_VERSION : command_find(argv[1]);
    if (id == COMMAND_COUNT)
        return unknown_command(argv[1]);
    return run_command(id, argc - 2, argv + 2);
}
