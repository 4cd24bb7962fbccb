// text.c - a report for a terminal of 80 columns, without colours; the lines at the end of a run;
// the command behind a finding.
#include "base/escape.h"
#include "base/printable.h"
#include "report/programs.h"
#include "report/words.h"

#include <stdio.h>

// ---------------------------------------------------------------- the command

void report_query_line(const struct report *r, const struct report_finding *f, struct buf *out)
{
    if (!f->m.size && !f->span.size)
        return;
    buf_printf(out, "sonde query --start %lld --end %lld", (long long)(f->start_ns / 1000000000),
               (long long)(f->end_ns / 1000000000));
    if (f->span.size) {
        buf_add_str(out, f->m.size ? STR(" --per-span ") : STR(" --spans="));
        escape_for_shell(out, f->span);
    }
    if (f->m.size) {
        buf_add_char(out, ' ');
        escape_for_shell(out, f->m);
    }
    struct str where = r->where.size ? r->where : r->job;
    if (where.size) {
        buf_add_char(out, ' ');
        escape_for_shell(out, where);
    }
}

// ---------------------------------------------------------------- lines

static size_t columns_of(struct str s)
{
    size_t columns = 0;
    for (size_t i = 0; i < s.size; i++)
        columns += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    return columns;
}

// Writes the text after `first`, wrapped. Later lines begin at `indent`.
static void wrap(struct buf *out, const char *first, size_t indent, struct str text)
{
    struct buf safe = {0};
    printable_add(&safe, text);
    struct str rest = buf_str(&safe);
    buf_printf(out, "%s", first);
    size_t at = columns_of(str_of(first)), begin = at;
    for (struct str word = str_word(&rest); word.size; word = str_word(&rest)) {
        size_t columns = columns_of(word);
        if (at > begin && at + 1 + columns > REPORT_TEXT_COLUMNS) {
            buf_printf(out, "\n%*s", (int)indent, "");
            at = begin = indent;
        }
        if (at > begin)
            buf_add_char(out, ' ');
        at += columns + (at > begin);
        buf_add_str(out, word);
    }
    buf_add_char(out, '\n');
    buf_free(&safe);
}

static void entry(struct buf *out, const char *key, struct str text)
{
    char first[32];
    snprintf(first, sizeof first, "%-10s ", key);
    if (text.size)
        wrap(out, first, 11, text);
}

static void heading(struct buf *out, const char *text)
{
    buf_printf(out, "\n%s\n", text);
}

// ---------------------------------------------------------------- parts

static const double cpu_difference_least = 5; // percent of all processors

static void write_run(const struct report *r, struct buf *out)
{
    char from[WORDS_MAX], length[WORDS_MAX], end[WORDS_MAX];
    struct buf b = {0};
    entry(out, "job", r->job);
    entry(out, "command", r->command);
    entry(out, "name", r->name);
    for (size_t i = 0; i < r->tag_count; i++)
        buf_printf(&b, "%s%.*s=%.*s", i ? " " : "", STR_ARG(r->tags[i].key),
                   STR_ARG(r->tags[i].value));
    entry(out, "tags", buf_str(&b));
    entry(out, "note", r->note);
    entry(out, "folder", r->directory);
    b.size = 0;
    if (r->commit.size)
        buf_printf(&b, "%.*s %.*s", STR_ARG(str_slice(r->commit, 0, 12)), STR_ARG(r->branch));
    entry(out, "git", buf_str(&b));
    b.size = 0;
    words_nodes(r, &b);
    entry(out, "where", buf_str(&b));
    b.size = 0;
    words_time(r->start_ns, from);
    words_duration(r->end_ns - r->start_ns, length);
    words_end(r, end);
    buf_printf(&b, "%s, for %s; %s", from, length, end);
    if (r->restarts)
        buf_printf(&b, "; %u restart%s", r->restarts, r->restarts == 1 ? "" : "s");
    entry(out, "when", buf_str(&b));
    entry(out, "missing", r->missing);
    entry(out, "unreadable", r->unreadable);
    b.size = 0;
    if (r->damaged_blocks)
        buf_printf(&b, "%llu blocks", (unsigned long long)r->damaged_blocks);
    entry(out, "damaged", buf_str(&b));
    buf_free(&b);
}

static void write_findings(const struct report *r, struct buf *out)
{
    heading(out, "FINDINGS (times since the start)");
    if (!r->finding_count)
        buf_add_str(out, STR("none\n"));
    for (size_t i = 0; i < r->finding_count; i++) {
        const struct report_finding *f = &r->findings[i];
        struct buf b = {0};
        char first[16];
        snprintf(first, sizeof first, "%2zu. ", i + 1);
        buf_printf(&b, "%.*s (%s)", STR_ARG(f->title), words_sureness(f->sureness));
        wrap(out, first, 4, buf_str(&b));
        wrap(out, "    ", 4, f->evidence);
        wrap(out, "    > ", 6, f->advice);
        b.size = 0;
        report_query_line(r, f, &b);
        if (b.size) { // on one line, so that users can copy it
            buf_add_str(out, STR("    $ "));
            printable_add(out, buf_str(&b));
            buf_add_char(out, '\n');
        }
        buf_free(&b);
    }
}

