// collect.c - the table of sources, and their common parts: selection, rates, reasons for missing
// values.
//
// A source whose files may hang is sampled in a thread of its own (deadline.h) into values of its
// own. While it hangs, or reads ahead because it is slow, its memory belongs to the thread, and
// this file does not touch it.
#include "base/clock.h"
#include "collect/deadline.h"
#include "collect/source.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// clang-format off
static const struct source_kind *const kinds[] = {
    &source_load,
    &source_cpu,
    &source_memory,
    &source_vmstat,
    &source_pressure,
    &source_network,
    &source_disk,
    &source_filesystem,
    &source_cgroup,
    &source_infiniband,
    &source_slingshot,
    &source_energy,
    &source_temperature,
    &source_fan,
    &source_frequency,
    &source_lustre,
    &source_nfs,
    &source_interrupts,
    &source_processes,
    &source_amd,
    &source_intel,
    &source_nvidia, // last, because the collector may wait for it
};
// clang-format on

enum { SOURCES = sizeof kinds / sizeof *kinds };

static const double RATE_DEFAULT_S = 0.5;

// How long the other sources wait for one that hangs or is slow; they wait only once.
static const int64_t DEADLINE_DEFAULT_NS = 20 * NS_PER_MS;
// The values of a slow source are as old as the interval of its samples, if it is not longer.
static const int64_t SELDOM_NS = DEADLINE_LATE_MAX_NS / 2;

// A hang is reported only after this time, because answers are slow on a busy machine.
static const int64_t SILENCE_DEFAULT_NS = NS_PER_S;

// The data of a source's thread.
struct apart {
    struct source *source;
    int failed;
    double values[STORE_SET_SERIES_MAX];
};

struct slot {
    // set also for a source that could not be opened, because it has the reason
    struct source *source;
    struct apart *apart; // NULL: sampled in the caller's thread
    struct deadline *deadline;
    bool away;                    // its thread reads: its memory is not touched
    char said[SOURCE_REASON_MAX]; // the reason, while the source is away
    int64_t hangs_ns;             // how long it had hung at the last sample, or 0
    bool owes;                    // it did not answer in time, and may still answer
};

struct collect {
    struct collect_options options;
    struct slot slots[SOURCES]; // in the order of `kinds`
    size_t open[SOURCES];       // index of each set's slot
    size_t open_count;
    int64_t rate_ns;
};

int source_fail(struct source *s, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->reason, sizeof s->reason, format, args);
    va_end(args);
    return code;
}

static void free_source(struct source *s)
{
    if (!s)
        return;
    if (s->open)
        s->kind->close(s);
    series_free(s);
    free(s);
}

static void sample_apart(void *user)
{
    struct apart *apart = user;
    for (size_t i = 0; i < apart->source->count; i++)
        apart->values[i] = store_missing();
    apart->source->reason[0] = 0;
    apart->failed = apart->source->kind->sample(apart->source, apart->values);
}

static void free_apart(void *user)
{
    struct apart *apart = user;
    free_source(apart->source);
    free(apart);
}

// The user's choice for one source.
struct choice {
    bool off;
    double rate_s; // 0 = the source's own rate
};

static bool is_named(const struct source_kind *kind, struct str name)
{
    return str_eq(kind->name, name) || str_eq(source_rows(kind), name);
}

// Parses "NAME", "-NAME", "NAME=off", "NAME=on", "NAME=SECONDS". *alone: only a name.
static int parse_choice(struct str word, struct str *name, struct choice *choice, bool *alone,
                        struct error *e)
{
    struct str value = word;
    bool minus = word.data[0] == '-';
    *name = str_cut(&value, '=');
    *name = str_slice(*name, minus, name->size);
    *alone = !value.data && !minus;
    *choice =
        (struct choice){.off = minus || str_eq(value, STR("off")) || str_eq(value, STR("false"))};
    if (*alone || choice->off || str_eq(value, STR("on")) || str_eq(value, STR("true")))
        return 0;
    if (!str_to_double(value, &choice->rate_s) ||
        !(choice->rate_s >= COLLECT_RATE_MIN_S && choice->rate_s <= COLLECT_RATE_MAX_S))
        return error_set(e, -EINVAL,
                         "'%.*s' for source '%.*s' is neither on, off nor seconds from %g to %g",
                         STR_ARG(value), STR_ARG(*name), COLLECT_RATE_MIN_S, COLLECT_RATE_MAX_S);
    return 0;
}

