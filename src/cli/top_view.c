#include "cli/top_view.h"

#include "base/clock.h"
#include "cli/quantity.h"
#include "cli/top_keys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    HEAD = 3,
    VALUE_WIDTH = QUANTITY_WIDTH,
    GRAPH_LEAST = 4,
    GRAPH_MOST = TOP_BUCKETS,
    NAME_LEAST = 12,
    NAME_MOST = 40,
    UNIT_WIDTH = 8,
    LABEL_WIDTH = 15,
    NARROW = 72, // screens with fewer columns have no room for the names of all views and a time
    WIDE = 116,
};

// ---------------------------------------------------------------- head and foot

static int64_t shown_ns(const struct top_model *m)
{
    return m->at_ns ? m->at_ns : m->job.last_ns;
}

static void draw_job(struct screen *s, const struct top_model *m)
{
    const struct top_job *job = &m->job;
    char state[64], length[QUANTITY_MAX] = "";
    int64_t start = job->start_ns ? job->start_ns : job->first_ns,
            end = job->end_ns ? job->end_ns : job->last_ns;
    if (job->ended)
        snprintf(state, sizeof state, "ended, exit code %d", job->exit_code);
    else
        snprintf(state, sizeof state, "%s",
                 job->live    ? "running"
                 : job->nodes ? "recording"
                              : "waiting for data");
    if (start && end > start)
        quantity_duration(end - start, length);
    int right = (int)(strlen(state) + strlen(length)) + 1;
    int left =
        screen_text(s, 0, 0, s->columns - right - 1, STYLE_BOLD, job->id[0] ? job->id : "sonde");
    screen_text(s, 0, left + 1, s->columns - left - right - 2, STYLE_PLAIN, job->command);
    screen_text(s, 0, s->columns - right, (int)strlen(state),
                job->ended && job->exit_code ? STYLE_ALARM : STYLE_GOOD, state);
    screen_text(s, 0, s->columns - (int)strlen(length), QUANTITY_MAX, STYLE_PLAIN, length);
}

static void draw_facts(struct screen *s, const struct top_model *m)
{
    const struct top_job *job = &m->job;
    char points[QUANTITY_MAX], dropped[QUANTITY_MAX];
    if (job->trouble[0]) {
        screen_text(s, 1, 0, s->columns, STYLE_ALARM, job->trouble);
        return;
    }
    quantity_text((double)job->points, "", points);
    quantity_text((double)job->dropped, "", dropped);
    int at = screen_printf(s, 1, 0, s->columns, STYLE_PLAIN, "%zu node%s", job->nodes,
                           job->nodes == 1 ? "" : "s");
    bool narrow = s->columns < NARROW; // on a narrow screen, only facts that need action are shown
    if (job->level && !narrow)
        at += screen_printf(s, 1, at, s->columns - at, STYLE_PLAIN, "  level %d", job->level);
    if (!narrow)
        at += screen_printf(s, 1, at, s->columns - at, STYLE_PLAIN, "  %s points", points);
    at += screen_printf(s, 1, at, s->columns - at, job->dropped ? STYLE_ALARM : STYLE_PLAIN,
                        "  %s dropped", dropped);
    if (job->restarts)
        at += screen_printf(s, 1, at, s->columns - at, STYLE_BOLD, "  %d restart%s", job->restarts,
                            job->restarts == 1 ? "" : "s");
    if (m->slow_count)
        at += screen_printf(s, 1, at, s->columns - at, STYLE_ALARM, "  %zu slow (key 7)",
                            m->slow_count);
    if (m->silent_count)
        at += screen_printf(s, 1, at, s->columns - at, STYLE_ALARM, "  %zu silent (key 7)",
                            m->silent_count);
    if (job->recording_ns) {
        char clock[32];
        quantity_time(job->recording_ns, clock);
        at += screen_printf(s, 1, at, s->columns - at, STYLE_BOLD,
                            "  the job answers no more since %s: its recording", clock + 11);
    }
    if (job->missing_count)
        screen_printf(s, 1, at + 2, s->columns - at - 2, STYLE_ALARM, "%zu missing: %s",
                      job->missing_count, job->missing);
}