static void write_uses(const struct report *r, struct buf *out)
{
    if (!r->use_count && isnan(r->energy.total_joules))
        return;
    heading(out, r->use_count
                     ? "USE               mean           peak           of             mean share"
                     : "USE");
    for (size_t i = 0; i < r->use_count; i++) {
        const struct report_use *u = &r->uses[i];
        char mean[WORDS_MAX], peak[WORDS_MAX], total[WORDS_MAX], share[WORDS_MAX];
        words_value(u->mean, u->unit, mean);
        words_value(u->peak, u->unit, peak);
        words_value(u->total, u->unit, total);
        words_share(u->total > 0 ? u->mean / u->total : (double)NAN, share);
        buf_printf(out, "%-17s %-14s %-14s %-14s %s\n", u->name, mean, peak, total, share);
    }
    char energy[WORDS_MAX], co2[WORDS_MAX] = "";
    const struct report_energy *e = &r->energy;
    if (isnan(e->total_joules))
        return;
    words_energy(e->total_joules, energy);
    if (!isnan(e->grams_co2))
        snprintf(co2, sizeof co2, "; %.3g kg CO2", e->grams_co2 / 1000);
    buf_printf(out, "%-17s %s (%.*s)%s\n", "energy", energy, STR_ARG(e->covers), co2);
}

// The name of a metric or span in its column.
static void name_cell(struct buf *out, struct str text)
{
    enum { COLUMNS = 19 };
    struct buf name = {0};
    printable_add(&name, text);
    buf_printf(out, "%-*.*s", COLUMNS, (int)(name.size > COLUMNS ? COLUMNS : name.size),
               buf_cstr(&name));
    buf_free(&name);
}

static void write_agreement(const struct report_agreement *a, struct buf *out)
{
    struct buf b = {0};
    buf_printf(&b, "follows %.*s: correlation %.3f, differences of %.3g (root mean square)",
               STR_ARG(a->b->metric), a->correlation, a->difference);
    if (!isnan(a->first_half) && !isnan(a->second_half))
        buf_printf(&b, ", %.3g in the first half and %.3g in the second", a->first_half,
                   a->second_half);
    wrap(out, "  ", 2, buf_str(&b));
    buf_free(&b);
}

static void write_metrics(const struct report *r, struct buf *out)
{
    struct report_agreement agreements[AGREEMENTS_MAX];
    size_t count = program_agreements(r, agreements);
    if (!r->own_count)
        return;
    heading(out, "METRICS               points      mean     least  greatest     first      last");
    for (size_t i = 0; i < r->own_count; i++) {
        const struct report_measure *m = &r->own[i];
        struct program_metric all = program_metric_of(r, m);
        name_cell(out, m->metric);
        if (m->counter)
            buf_printf(out, " %8.0f  reached %s, %s a second\n", all.points,
                       words_number(all.reached).text, words_number(all.mean).text);
        else
            buf_printf(out, " %8.0f %9s %9s %9s %9s %9s\n", all.points, words_number(all.mean).text,
                       words_number(all.least).text, words_number(all.greatest).text,
                       words_number(all.first).text, words_number(all.last).text);
        for (size_t k = 0; k < count; k++)
            if (agreements[k].a == m)
                write_agreement(&agreements[k], out);
    }
    if (r->own_total > r->own_count)
        buf_printf(out, "and %zu metrics more\n", r->own_total - r->own_count);
}