static int choose(const char *list, struct choice choices[SOURCES], struct str *unknown,
                  struct error *e)
{
    bool only = false, named[SOURCES] = {false};
    *unknown = (struct str){0};
    memset(choices, 0, SOURCES * sizeof *choices);
    for (struct str names = str_of(list); names.size;) {
        struct str words = str_cut(&names, ','), word;
        while ((word = str_word(&words)).size) {
            struct str name;
            struct choice choice;
            bool alone, found = false;
            int failed = parse_choice(word, &name, &choice, &alone, e);
            for (size_t i = 0; i < SOURCES; i++) {
                if (!is_named(kinds[i], name))
                    continue;
                choices[i] = choice;
                named[i] = found = true;
            }
            if (!found) {
                *unknown = name;
                return error_set(e, -EINVAL,
                                 "there is no source '%.*s'; `sonde metrics` lists them",
                                 STR_ARG(name));
            }
            if (failed)
                return failed;
            only = only || alone;
        }
    }
    for (size_t i = 0; i < SOURCES; i++)
        choices[i].off = choices[i].off || (only && !named[i]);
    return 0;
}

int collect_check_sources(const char *list, struct str *unknown, struct error *e)
{
    struct choice choices[SOURCES];
    return choose(list, choices, unknown, e);
}

struct str collect_source_name(size_t index)
{
    return index < SOURCES ? kinds[index]->name : (struct str){0};
}

double collect_source_rate(struct str source)
{
    for (size_t i = 0; i < SOURCES; i++)
        if (is_named(kinds[i], source))
            return kinds[i]->rate_s;
    return 0;
}

// The user's rate; without one, the slower of the source's own and the collector's.
static int64_t rate_of(const struct collect *c, const struct source_kind *kind,
                       const struct choice *choice)
{
    if (choice->rate_s > 0)
        return (int64_t)llround(choice->rate_s * NS_PER_S);
    int64_t own_ns = (int64_t)(kind->rate_s * NS_PER_S);
    return own_ns > c->rate_ns ? own_ns : c->rate_ns;
}

static int open_source(struct collect *c, size_t index)
{
    struct slot *slot = &c->slots[index];
    struct source *s = slot->source;
    int failed = s->kind->open(s);
    if (failed)
        return 0; // the other sources continue
    s->open = true;
    s->reason[0] = 0;
    if (series_make(s) != 0)
        return -ENOMEM;
    if (s->kind->apart) {
        slot->apart = calloc(1, sizeof *slot->apart);
        if (!slot->apart)
            return -ENOMEM;
        slot->apart->source = s;
        failed = deadline_create(sample_apart, free_apart, slot->apart, &slot->deadline);
        if (failed) {
            free(slot->apart);
            slot->apart = NULL;
            source_fail(s, failed, "cannot start a thread: %s", strerror(-failed));
            return 0;
        }
    }
    c->open[c->open_count++] = index;
    return 0;
}

int collect_create(const struct collect_options *options, struct collect **out, struct error *e)
{
    struct choice choices[SOURCES];
    struct str unknown;
    *out = NULL;
    int failed = choose(options->sources ? options->sources : "", choices, &unknown, e);
    if (failed)
        return failed;
    struct collect *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(e, -ENOMEM, "no memory for the collectors");
    c->options = *options;
    if (c->options.deadline_ns <= 0)
        c->options.deadline_ns = DEADLINE_DEFAULT_NS;
    if (c->options.silence_ns <= 0)
        c->options.silence_ns = SILENCE_DEFAULT_NS;
    c->rate_ns =
        (int64_t)llround((options->rate_s > 0 ? options->rate_s : RATE_DEFAULT_S) * NS_PER_S);
    for (size_t i = 0; i < SOURCES && !failed; i++) {
        struct source *s = c->slots[i].source = calloc(1, sizeof *s);
        if (!s) {
            failed = -ENOMEM;
            break;
        }
        *s = (struct source){.kind = kinds[i], .options = &c->options, .generation = 1};
        s->rate_ns = rate_of(c, kinds[i], &choices[i]);
        s->rate_fixed = choices[i].rate_s > 0;
        failed = series_begin(s);
        if (failed)
            break;
        if (choices[i].off)
            source_fail(s, 0, "switched off");
        else if (s->plain_rows + s->tagged_rows == 0)
            source_fail(s, 0, "needs a higher level than %d", options->level);
        else
            failed = open_source(c, i);
    }
    if (failed) {
        collect_destroy(c);
        return error_set(e, failed, "no memory for the collectors");
    }
    *out = c;
    return 0;
}

void collect_destroy(struct collect *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < SOURCES; i++) {
        struct slot *slot = &c->slots[i];
        if (slot->deadline) {
            deadline_destroy(slot->deadline); // frees the source
        } else {
            free(slot->apart);
            free_source(slot->source);
        }
    }
    free(c);
}

size_t collect_set_count(const struct collect *c)
{
    return c->open_count;
}