// Writes the name of the current view; on a narrow screen, only the digits of the others.
static int draw_view_names(struct screen *s, const struct top_model *m)
{
    static const char *const names[TOP_VIEWS] = {"Nodes",  "GPUs",  "Processes", "Metrics",
                                                 "Events", "Ranks", "Findings"};
    static const char *const shorter[TOP_VIEWS] = {"Nodes",  "GPUs",  "Procs", "Metrics",
                                                   "Events", "Ranks", "Finds"};
    bool wide = s->columns >= WIDE;
    int at = 0;
    for (int i = 0; i < TOP_VIEWS; i++) {
        bool here = (int)m->kind == i, named = here || s->columns >= NARROW;
        at += screen_printf(s, 2, at, s->columns - at, here ? STYLE_SELECTED : STYLE_DIM,
                            named ? "%d %s" : "%d", i + 1, wide ? names[i] : shorter[i]);
        at += 1 + wide;
    }
    return at;
}

// Writes the opened rows: "> n1 > gpu 0 > loss".
static int draw_path(struct screen *s, const struct top_model *m)
{
    struct buf path = {0};
    if (m->node[0])
        buf_printf(&path, " > %s", m->node);
    if (m->member_key[0])
        buf_printf(&path, " > %s %s", m->member_key, m->member);
    if (m->kind == TOP_SERIES)
        buf_printf(&path, " > %s", m->metric);
    int width = s->columns - 16,
        at = screen_text(s, 2, 0, width, STYLE_BOLD, path.size ? buf_cstr(&path) + 1 : "");
    buf_free(&path);
    return at + 1;
}

static void draw_views(struct screen *s, const struct top_model *m)
{
    char clock[32], bucket[QUANTITY_MAX], time[80] = "";
    int at = m->kind < TOP_VIEWS ? draw_view_names(s, m) : draw_path(s, m);
    if (!shown_ns(m))
        return;
    const char *word = m->at_ns ? m->paused ? "at" : "plays" : m->job.live ? "live" : "end";
    quantity_duration(m->bucket_ns, bucket);
    quantity_time(shown_ns(m), clock);
    snprintf(time, sizeof time, "%s %s, bars of %s", word, clock, bucket);
    if ((int)strlen(time) > s->columns - at - 1) // only the time of day fits
        snprintf(time, sizeof time, "%s %s", word, clock + 11);
    int width = (int)strlen(time);
    screen_text(s, 2, s->columns - width, width, m->at_ns ? STYLE_ALARM : STYLE_PLAIN, time);
}

static void draw_foot(struct screen *s, const struct top_model *m)
{
    int row = s->rows - 1;
    if (m->typing) {
        screen_printf(s, row, 0, s->columns, STYLE_BOLD, "filter: %s_", m->filter);
        return;
    }
    int at = 0;
    if (m->filter[0])
        at = screen_printf(s, row, 0, s->columns / 2, STYLE_BOLD, "filter: %s  ", m->filter);
    screen_text(
        s, row, at, s->columns - at, STYLE_DIM,
        s->columns >= WIDE
            ? "q quit  ? help  1-7 views  Enter open  Esc back  s sort  r reverse  / filter  "
              "Left Right time  Space pause  End now"
            : "q quit ? help 1-7 view Enter open Esc back s sort r rev / filter <-> time");
}

static const char *const explanations[] = {
    "A bar is a share of 100 %, a sparkline the last 60 bars of time at most.",
    "- is no value, ! a member that is slow or silent now (view 7 says why).",
};

// Writes a line of the help. Returns false after the last one.
static bool help_line(size_t line, char out[160])
{
    for (size_t i = 0; i < top_key_count; i++)
        if ((top_keys[i].label || top_keys[i].does) && line-- == 0) {
            const char *label = top_keys[i].label ? top_keys[i].label : "";
            snprintf(out, 160, "%s%*s%s", label, LABEL_WIDTH - screen_width(label), "",
                     top_keys[i].does);
            return true;
        }
    if (line >= sizeof explanations / sizeof explanations[0])
        return false;
    snprintf(out, 160, "%s", explanations[line]);
    return true;
}

