#include "launch/summary.h"

#include "base/clock.h"
#include "base/log.h"
#include "collect/collect.h"
#include "launch/folder.h"
#include "store/read.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

static void add_run(struct summary_figure *figure, double *sum, const struct store_run *run,
                    struct store_cursor *cursor)
{
    if (run->has_summary) {
        uint64_t numbers = run->count - run->nans;
        if (numbers == 0)
            return;
        figure->peak = figure->count ? fmax(figure->peak, run->summary.max) : run->summary.max;
        figure->count += numbers;
        *sum += run->summary.sum;
        return;
    }
    const int64_t *t_ns;
    const double *values;
    size_t count;
    if (store_cursor_points(cursor, &t_ns, &values, &count) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            continue;
        figure->peak = figure->count ? fmax(figure->peak, values[i]) : values[i];
        figure->count++;
        *sum += values[i];
    }
}

// Counts the points of one series; with a figure, also updates its mean and peak.
static uint64_t walk(struct store_snapshot *s, uint32_t series, struct summary_figure *figure)
{
    struct store_cursor *cursor = store_cursor_open(s, series, INT64_MIN, INT64_MAX);
    if (!cursor)
        return 0;
    struct store_run run;
    uint64_t points = 0;
    double sum = figure ? figure->mean * (double)figure->count : 0;
    while (store_cursor_next(cursor, &run) > 0) {
        points += run.count;
        if (figure)
            add_run(figure, &sum, &run, cursor);
    }
    store_cursor_close(cursor);
    if (figure && figure->count > 0)
        figure->mean = sum / (double)figure->count;
    return points;
}

static double last_value(struct store_snapshot *s, uint32_t series)
{
    int64_t t_ns;
    double value;
    return store_point_before(s, series, INT64_MAX, &t_ns, &value) ? value : 0;
}

// Returns the total of a counter, which restarts at 0 with the agent.
static double counted(struct store_snapshot *s, uint32_t series)
{
    struct store_cursor *cursor = store_cursor_open(s, series, INT64_MIN, INT64_MAX);
    struct store_run run;
    double total = 0, last = 0;
    while (cursor && store_cursor_next(cursor, &run) > 0) {
        const int64_t *t_ns;
        const double *values;
        size_t count;
        if (store_cursor_points(cursor, &t_ns, &values, &count) < 0)
            break;
        for (size_t i = 0; i < count; i++) {
            total += values[i] >= last ? values[i] - last : values[i];
            last = values[i];
        }
    }
    if (cursor)
        store_cursor_close(cursor);
    return total;
}

// Whether a program emitted the metric: the agent's own metrics are in the catalogue.
static bool is_emitted(const struct store_metric *metric)
{
    const struct collect_metric *own = collect_find(metric->name);
    return !own || !str_eq(own->metric.name, metric->name); // an alias does not count
}

// *dropped is the number of dropped values that the file has recorded.
static void add_snapshot(struct store_snapshot *s, struct summary *out, uint64_t *dropped)
{
    const struct store_metric *each;
    for (uint32_t id = 0; !out->emitted && (each = store_metric_get(s, id)); id++)
        out->emitted = is_emitted(each);
    size_t series_count = store_series_count(s);
    out->series += series_count;
    for (uint32_t id = 0; id < series_count; id++) {
        struct store_series_info info;
        const struct store_metric *metric =
            store_series_get(s, id, &info) ? store_metric_get(s, info.metric) : NULL;
        if (!metric)
            continue;
        struct summary_figure *figure = NULL;
        if (str_eq(metric->name, STR("cpu_percent")))
            figure = &out->cpu_percent;
        else if (str_eq(metric->name, STR("memory_used_bytes")))
            figure = &out->memory_bytes;
        uint64_t points = walk(s, id, figure);
        out->points += points;
        if (str_eq(metric->name, STR("memory_total_bytes")))
            out->memory_total_bytes = fmax(out->memory_total_bytes, last_value(s, id));
        else if (str_eq(metric->name, STR("job_cpu_seconds_total"))) {
            out->job_cpu_seconds += counted(s, id);
            out->job_cpu_known |= points > 0;
        } else if (str_eq(metric->name, STR("sonde_dropped_total")))
            *dropped += (uint64_t)counted(s, id);
    }
}

static struct str tag_of(const struct store_event *event, struct str key)
{
    for (size_t i = 0; i < event->label_count; i++)
        if (str_eq(event->labels[i].key, key))
            return event->labels[i].value;
    return (struct str){0};
}

