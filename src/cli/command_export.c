#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/export_copies.h"

#include "base/log.h"
#include "export/job_copy.h"
#include "export/output.h"
#include "export/source.h"
#include "launch/folder.h"
#include "launch/summary.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted; // number of the signal

// The inputs: recordings themselves, and copies of running jobs.
struct export_inputs {
    struct target *targets;
    const char **paths;
    size_t count;
    struct export_copies copies;
    struct buf missing; // missing nodes of running jobs
};

static void on_signal(int number)
{
    interrupted = number;
}

static bool stop(void *user)
{
    (void)user;
    return interrupted;
}

static void show_progress(const struct export_counts *counts, void *user)
{
    const struct export_source *source = user;
    double share =
        source->points_expected ? (double)counts->points / (double)source->points_expected : 0;
    if (source->points_expected)
        fprintf(stderr, "\r\033[Ksonde: %.0f %%, %llu points", 100 * (share < 1 ? share : 1),
                (unsigned long long)counts->points);
}

static void show_copying(const struct job_copy *copy, void *user)
{
    (void)user;
    fprintf(stderr, "\r\033[Ksonde: copying the job, %.0f %%, %llu points", 100 * copy->share,
            (unsigned long long)copy->points);
}

static bool shows_progress(const struct options *o)
{
    return isatty(STDERR_FILENO) && !options_flag(o, OPT_QUIET);
}

static void clear_progress(void)
{
    fputs("\r\033[K", stderr);
}

// ---------------------------------------------------------------- inputs

static void free_inputs(struct export_inputs *in)
{
    export_copies_remove(&in->copies);
    for (size_t i = 0; i < in->count; i++)
        target_free(&in->targets[i]);
    free(in->targets);
    free(in->paths);
    buf_free(&in->missing);
}

// Copies the job of target i. The target's path becomes that of the copy.
static int copy_job(const struct options *o, struct export_inputs *in, size_t i,
                    const struct export_selection *selection, struct error *e)
{
    struct target_options where = data_request_targets(o);
    struct sonde_client_options client = {.stop = stop};
    bool shown = shows_progress(o);
    struct job_copy copy = {.missing = in->missing, .progress = shown ? show_copying : NULL};
    struct sonde_client *job = NULL;
    struct target *t = &in->targets[i];
    const char *named = o->argument_count ? o->arguments[i] : NULL;
    int rc = in->copies.path[0] ? 0 : export_copies_make(&in->copies, e);
    if (rc)
        return rc;
    snprintf(t->path, sizeof t->path, "%s/%zu", in->copies.path, i); // has room for the number
    if (mkdir(t->path, 0700) < 0)
        return error_set(e, -errno, "cannot make %s: %s", t->path, strerror(errno));
    copy.folder = t->path;
    rc = client_open(&named, named != NULL, &where, &client, &job, e);
    if (!rc)
        rc = job_copy_make(&copy, job, selection, e);
    if (shown)
        clear_progress();
    if (rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG)
        error_prefix(e, "TMPDIR (%s) has no space for a copy of the job; set it to another folder",
                     folder_temporary());
    in->missing = copy.missing;
    sonde_client_close(job);
    return rc;
}

static int find_inputs(const struct options *o, const struct export_selection *selection,
                       struct export_inputs *out, struct error *e)
{
    struct target_options where = data_request_targets(o);
    size_t target_max = o->argument_count ? (size_t)o->argument_count : 1;
    *out = (struct export_inputs){.targets = calloc(target_max, sizeof *out->targets),
                                  .paths = calloc(target_max, sizeof *out->paths)};
    if (!out->targets || !out->paths)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < target_max; i++) {
        struct target *t = &out->targets[i];
        int rc = target_find(o->argument_count ? o->arguments[i] : NULL, NULL, &where, t, e);
        if (rc)
            return rc;
        out->paths[out->count++] = t->path;
        if (t->what[0])
            log_say("%s", t->what);
    }
    for (size_t i = 0; i < target_max; i++)
        if (out->targets[i].kind == TARGET_JOB) {
            int rc = copy_job(o, out, i, selection, e);
            if (rc)
                return rc;
        }
    return 0;
}

static int read_selection(const struct options *o, struct export_selection *out, struct error *e)
{
    struct data_range range;
    int rc = data_request_range(o, &range, e);
    *out = (struct export_selection){
        .metrics = options_text(o, OPT_METRIC_LIST),
        .filters = options_text(o, OPT_FILTER),
        .from_ns = range.start_ns || (range.start && strcmp(range.start, "0") == 0) ? range.start_ns
                                                                                    : INT64_MIN,
        .to_ns =
            range.end_ns || (range.end && strcmp(range.end, "0") == 0) ? range.end_ns : INT64_MAX,
        .events = !options_flag(o, OPT_NO_EVENTS),
        .temporary = folder_temporary()};
    const char *span = options_text(o, OPT_EXPORT_PER_SPAN),
               *each = options_text(o, OPT_EXPORT_DOWNSAMPLE);
    out->span = str_of(span);
    if (!rc && span && each)
        rc = error_set(e, -EINVAL, "--per-span has one value of each span; leave out --downsample");
    if (!rc && each)
        rc = query_parse_downsample(str_of(each), &out->downsample, e);
    if (!rc && out->downsample.fill != QUERY_FILL_NONE)
        rc = error_set(e, -EINVAL,
                       "--downsample %s: an export has no values for gaps: leave out "
                       "the fill policy",
                       each);
    return rc;
}