static void draw_help(struct screen *s, struct top_model *m)
{
    char text[160];
    size_t lines = 0, page = (size_t)(s->rows > HEAD + 1 ? s->rows - HEAD - 1 : 1);
    while (help_line(lines, text))
        lines++;
    size_t most = lines > page ? lines - page : 0;
    m->help_scroll = m->help_scroll > most ? most : m->help_scroll;
    for (size_t i = 0; i < page && help_line(m->help_scroll + i, text); i++)
        screen_text(s, HEAD + (int)i, 1, s->columns - 1, STYLE_PLAIN, text);
}

// ---------------------------------------------------------------- tables

struct layout {
    int name;
    size_t count, columns[TOP_COLUMNS_MAX];               // columns that fit and have values
    int graph[TOP_COLUMNS_MAX];                           // width of the bar or sparkline; 0: none
    double least[TOP_COLUMNS_MAX], most[TOP_COLUMNS_MAX]; // scale of a column's sparklines
};

static bool is_share(const struct top_column *c)
{
    return c->unit && strcmp(c->unit, "percent") == 0;
}

// True if rows have units of their own, in a column after the others.
static bool has_units(const struct top_table *t)
{
    return t->by_metric || t->all_tags;
}

static void widen_extent(const double *values, int count, double *least, double *most)
{
    for (int i = 0; i < count; i++)
        if (isfinite(values[i])) {
            *least = values[i] < *least ? values[i] : *least;
            *most = values[i] > *most ? values[i] : *most;
        }
}

// Chooses the scale. The rows of a column share it, so that they are comparable. For built-in
// metrics it begins at 0, so that the noise of an idle node looks small. For users' metrics it
// begins at their least value.
static void scale(const struct top_table *t, struct layout *l)
{
    double values[TOP_BUCKETS];
    for (size_t k = 0; k < l->count && !t->by_metric; k++) {
        size_t c = l->columns[k];
        int count = l->graph[k] < TOP_BUCKETS ? l->graph[k] : TOP_BUCKETS;
        l->least[c] = INFINITY;
        l->most[c] = -INFINITY;
        for (size_t i = 0; i < t->count && !is_share(&t->columns[c]); i++) {
            top_table_history(t, &t->rows[i], c, count, values);
            widen_extent(values, count, &l->least[c], &l->most[c]);
        }
        if (!t->own_columns && !t->all_tags && l->least[c] > 0)
            l->least[c] = 0;
    }
}

static void lay_out(const struct screen *s, const struct top_table *t, struct layout *l)
{
    *l = (struct layout){.name = NAME_LEAST};
    for (size_t i = 0; i < t->count; i++) {
        int width = (int)strlen(t->rows[i].name);
        l->name = width > l->name ? width : l->name;
    }
    int most = s->columns / 3 < NAME_MOST ? s->columns / 3 : NAME_MOST;
    l->name = l->name > most ? most : l->name;
    int unit = has_units(t) ? UNIT_WIDTH + 1 : 0;
    int left = s->columns - l->name - unit;
    for (size_t i = 0; i < t->column_count && left > VALUE_WIDTH; i++)
        if (top_table_has(t, i) || (i < 2 && t->count && !t->rows_end)) {
            l->columns[l->count++] = i;
            left -= VALUE_WIDTH + 1;
        }
    for (int step = 0; step < GRAPH_MOST && l->count; step++)
        for (size_t i = 0; i < l->count; i++) {
            bool grows = step >= GRAPH_LEAST || step == 0;
            int by = step == 0 ? GRAPH_LEAST + 1 : 1; // including the blank before it
            if (grows && left >= by && (step == 0 || l->graph[i])) {
                l->graph[i] += step == 0 ? GRAPH_LEAST : 1;
                left -= by;
            }
        }
    // In tables with few columns, the first sparkline takes the remaining width.
    if (l->count && l->graph[0] && left > 0 && !is_share(&t->columns[l->columns[0]]))
        l->graph[0] = l->graph[0] + left < TOP_BUCKETS ? l->graph[0] + left : TOP_BUCKETS;
    scale(t, l);
}

