#include "launch/conclusion.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/brief_report.h"
#include "launch/folder.h"
#include "launch/run.h"
#include "launch/summary.h"
#include "launch/sweep.h"

#include <stdio.h>
#include <unistd.h>

static void print_figure(const char *name, const struct summary_figure *figure, bool bytes)
{
    char mean[32], peak[32];
    if (bytes) {
        summary_bytes_text(figure->mean, mean, sizeof mean);
        summary_bytes_text(figure->peak, peak, sizeof peak);
    } else {
        snprintf(mean, sizeof mean, "%.1f %%", figure->mean);
        snprintf(peak, sizeof peak, "%.1f %%", figure->peak);
    }
    fprintf(stderr, "%s mean %s, peak %s", name, mean, peak);
}

static void print_summary(const struct job *job, const struct summary *s)
{
    char duration[32];
    summary_duration_text(job->end_ns - job->start_ns, duration, sizeof duration);
    fprintf(stderr, "sonde: ran %s; %llu points in %llu series, %llu dropped", duration,
            (unsigned long long)s->points, (unsigned long long)s->series,
            (unsigned long long)s->dropped);
    if (s->retired)
        fprintf(stderr, "; the %llu oldest were removed (--size-limit, --window)",
                (unsigned long long)s->retired);
    if (s->damaged_blocks)
        fprintf(stderr, "; %llu blocks are damaged", (unsigned long long)s->damaged_blocks);
    fputc('\n', stderr);
    if (s->cpu_percent.count || s->memory_bytes.count) {
        char total[32];
        fprintf(stderr, "sonde: ");
        if (s->job_cpu_known) {
            char used[32];
            summary_duration_text((int64_t)(s->job_cpu_seconds * NS_PER_S), used, sizeof used);
            fprintf(stderr, "the job used %s of processor time; ", used);
        }
        fprintf(stderr, s->nodes > 1 ? "nodes: " : "node: ");
        if (s->cpu_percent.count)
            print_figure("CPU", &s->cpu_percent, false);
        if (s->memory_bytes.count)
            print_figure(s->cpu_percent.count ? "; memory" : "memory", &s->memory_bytes, true);
        summary_bytes_text(s->memory_total_bytes, total, sizeof total);
        if (s->memory_bytes.count && s->memory_total_bytes > 0)
            fprintf(stderr, " of %s", total);
        fputc('\n', stderr);
    }
    if (job->exit_code != 0)
        fprintf(stderr, "sonde: exit code %d\n", job->exit_code);
}

static void print_where(const struct job *job, const char *runs, const struct summary *s)
{
    const char *path = runs[0] ? job->id : job->record;
    log_say("recorded in %s", job->record);
    log_say("try: sonde open %s; sonde report %s; sonde query --list %s%s%s", path, path, path,
            s->cpu_percent.count ? "; sonde query 'avg:1s-avg:cpu_percent' " : "",
            s->cpu_percent.count ? path : "");
}

// Removes old recordings to make room for the new one, and names them.
static void make_room(const struct job *job, const struct launch_options *o, const char *runs)
{
    struct runs_removed removed = {0};
    struct error e;
    if (!runs[0])
        return;
    int status = runs_make_room(runs, &o->runs_limits, clock_realtime_ns(),
                                strrchr(job->record, '/') + 1, &removed, &e);
    char bytes[32], words[ERROR_TEXT_MAX];
    summary_bytes_text((double)removed.bytes, bytes, sizeof bytes);
    snprintf(words, sizeof words,
             "removed %zu recording%s, %s (--keep, --runs-size and --runs-age say what stays): %s",
             removed.count, removed.count == 1 ? "" : "s", bytes, buf_cstr(&removed.names));
    if (removed.worthy)
        log_warning("%s", words);
    else if (removed.count && !o->quiet)
        log_say("%s", words);
    buf_free(&removed.names);
    if (status < 0)
        log_warning("%s", e.text);
}

void conclusion(struct job *job, const struct launch_options *o, const struct nodes *nodes,
                const char *base, const char *runs)
{
    struct summary summary = {0};
    struct error e;
    bool recorded = summary_add_folder(job->folder, &summary, &e) == 0;
    // Values that programs emitted on other nodes are in those nodes' files.
    job->emitted = summary.emitted       ? JOB_EMITTED
                   : nodes_others(nodes) ? JOB_EMITTED_UNKNOWN
                                         : JOB_EMITTED_NOTHING;
    if (!o->quiet && recorded)
        print_summary(job, &summary);
    else if (!recorded)
        log_warning("%s", e.text);
    bool kept = true;
    if (job->record[0] && recorded) {
        kept = runs_keep(job, job->folder, job->record, &e) == 0;
        if (!kept)
            log_error("the recording is not kept: %s; it is still in %s", e.text, job->folder);
        else if (!o->quiet)
            print_where(job, runs, &summary);
    }
    if (!o->quiet && !o->no_report && recorded && kept)
        brief_report(job->record[0] ? job->record : job->folder, job->start_ns, job->end_ns);
    nodes_report(nodes);
    if (kept && folder_remove(job->folder, &e) < 0)
        log_warning("%s", e.text);
    sweep_dead_jobs(base);
    make_room(job, o, runs);
}