// ---------------------------------------------------------------- writing

static int write_all(const struct options *o, struct export_source *source,
                     struct export_sink *sink, struct export_counts *counts, struct error *e)
{
    const char *path = options_text(o, OPT_EXPORT_OUTPUT);
    bool shown = shows_progress(o);
    struct export_watch watch = {stop, shown ? show_progress : NULL, source};
    struct export_output output;
    int rc = export_output_open(&output, path ? path : "-", e);
    if (rc)
        return rc;
    sink->out = &output;
    rc = sink->format->seeks && !output.draft
             ? error_set(e, -ESPIPE, "%s needs a file: give -o FILE; %s is none",
                         sink->format->name, output.path)
             : export_run(source, sink, &watch, counts, e);
    rc = export_output_close(&output, rc, e);
    if (shown)
        clear_progress();
    return rc;
}

static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now, act = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
}

// Ends an interrupted command by its signal, after the draft was removed.
static void end_by_signal(void)
{
    signal(interrupted, SIG_DFL);
    raise(interrupted);
}

// Prints the recordings and blocks that are missing from the export. Returns their number.
static size_t name_missing(struct export_source *source)
{
    struct buf lines = {0};
    size_t count = source->kind->missing(source, &lines);
    struct str rest = buf_str(&lines);
    while (rest.size) {
        struct str line = str_cut(&rest, '\n');
        if (line.size)
            log_say("left out: %.*s", STR_ARG(line));
    }
    buf_free(&lines);
    return count;
}

static int export_from(const struct options *o, struct export_source *source,
                       const struct export_format *format, const struct buf *nodes, struct error *e)
{
    struct export_sink sink = {.format = format, .plan = &source->plan};
    struct export_counts counts;
    int rc = write_all(o, source, &sink, &counts, e);
    if (interrupted)
        end_by_signal();
    if (rc == -EPIPE)
        return EXIT_OK;
    if (rc)
        return command_failed(EXIT_FAILED, e);
    size_t missing = name_missing(source);
    if (sink.left_out)
        log_say("%llu values or events are left out: %s", (unsigned long long)sink.left_out,
                sink.reason);
    if (!options_flag(o, OPT_QUIET))
        log_say("%llu points of %llu series, %llu spans, %llu annotations; %zu skipped",
                (unsigned long long)counts.points, (unsigned long long)counts.series,
                (unsigned long long)counts.spans, (unsigned long long)counts.annotations, missing);
    if (nodes->size)
        log_say("missing in the export: %.*s", STR_ARG(buf_str(nodes)));
    bool lacks = missing || (nodes->size && options_flag(o, OPT_STRICT_ANSWER));
    return lacks ? EXIT_PARTLY : EXIT_OK;
}

// Chooses the format of --format, or else that of the path. Returns -EINVAL if binary data would go
// to a terminal.
static int choose_format(const struct options *o, const struct export_format **out, struct error *e)
{
    const char *name = options_text(o, OPT_EXPORT_FORMAT),
               *path = options_text(o, OPT_EXPORT_OUTPUT);
    const struct export_format *of_path = path ? export_format_of_path(path) : NULL;
    *out = name ? export_format_find(name) : of_path ? of_path : &export_csv;
    if (!(*out)->is_text && (!path || strcmp(path, "-") == 0) && isatty(STDOUT_FILENO))
        return error_set(e, -EINVAL, "cannot write %s to a terminal: give -o FILE", (*out)->name);
    return 0;
}

int command_export(const struct options *o)
{
    struct error e = {0};
    struct export_selection selection;
    struct export_inputs inputs = {0};
    struct export_source *source = NULL;
    const struct export_format *format;
    log_setup(LOG_ERROR, "sonde"); // name_missing prints the names of the files, so do not log them
    if (choose_format(o, &format, &e) < 0 || read_selection(o, &selection, &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    selection.events = selection.events && !format->no_events;
    catch_signals();
    int rc = find_inputs(o, &selection, &inputs, &e);
    if (!rc)
        rc = export_source_of_files(inputs.paths, inputs.count, &selection, &source, &e);
    export_copies_remove(&inputs.copies); // removes the copies now; the open files stay readable
    if (rc && interrupted)
        end_by_signal();
    int code = rc ? command_failed(rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e)
                  : export_from(o, source, format, &inputs.missing, &e);
    if (source)
        source->kind->close(source);
    free_inputs(&inputs);
    return code;
}