void collect_get_set(const struct collect *c, size_t set, struct collect_set *out)
{
    const struct source *s = c->slots[c->open[set]].source;
    *out = (struct collect_set){s->kind->name, s->series, s->count, s->rate_ns, s->generation};
}

bool source_is_seldom(const struct source *s)
{
    return s->rate_ns > SELDOM_NS;
}

bool source_recent(int64_t age_ns)
{
    return age_ns <= DEADLINE_LATE_MAX_NS;
}

int source_ask(const struct source *s, struct deadline *d, int64_t *late_ns)
{
    return s->late_only ? deadline_take(d, late_ns)
                        : deadline_run(d, s->options->deadline_ns, late_ns);
}

void source_late(struct source *s, const char *who, int64_t took_ns)
{
    source_fail(s, 0, "%s%stakes %.2f s to answer: its values %s", who, who[0] ? " " : "",
                (double)took_ns / NS_PER_S,
                source_is_seldom(s) ? "come late" : "are those of the sample before");
}

// Takes the result of a sample. Returns the number of values, or its negative errno.
static int take(struct source *s, int failed, const double *values)
{
    int given = 0;
    for (size_t i = 0; i < s->count; i++)
        given += !store_is_missing(values[i]);
    if (s->changed && s->kind->remake)
        s->kind->remake(s);
    else if (s->changed && series_make(s) == 0)
        s->generation++;
    if (failed)
        return failed;
    if (given == 0 && s->reason[0] == 0 && !s->late_only)
        source_fail(s, 0, "there is nothing to be had now");
    return given;
}

// While the source is away, its thread has all of its memory except `late_only`.
static int sample_slot_apart(struct slot *slot, double *values)
{
    struct source *s = slot->source;
    int64_t late_ns;
    int failed = source_ask(s, slot->deadline, &late_ns);
    slot->away = failed == -ETIMEDOUT;
    slot->hangs_ns = slot->away ? late_ns : 0;
    slot->owes = slot->away && source_recent(late_ns);
    if (failed == -ENODATA)
        return 0;
    if (failed) {
        snprintf(slot->said, sizeof slot->said,
                 "has not answered for %.1f s: left out until it does",
                 (double)slot->hangs_ns / NS_PER_S);
        return failed;
    }
    memcpy(values, slot->apart->values, s->count * sizeof *values);
    int given = take(s, slot->apart->failed, values);
    if (late_ns && given > 0 && s->reason[0] == 0)
        source_late(s, "", late_ns);
    memcpy(slot->said, s->reason, sizeof slot->said);
    slot->away = deadline_done(slot->deadline, !source_is_seldom(s));
    return given;
}

static int sample(struct collect *c, size_t set, int64_t t_ns, bool late_only, double *values)
{
    struct slot *slot = &c->slots[c->open[set]];
    struct source *s = slot->source;
    s->late_only = late_only;
    for (size_t i = 0; i < s->count; i++)
        values[i] = store_missing();
    if (slot->apart)
        return sample_slot_apart(slot, values);
    s->instant_ns = t_ns;
    s->reason[0] = s->hangs[0] = 0;
    s->hangs_ns = 0;
    s->owes = false;
    return take(s, s->kind->sample(s, values), values);
}

int collect_sample(struct collect *c, size_t set, int64_t t_ns, double *values)
{
    return sample(c, set, t_ns, false, values);
}

int collect_sample_late(struct collect *c, size_t set, int64_t t_ns, double *values)
{
    return sample(c, set, t_ns, true, values);
}

void collect_ended(struct collect *c, uint64_t pid, double seconds)
{
    for (size_t i = 0; i < collect_set_count(c); i++) {
        struct source *s = c->slots[c->open[i]].source;
        if (s->kind->ended)
            s->kind->ended(s, pid, seconds);
    }
}

bool collect_hangs(const struct collect *c, size_t set, struct str *part)
{
    const struct slot *slot = &c->slots[c->open[set]];
    if (part)
        *part = slot->apart ? STR("") : str_of(slot->source->hangs);
    return (slot->apart ? slot->hangs_ns : slot->source->hangs_ns) >= c->options.silence_ns;
}

bool collect_owes(const struct collect *c, size_t set)
{
    const struct slot *slot = &c->slots[c->open[set]];
    // The thread of a source does not change its rate.
    return source_is_seldom(slot->source) && (slot->apart ? slot->owes : slot->source->owes);
}

struct str collect_reason(const struct collect *c, struct str source)
{
    for (size_t i = 0; i < SOURCES; i++)
        if (str_eq(kinds[i]->name, source))
            return str_of(c->slots[i].away ? c->slots[i].said : c->slots[i].source->reason);
    return STR("there is no such source");
}
