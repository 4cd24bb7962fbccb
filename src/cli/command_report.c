// command_report.c - prints one run as a report: text, JSON or an HTML file.
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/report_sample.h"

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

// Opens a sample of the run's recordings for --brief, or the run itself.
static int open_run(const struct options *o, struct report_sample *sample, struct data_request *out,
                    struct error *e)
{
    struct target_options where = data_request_targets(o);
    struct target target;
    *sample = (struct report_sample){0};
    if (options_flag(o, OPT_BRIEF) && o->argument_count <= 1) {
        int rc = target_find(o->argument_count ? o->arguments[0] : NULL, NULL, &where, &target, e);
        if (!rc && target.kind == TARGET_RECORDING)
            rc = report_sample_choose(target.path, sample);
        target_free(&target);
        if (rc == -ENOMEM)
            return error_set(e, rc, "no memory");
    }
    return sample->count ? data_request_open(o, sample->paths, sample->count, out, e)
                         : data_request_open(o, o->arguments, (size_t)o->argument_count, out, e);
}

int command_report(const struct options *o)
{
    struct error e = {0};
    struct data_request a;
    struct arena arena = {0};
    if (check_together(o, &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    struct report_sample sample;
    if (open_run(o, &sample, &a, &e) < 0) {
        report_sample_free(&sample);
        return command_failed(EXIT_FAILED, &e);
    }
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
    else {
        report->sample_of = sample.of > sample.count && sample.count ? sample.of : 0;
        code = write_report(o, report, &e);
    }
    if (report && report->missing.size) {
        struct buf missing = {0};
        buf_add_str(&missing, report->missing);
        data_request_missing(&a, buf_cstr(&missing));
        buf_free(&missing);
    }
    code = data_request_close(&a, code);
    report_sample_free(&sample);
    free(report);
    arena_free(&arena);
    return code;
}