// Tracks which scripts fail at the end. The agent's annotations mark the beginning and the end of
// failures; events come in the order of their times.
static void take_failing(const struct store_event *event, struct summary *out)
{
    struct str value = tag_of(event, STR("failing")), host = tag_of(event, STR("host")),
               script = tag_of(event, STR("script")), gpu = tag_of(event, STR("gpu"));
    if (!value.size || !script.size)
        return;
    size_t i = 0;
    while (i < out->failing_count && !(str_eq(str_of(out->failing[i].host), host) &&
                                       str_eq(str_of(out->failing[i].script), script) &&
                                       str_eq(str_of(out->failing[i].gpu), gpu)))
        i++;
    if (str_eq(value, STR("no"))) {
        if (i < out->failing_count)
            out->failing[i] = out->failing[--out->failing_count];
    } else if (i < SUMMARY_FAILING_MAX) {
        struct summary_failing *entry = &out->failing[i];
        out->failing_count += i == out->failing_count;
        *entry = (struct summary_failing){.since_ns = event->start_ns};
        snprintf(entry->host, sizeof entry->host, "%.*s", STR_ARG(host));
        snprintf(entry->script, sizeof entry->script, "%.*s", STR_ARG(script));
        snprintf(entry->gpu, sizeof entry->gpu, "%.*s", STR_ARG(gpu));
        snprintf(entry->text, sizeof entry->text, "%.*s", STR_ARG(event->text));
    }
}

// Tracks in the same way the sources that do not answer.
static bool take_event(const struct store_event *event, void *user)
{
    struct summary *out = user;
    bool of_telemetry = tag_of(event, STR("failing")).size || tag_of(event, STR("cut_off")).size ||
                        tag_of(event, STR("attempt")).size;
    out->emitted |= event->kind != STORE_ANNOTATION || !of_telemetry;
    if (event->kind == STORE_ANNOTATION)
        take_failing(event, out);
    struct str value = tag_of(event, STR("cut_off")), host = tag_of(event, STR("host")),
               source = tag_of(event, STR("source"));
    if (event->kind != STORE_ANNOTATION || !value.size || !source.size)
        return true;
    size_t i = 0;
    while (i < out->cut_off_count && !(str_eq(str_of(out->cut_off[i].host), host) &&
                                       str_eq(str_of(out->cut_off[i].source), source)))
        i++;
    if (str_eq(value, STR("no"))) {
        if (i < out->cut_off_count)
            out->cut_off[i] = out->cut_off[--out->cut_off_count];
    } else if (i < SUMMARY_CUT_OFF_MAX) {
        struct summary_cut_off *entry = &out->cut_off[i];
        out->cut_off_count += i == out->cut_off_count;
        *entry = (struct summary_cut_off){.since_ns = event->start_ns};
        snprintf(entry->host, sizeof entry->host, "%.*s", STR_ARG(host));
        snprintf(entry->source, sizeof entry->source, "%.*s", STR_ARG(source));
    }
    return true;
}

void summary_add_event(const struct store_event *event, struct summary *out)
{
    take_event(event, out);
}

int summary_add_file(const char *path, struct summary *out, struct error *e)
{
    struct store_reader *reader;
    int status = store_reader_open(path, &reader, e);
    if (status < 0)
        return status;
    struct store_snapshot *snapshot = store_snapshot_open(reader);
    if (snapshot) {
        uint64_t dropped = 0;
        out->nodes++;
        add_snapshot(snapshot, out, &dropped);
        store_events(snapshot, INT64_MIN, INT64_MAX, take_event, out);
        store_snapshot_close(snapshot);
        struct store_damage damage;
        store_reader_damage(reader, &damage);
        out->damaged_blocks += damage.blocks;
        // The header also counts the losses that could no longer be recorded; a copy has only the
        // recorded ones.
        struct store_losses losses;
        store_reader_losses(reader, &losses);
        out->dropped += losses.dropped > dropped ? losses.dropped : dropped;
        out->retired += losses.retired;
    } else {
        status = error_set(e, -ENOMEM, "out of memory");
    }
    store_reader_close(reader);
    return status;
}

int summary_add_folder(const char *folder, struct summary *out, struct error *e)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return error_set(e, -errno, "cannot read folder %s: %s", folder, strerror(errno));
    bool any = false, failed = false;
    int status = error_set(e, -ENOENT, "nothing is recorded in %s", folder);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        char path[FOLDER_PATH_MAX + 256];
        if (!folder_is_recording(entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        struct error why = {0};
        int added = summary_add_file(path, out, &why);
        any = any || added == 0;
        if (added == 0)
            continue;
        // Reads the other files all the same. If none can be read, the caller reports the last
        // failure.
        if (failed)
            log_warning("left out: %s", e->text);
        failed = true;
        status = error_set(e, added, "%s", why.text);
    }
    closedir(entries);
    if (any && failed)
        log_warning("left out: %s", e->text);
    return any ? 0 : status;
}

void summary_duration_text(int64_t ns, char *out, size_t size)
{
    int64_t seconds = ns / NS_PER_S;
    if (ns < 60 * (int64_t)NS_PER_S)
        snprintf(out, size, "%.1f s", (double)ns / NS_PER_S);
    else if (seconds < 3600)
        snprintf(out, size, "%d min %d s", (int)(seconds / 60), (int)(seconds % 60));
    else
        snprintf(out, size, "%lld h %d min", (long long)(seconds / 3600), (int)(seconds / 60 % 60));
}

void summary_bytes_text(double bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    while (fabs(bytes) >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, size, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}