static void write_spans(const struct report *r, struct buf *out)
{
    if (!r->span_count)
        return;
    heading(out, "SPANS                  count     mean s      p50 s      p95 s      max s  share");
    for (size_t i = 0; i < r->span_count; i++) {
        const struct report_span *s = &r->spans[i];
        char share[WORDS_MAX];
        words_share(s->share, share);
        name_cell(out, s->name);
        buf_printf(out, " %8llu %10.4g %10.4g %10.4g %10.4g %6s\n", (unsigned long long)s->count,
                   s->mean_s, s->p50_s, s->p95_s, s->max_s, share);
        struct buf more = {0};
        if (s->imbalance >= 1.05)
            buf_printf(&more, "%.*s takes %.0f %% longer than the mean of %zu", STR_ARG(s->slowest),
                       (s->imbalance - 1) * 100, s->members);
        if (s->gpu_idle >= 0.05)
            buf_printf(&more, "%sGPUs idle %.0f %%", more.size ? "; " : "", s->gpu_idle * 100);
        if (fabs(s->cpu_within - s->cpu_outside) >= cpu_difference_least)
            buf_printf(&more, "%sCPU %.0f %%, %.0f %% while none runs", more.size ? "; " : "",
                       s->cpu_within, s->cpu_outside);
        if (s->recorded)
            buf_printf(&more, "%sp50, p95 and max are of the first %llu", more.size ? "; " : "",
                       (unsigned long long)s->recorded);
        if (s->unfinished)
            buf_printf(&more, "%s%llu without an end", more.size ? "; " : "",
                       (unsigned long long)s->unfinished);
        if (more.size)
            wrap(out, "  ", 2, buf_str(&more));
        buf_free(&more);
    }
    if (r->spans_cut)
        buf_add_str(out, STR("There are more spans; these are of the first ones.\n"));
    if (r->span_total > r->span_count)
        buf_printf(out, "and %zu names more\n", r->span_total - r->span_count);
}

// The names of kernels are long, so that each has a line of its own above its figures.
static void write_kernels(const struct report *r, struct buf *out)
{
    if (!r->kernel_count)
        return;
    double all_s = report_kernel_seconds(r);
    heading(out, "GPU KERNELS            count     mean s    total s  share of all");
    for (size_t i = 0; i < r->kernel_count && i < REPORT_KERNELS_SHOWN; i++) {
        const struct report_kernel *k = &r->kernels[i];
        char share[WORDS_MAX];
        words_share(k->seconds / all_s, share);
        wrap(out, "", 0, k->name);
        buf_printf(out, "%28.0f %10.4g %10.4g %6s\n", k->count, k->seconds / k->count, k->seconds,
                   share);
    }
    if (r->kernel_count > REPORT_KERNELS_SHOWN)
        buf_printf(out, "and %zu names more\n", r->kernel_count - REPORT_KERNELS_SHOWN);
}

static void write_stragglers(const struct report *r, struct buf *out)
{
    enum { SHOWN = 10 };
    if (!r->straggler_count)
        return;
    heading(out, "SLOWER THAN THE OTHERS");
    for (size_t i = 0; i < r->straggler_count && i < SHOWN; i++) {
        const struct report_straggler *s = &r->stragglers[i];
        struct buf b = {0};
        buf_printf(&b, "%.*s: %.*s, %.2f times, %s, %llu rounds", STR_ARG(s->member),
                   STR_ARG(s->what), s->factor, s->now ? "until the end" : "for a time",
                   (unsigned long long)s->rounds);
        wrap(out, "", 2, buf_str(&b));
        buf_free(&b);
    }
    if (r->straggler_count > SHOWN)
        buf_printf(out, "and %zu more\n", r->straggler_count - SHOWN);
}

void report_text(const struct report *r, struct buf *out)
{
    write_run(r, out);
    if (!r->bucket_count) {
        buf_add_str(out, STR("\nThe recording has no points.\n"));
        return;
    }
    write_findings(r, out);
    write_uses(r, out);
    write_metrics(r, out);
    write_spans(r, out);
    write_kernels(r, out);
    write_stragglers(r, out);
}

// ---------------------------------------------------------------- the end of a run

void report_brief(const struct report *r, struct buf *out)
{
    enum { SHOWN = 2 };
    struct buf b = {0};
    char text[WORDS_MAX], sample[WORDS_MAX] = "";
    if (r->sample_of)
        snprintf(sample, sizeof sample, " (on %zu of %zu nodes)", r->node_count, r->sample_of);
    for (size_t i = 0; i < r->use_count; i++) {
        const struct report_use *u = &r->uses[i];
        if (strcmp(u->name, "GPU") != 0 && strcmp(u->name, "GPU memory") != 0)
            continue; // earlier lines contain the other figures
        words_share(u->mean / u->total, text);
        buf_printf(&b, "%s%s %s", b.size ? "; " : "", u->name, text);
    }
    if (!isnan(r->energy.total_joules)) {
        words_energy(r->energy.total_joules, text);
        buf_printf(&b, "%senergy %s (%.*s)", b.size ? "; " : "", text, STR_ARG(r->energy.covers));
    }
    if (b.size)
        buf_printf(out, "sonde: %s%s\n", buf_cstr(&b), sample);
    b.size = 0;
    for (size_t i = 0, shown = 0; i < r->finding_count && shown < SHOWN; i++) {
        if (r->findings[i].sureness < REPORT_LIKELY)
            continue;
        shown++;
        buf_add_str(&b, STR("sonde: found: "));
        printable_add(&b, r->findings[i].title);
        buf_printf(&b, "%s\n", sample);
    }
    buf_add_str(out, buf_str(&b));
    buf_free(&b);
}