// Draws a sparkline. A metric in a table of metrics has a scale of its own.
static void draw_spark(struct screen *s, int row, int at, int width, const struct top_table *t,
                       const struct layout *l, const struct top_row *r, size_t c)
{
    double values[TOP_BUCKETS], least = t->by_metric ? INFINITY : l->least[c],
                                most = t->by_metric ? -INFINITY : l->most[c];
    int count = width < TOP_BUCKETS ? width : TOP_BUCKETS;
    top_table_history(t, r, c, count, values);
    if (t->by_metric)
        widen_extent(values, count, &least, &most);
    screen_spark(s, row, at + width - count, values, count, least, most, STYLE_SPARK);
}

static void draw_cell(struct screen *s, int row, int at, int graph, const struct top_table *t,
                      const struct layout *l, const struct top_row *r, size_t c)
{
    char text[QUANTITY_MAX];
    const struct top_column *column = &t->columns[c];
    double value = top_table_last(t, r, c);
    bool share = is_share(column);
    bool high = share && value >= 90;
    quantity_text(value, column->unit ? column->unit : r->unit, text);
    screen_right(s, row, at, VALUE_WIDTH, high ? STYLE_BAR_HIGH : STYLE_PLAIN, text);
    if (!graph)
        return;
    if (share && graph < 2 * GRAPH_LEAST) {
        screen_bar(s, row, at + VALUE_WIDTH + 1, graph, value / 100,
                   high ? STYLE_BAR_HIGH : STYLE_BAR);
    } else if (share) { // there is room for both
        int bar = graph / 2;
        screen_bar(s, row, at + VALUE_WIDTH + 1, bar, value / 100,
                   high ? STYLE_BAR_HIGH : STYLE_BAR);
        double values[TOP_BUCKETS];
        top_table_history(t, r, c, graph - bar - 1, values);
        screen_spark(s, row, at + VALUE_WIDTH + 2 + bar, values, graph - bar - 1, 0, 100,
                     STYLE_SPARK);
    } else {
        draw_spark(s, row, at + VALUE_WIDTH + 1, graph, t, l, r, c);
    }
}

static void draw_titles(struct screen *s, int row, const struct top_model *m,
                        const struct top_table *t, const struct layout *l, size_t rows)
{
    char title[96];
    const char *up = m->descending ? (s->utf8 ? "▼" : "v") : (s->utf8 ? "▲" : "^");
    screen_style(s, row, 0, s->columns, STYLE_TITLE);
    snprintf(title, sizeof title, "%s%s %zu", t->title, m->sort < 0 ? up : "", rows);
    screen_text(s, row, 0, l->name, STYLE_TITLE, title);
    int at = l->name + 1;
    for (size_t i = 0; i < l->count; i++) {
        bool sorted = (size_t)m->sort == l->columns[i];
        snprintf(title, sizeof title, "%s%s", t->columns[l->columns[i]].title, sorted ? up : "");
        int room = VALUE_WIDTH + (l->graph[i] ? l->graph[i] + 1 : 0);
        if (screen_width(title) <= VALUE_WIDTH)
            screen_right(s, row, at, VALUE_WIDTH, STYLE_TITLE, title);
        else // the name of a metric extends over its sparkline
            screen_text(s, row, at, room, STYLE_TITLE, title);
        at += room + 1;
    }
}

static void draw_row(struct screen *s, int row, const struct top_table *t, const struct layout *l,
                     const struct top_row *r, bool selected, bool marked)
{
    screen_text(s, row, 0, l->name, STYLE_PLAIN, r->name);
    int at = l->name + 1;
    for (size_t i = 0; i < l->count; i++) {
        draw_cell(s, row, at, l->graph[i], t, l, r, l->columns[i]);
        at += VALUE_WIDTH + 1 + (l->graph[i] ? l->graph[i] + 1 : 0);
    }
    if (has_units(t))
        screen_text(s, row, at, UNIT_WIDTH, STYLE_DIM, quantity_unit(r->unit, r->counter));
    if (selected)
        screen_style(s, row, 0, l->name, STYLE_SELECTED);
    if (marked)
        screen_text(s, row, l->name, 1, STYLE_ALARM, "!");
}

