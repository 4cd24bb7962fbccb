// command_report.c - prints one run as a report: text, JSON or an HTML file.
#include "cli/commands.h"
#include "cli/data_request.h"

#include "base/atomic_file.h"
#include "base/log.h"
#include "report/gather.h"

#include <errno.h>
#include <stdlib.h>

static int check_together(const struct options *o, struct error *e)
{
    int forms = options_flag(o, OPT_JSON) + options_flag(o, OPT_TEXT) + options_flag(o, OPT_BRIEF);
    if (forms > 1)
        return error_set(e, -EINVAL, "choose one of --text, --json and --brief");
    if (forms && options_text(o, OPT_REPORT_OUTPUT) && options_flag(o, OPT_BRIEF))
        return error_set(e, -EINVAL, "--brief is for a terminal, and has no file");
    return 0;
}

static bool is_page(const struct options *o)
{
    return options_text(o, OPT_REPORT_OUTPUT) && !options_flag(o, OPT_JSON) &&
           !options_flag(o, OPT_TEXT);
}

static int write_report(const struct options *o, const struct report *r, struct error *e)
{
    const char *path = options_text(o, OPT_REPORT_OUTPUT);
    struct buf out = {0};
    if (options_flag(o, OPT_JSON))
        report_json(r, &out);
    else if (options_flag(o, OPT_BRIEF))
        report_brief(r, &out);
    else if (is_page(o))
        report_html(r, &out);
    else
        report_text(r, &out);
    if (!path)
        return command_print(&out);
    int rc = out.failed ? -ENOMEM : atomic_file_write(path, buf_str(&out), 0);
    buf_free(&out);
    if (rc) {
        error_set(e, rc, "cannot write %s: %s", path, strerror(-rc));
        return command_failed(EXIT_FAILED, e);
    }
    log_say("wrote %s", path);
    return EXIT_OK;
}

int command_report(const struct options *o)
{
    struct error e = {0};
    struct data_request a;
    struct arena arena = {0};
    if (check_together(o, &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    if (data_request_open(o, o->arguments, (size_t)o->argument_count, &a, &e) < 0)
        return command_failed(EXIT_FAILED, &e);
    double grams = options_number(o, OPT_CO2);
    struct gather_options options = {.where = o->argument_count ? o->arguments[0] : NULL,
                                     .grams_per_kwh = grams > 0 ? grams : (double)NAN,
                                     .brief = options_flag(o, OPT_BRIEF)};
    struct report *report = calloc(1, sizeof *report);
    int code;
    if (!report)
        code = command_failed(EXIT_FAILED, (error_set(&e, -ENOMEM, "no memory"), &e));
    else if (report_gather(a.client, &options, &arena, report, &e) < 0)
        code = command_failed(EXIT_FAILED, &e);
    else
        code = write_report(o, report, &e);
    if (report && report->missing.size) {
        struct buf missing = {0};
        buf_add_str(&missing, report->missing);
        data_request_missing(&a, buf_cstr(&missing));
        buf_free(&missing);
    }
    code = data_request_close(&a, code);
    free(report);
    arena_free(&arena);
    return code;
}