static void note_row(struct top_model *m, int line, size_t row)
{
    if (line >= 0 && line < TOP_LINES_MAX)
        m->row_of[line] = row + 1;
}

// Draws lines [m->scroll, m->scroll + page) of all tables: a table's title and rows are lines, and
// a blank line is between tables.
static void draw_tables(struct screen *s, struct top_model *m)
{
    int top = HEAD, bottom = s->rows - 1;
    size_t before = 0; // number of rows in the tables above
    int line = top - (int)m->scroll;
    for (size_t k = 0; k < m->table_count; k++) {
        const struct top_table *t = &m->tables[k];
        if (!top_table_visible(t))
            continue;
        size_t *order = malloc((t->count + 1) * sizeof *order);
        size_t n = order ? top_table_order(m, t, order) : 0;
        struct layout l;
        lay_out(s, t, &l);
        int title = line < top ? top : line; // the title stays visible while its rows scroll
        if (title < bottom && (line >= top || line + (int)n >= top))
            draw_titles(s, title, m, t, &l, n);
        if (!n && line + 1 < bottom && line + 1 > top)
            screen_text(s, line + 1, 2, s->columns - 2, STYLE_DIM,
                        m->filter[0] && t->count ? "no row has this in its name" : t->empty);
        for (size_t i = 0; i < n; i++) {
            int row = line + 1 + (int)i;
            if (row <= title || row >= bottom)
                continue;
            note_row(m, row, before + i);
            draw_row(s, row, t, &l, &t->rows[order[i]], before + i == m->selected,
                     top_model_marked(m, t, &t->rows[order[i]]));
        }
        free(order);
        before += n;
        line += (int)(n ? n : 1) + 2;
    }
}

static void draw_event(struct screen *s, int row, const struct top_model *m,
                       const struct top_event *e, bool selected)
{
    char when[32], length[QUANTITY_MAX];
    // Nested spans are adjacent only in the default order.
    int indent = m->sort < 0 && !m->descending ? 2 * e->depth : 0, at = 17 + indent;
    quantity_time(e->start_ns, when);
    quantity_duration(shown_ns(m) > e->start_ns ? shown_ns(m) - e->start_ns : 0, length);
    screen_text(s, row, 0, 8, STYLE_DIM, when + 11);
    screen_right(s, row, 9, 7, e->annotation ? STYLE_DIM : STYLE_BOLD, length);
    at +=
        screen_text(s, row, at, s->columns - at, selected ? STYLE_SELECTED : STYLE_PLAIN, e->text);
    at += 1 + screen_text(s, row, at + 1, s->columns - at - 1, STYLE_SPARK, e->node);
    screen_text(s, row, at + 1, s->columns - at - 1, STYLE_DIM, e->tags);
}

static void draw_events(struct screen *s, struct top_model *m)
{
    static const char *const titles[2][3] = {
        {"SPANS THAT RUN, BY PROCESS", "SPANS THAT RUN, BY TIME", "SPANS THAT RUN, BY NAME"},
        {"ANNOTATIONS", "ANNOTATIONS", "ANNOTATIONS BY NAME"}};
    size_t order[TOP_EVENTS_MAX];
    int row = HEAD, bottom = s->rows - 1;
    bool titled[2] = {false, false};
    size_t n = top_model_events(m, order);
    if (!n)
        screen_text(
            s, row, 2, s->columns - 2, STYLE_DIM,
            m->filter[0] && m->event_count
                ? "no event has this in its text, node or tags"
                : "no span runs at this time, and there are no annotations in the 6 hours before");
    for (size_t i = m->scroll; i < n && row < bottom; i++) {
        const struct top_event *e = &m->events[order[i]];
        if (!titled[e->annotation]) {
            titled[e->annotation] = true;
            screen_style(s, row, 0, s->columns, STYLE_TITLE);
            screen_text(s, row++, 0, s->columns, STYLE_TITLE, titles[e->annotation][m->sort + 1]);
            if (row == bottom)
                break;
        }
        note_row(m, row, i);
        draw_event(s, row++, m, e, i == m->selected);
    }
}

// Draws "slow  rank 3 on n2 takes 1.62 times the others' step_seconds since 03:00:12", or "silent
// rank 3 on n2 gives no step_seconds since 03:00:12; the others go on".
static void draw_finding(struct screen *s, int row, const struct top_finding *f, bool selected)
{
    char when[32];
    int at = 9;
    quantity_time(f->now ? f->since_ns : f->until_ns, when);
    screen_text(s, row, 0, at, f->now ? STYLE_ALARM : STYLE_DIM,
                f->silent ? "silent"
                : f->now  ? "slow"
                          : "was slow");
    at +=
        screen_text(s, row, at, s->columns - at, selected ? STYLE_SELECTED : STYLE_BOLD, f->member);
    if (f->silent)
        at += screen_text(s, row, at, s->columns - at, STYLE_PLAIN, " gives no ");
    else
        at += screen_printf(s, row, at, s->columns - at, STYLE_PLAIN, " %s %.2f times %s ",
                            f->now ? "takes" : "took", f->factor,
                            strcmp(f->against, "others") == 0 ? "the others'" : "its own best");
    at += screen_text(s, row, at, s->columns - at, STYLE_SPARK, f->what);
    screen_printf(s, row, at, s->columns - at, STYLE_DIM, " %s %s%s", f->now ? "since" : "until",
                  when + 11, f->silent ? "; the others go on" : "");
}

static void draw_findings(struct screen *s, struct top_model *m)
{
    static const char *const titles[] = {"FINDINGS, THE WORST FIRST", "FINDINGS BY TIME",
                                         "FINDINGS BY MEMBER"};
    size_t order[TOP_FINDINGS_MAX], n = top_model_findings(m, order);
    int row = HEAD, bottom = s->rows - 1;
    screen_style(s, row, 0, s->columns, STYLE_TITLE);
    screen_text(s, row++, 0, s->columns, STYLE_TITLE, titles[m->sort + 1]);
    if (!n)
        screen_text(s, row, 2, s->columns - 2, STYLE_DIM,
                    m->findings_trouble[0]             ? m->findings_trouble
                    : m->filter[0] && m->finding_count ? "no finding has this in its text"
                                                       : "nothing unusual in the half hour before");
    for (size_t i = m->scroll; i < n && row < bottom; i++) {
        note_row(m, row, i);
        draw_finding(s, row++, &m->findings[order[i]], i == m->selected);
    }
}

size_t top_view_page(const struct screen *s)
{
    return s->rows > HEAD + 3 ? (size_t)(s->rows - HEAD - 2) : 1;
}

// Returns the line of the selected row, counted as in draw_tables.
static size_t selected_line(const struct top_model *m)
{
    size_t before = 0, line = 0;
    if (m->kind == TOP_EVENTS || m->kind == TOP_FINDINGS)
        return m->selected;
    for (size_t k = 0; k < m->table_count; k++) {
        if (!top_table_visible(&m->tables[k]))
            continue;
        size_t n = top_table_shown(m, &m->tables[k]);
        if (m->selected < before + n)
            return line + (m->selected - before);
        before += n;
        line += (n ? n : 1) + 2;
    }
    return line;
}

void top_view_draw(struct screen *s, struct top_model *m)
{
    size_t rows = top_model_rows(m), page = top_view_page(s);
    screen_clear(s);
    memset(m->row_of, 0, sizeof m->row_of);
    m->selected = rows && m->selected >= rows ? rows - 1 : rows ? m->selected : 0;
    size_t line = selected_line(m);
    if (line < m->scroll)
        m->scroll = line;
    if (line >= m->scroll + page)
        m->scroll = line - page + 1;
    if (!m->selected)
        m->scroll = 0;
    draw_job(s, m);
    draw_facts(s, m);
    draw_views(s, m);
    if (m->help)
        draw_help(s, m);
    else if (m->kind == TOP_EVENTS)
        draw_events(s, m);
    else if (m->kind == TOP_FINDINGS)
        draw_findings(s, m);
    else
        draw_tables(s, m);
    draw_foot(s, m);
}
