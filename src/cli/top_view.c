#include "cli/top_view.h"

#include "base/clock.h"
#include "cli/quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    HEAD = 3,
    VALUE_WIDTH = QUANTITY_WIDTH,
    GRAPH_LEAST = 4,
    GRAPH_MOST = 24,
    NAME_LEAST = 12,
    NAME_MOST = 40,
    UNIT_WIDTH = 8,
};

static void clock_text(int64_t t_ns, char out[32])
{
    time_t t = (time_t)(t_ns / NS_PER_S);
    struct tm local;
    localtime_r(&t, &local);
    strftime(out, 32, "%Y-%m-%d %H:%M:%S", &local);
}

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
    if (job->level)
        at += screen_printf(s, 1, at, s->columns - at, STYLE_PLAIN, "  level %d", job->level);
    at += screen_printf(s, 1, at, s->columns - at, STYLE_PLAIN, "  %s points  ", points);
    at += screen_printf(s, 1, at, s->columns - at, job->dropped ? STYLE_ALARM : STYLE_PLAIN,
                        "%s dropped", dropped);
    if (job->missing_count)
        screen_printf(s, 1, at + 2, s->columns - at - 2, STYLE_ALARM, "%zu missing: %s",
                      job->missing_count, job->missing);
}

static void draw_views(struct screen *s, const struct top_model *m)
{
    static const char *const names[] = {"1 Nodes", "2 GPUs", "3 Processes", "4 Metrics",
                                        "5 Events"};
    static const char *const narrow[] = {"1 Nodes", "2 GPUs", "3 Procs", "4 Metrics", "5 Events"};
    bool wide = s->columns >= 100;
    char clock[32], bucket[QUANTITY_MAX], time[80] = "";
    int at = 0;
    for (int i = 0; i < 5; i++) {
        bool here = (int)m->kind == i;
        at += screen_text(s, 2, at, s->columns - at, here ? STYLE_SELECTED : STYLE_DIM,
                          wide ? names[i] : narrow[i]);
        at += 1 + wide;
    }
    if (m->kind == TOP_NODE || m->kind == TOP_SERIES)
        at += screen_printf(s, 2, at, s->columns - at - 16, STYLE_BOLD, "> %s",
                            m->kind == TOP_NODE ? m->node : m->metric);
    if (!shown_ns(m))
        return;
    const char *word = m->at_ns ? m->paused ? "at" : "plays" : m->job.live ? "live" : "end";
    quantity_duration(m->bucket_ns, bucket);
    clock_text(shown_ns(m), clock);
    snprintf(time, sizeof time, "%s %s, bars of %s", word, clock, bucket);
    if ((int)strlen(time) > s->columns - at - 1) // the time of day is what matters
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
        s->columns >= 116
            ? "q quit  ? help  1-5 views  Enter open  Esc back  s sort  r reverse  / filter  "
              "Left Right time  Space pause  End now"
            : "q quit ? help 1-5 view Enter open Esc back s sort r rev / filter <-> time");
}

static void draw_help(struct screen *s)
{
    static const char *const lines[] = {
        "sonde top - the job in a terminal",
        "",
        "1 2 3 4 5   nodes, GPUs, processes, metrics of your programs, events",
        "Tab         the next view",
        "Up Down     choose a row (also k j); PgUp PgDn by pages",
        "Enter       open the row: a node, or a metric's series; Esc goes back",
        "s           sort by the next column, then by name; S the other way round",
        "r           reverse the order",
        "/           filter rows by a part of their name; Enter keeps, Esc clears it",
        "Left Right  back and forth in time (also h l); [ ] by a whole window",
        "Home End    to the first window, to the newest",
        "Space       pause, go on",
        "+ -         shorter or longer bars (1 s to 10 min)",
        "q           quit",
        "",
        "A bar is a share of 100 %. A sparkline has a character for each bar's",
        "time, the newest at its right; from 0, or the least value, to the highest.",
        "- is no value: nothing is drawn where nothing was recorded.",
    };
    for (int i = 0; i < (int)(sizeof lines / sizeof lines[0]); i++)
        screen_text(s, HEAD + i, 2, s->columns - 2, i ? STYLE_PLAIN : STYLE_BOLD, lines[i]);
}

// ---------------------------------------------------------------- tables

struct layout {
    int name;
    size_t count, columns[TOP_COLUMNS_MAX]; // that fit and have values
    int graph[TOP_COLUMNS_MAX];             // columns of bar or sparkline; 0: none
};

static bool is_share(const struct top_column *c)
{
    return c->unit && strcmp(c->unit, "percent") == 0;
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
    int unit = t->columns[0].metric ? 0 : UNIT_WIDTH + 1;
    int left = s->columns - l->name - unit;
    for (size_t i = 0; i < t->column_count && left > VALUE_WIDTH; i++)
        if (top_table_has(t, i) || (i < 2 && t->count && !t->rows_end)) {
            l->columns[l->count++] = i;
            left -= VALUE_WIDTH + 1;
        }
    for (int step = 0; step < GRAPH_MOST && l->count; step++)
        for (size_t i = 0; i < l->count; i++) {
            bool grows = step >= GRAPH_LEAST || step == 0;
            int by = step == 0 ? GRAPH_LEAST + 1 : 1; // with the blank before it
            if (grows && left >= by && (step == 0 || l->graph[i])) {
                l->graph[i] += step == 0 ? GRAPH_LEAST : 1;
                left -= by;
            }
        }
    // Of tables with few columns the first sparkline takes the rest.
    if (l->count && l->graph[0] && left > 0 && !is_share(&t->columns[l->columns[0]]))
        l->graph[0] = l->graph[0] + left < TOP_BUCKETS ? l->graph[0] + left : TOP_BUCKETS;
}

static void extent_of(const double *values, int count, double *least, double *most)
{
    *least = INFINITY;
    *most = -INFINITY;
    for (int i = 0; i < count; i++)
        if (isfinite(values[i])) {
            *least = values[i] < *least ? values[i] : *least;
            *most = values[i] > *most ? values[i] : *most;
        }
}

// From 0 where the column's unit has one (bytes, rates), so that noise of an idle node is no
// mountain; a metric of users from its own least.
static void draw_spark(struct screen *s, int row, int at, int width, const struct top_table *t,
                       const struct top_row *r, size_t c)
{
    double values[TOP_BUCKETS], least, most;
    int count = width < TOP_BUCKETS ? width : TOP_BUCKETS;
    top_table_history(t, r, c, count, values);
    extent_of(values, count, &least, &most);
    if (t->columns[c].metric && least > 0)
        least = 0;
    screen_spark(s, row, at + width - count, values, count, least, most, STYLE_SPARK);
}

static void draw_cell(struct screen *s, int row, int at, int graph, const struct top_table *t,
                      const struct top_row *r, size_t c)
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
    } else if (share) { // room for both
        int bar = graph / 2;
        screen_bar(s, row, at + VALUE_WIDTH + 1, bar, value / 100,
                   high ? STYLE_BAR_HIGH : STYLE_BAR);
        double values[TOP_BUCKETS];
        top_table_history(t, r, c, graph - bar - 1, values);
        screen_spark(s, row, at + VALUE_WIDTH + 2 + bar, values, graph - bar - 1, 0, 100,
                     STYLE_SPARK);
    } else {
        draw_spark(s, row, at + VALUE_WIDTH + 1, graph, t, r, c);
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
        screen_right(s, row, at, VALUE_WIDTH, STYLE_TITLE, title);
        at += VALUE_WIDTH + 1 + (l->graph[i] ? l->graph[i] + 1 : 0);
    }
}

static void draw_row(struct screen *s, int row, const struct top_table *t, const struct layout *l,
                     const struct top_row *r, bool selected)
{
    screen_text(s, row, 0, l->name, STYLE_PLAIN, r->name);
    int at = l->name + 1;
    for (size_t i = 0; i < l->count; i++) {
        draw_cell(s, row, at, l->graph[i], t, r, l->columns[i]);
        at += VALUE_WIDTH + 1 + (l->graph[i] ? l->graph[i] + 1 : 0);
    }
    if (!t->columns[0].metric)
        screen_text(s, row, at, UNIT_WIDTH, STYLE_DIM, quantity_unit(r->unit, r->counter));
    if (selected)
        screen_style(s, row, 0, l->name, STYLE_SELECTED);
}

// Draws lines [m->scroll, m->scroll + page) of all tables below each other; a table's title and
// rows are lines, and a blank between tables.
static void draw_tables(struct screen *s, struct top_model *m)
{
    int top = HEAD, bottom = s->rows - 1;
    size_t before = 0; // rows of the tables above
    int line = top - (int)m->scroll;
    for (size_t k = 0; k < m->table_count; k++) {
        const struct top_table *t = &m->tables[k];
        size_t *order = malloc((t->count + 1) * sizeof *order);
        size_t n = order ? top_table_order(m, t, order) : 0;
        struct layout l;
        lay_out(s, t, &l);
        int title = line < top ? top : line; // stays in sight while its rows scroll
        if (title < bottom && (line >= top || line + (int)n >= top))
            draw_titles(s, title, m, t, &l, n);
        if (!n && line + 1 < bottom && line + 1 > top)
            screen_text(s, line + 1, 2, s->columns - 2, STYLE_DIM,
                        m->filter[0] && t->count ? "no row has this in its name" : t->empty);
        for (size_t i = 0; i < n; i++) {
            int row = line + 1 + (int)i;
            if (row > title && row < bottom)
                draw_row(s, row, t, &l, &t->rows[order[i]], before + i == m->selected);
        }
        free(order);
        before += n;
        line += (int)(n ? n : 1) + 2;
    }
}

static void draw_events(struct screen *s, const struct top_model *m)
{
    int row = HEAD, bottom = s->rows - 1;
    bool titled[2] = {false, false};
    if (!m->event_count)
        screen_text(
            s, row, 2, s->columns - 2, STYLE_DIM,
            "no span runs at this time, and there are no annotations in the 6 hours before");
    for (size_t i = m->scroll; i < m->event_count && row < bottom; i++) {
        const struct top_event *e = &m->events[i];
        char when[32], length[QUANTITY_MAX];
        if (!titled[e->annotation]) {
            titled[e->annotation] = true;
            screen_style(s, row, 0, s->columns, STYLE_TITLE);
            screen_printf(s, row++, 0, s->columns, STYLE_TITLE, "%s",
                          e->annotation ? "ANNOTATIONS" : "SPANS THAT RUN");
            if (row == bottom)
                break;
        }
        clock_text(e->start_ns, when);
        quantity_duration(shown_ns(m) > e->start_ns ? shown_ns(m) - e->start_ns : 0, length);
        screen_text(s, row, 0, 8, STYLE_DIM, when + 11);
        screen_right(s, row, 9, 7, e->annotation ? STYLE_DIM : STYLE_BOLD, length);
        int at = 17;
        at += screen_text(s, row, at, s->columns - at,
                          i == m->selected ? STYLE_SELECTED : STYLE_PLAIN, e->text);
        at += 1 + screen_text(s, row, at + 1, s->columns - at - 1, STYLE_SPARK, e->node);
        screen_text(s, row, at + 1, s->columns - at - 1, STYLE_DIM, e->tags);
        row++;
    }
}

size_t top_view_page(const struct screen *s)
{
    return s->rows > HEAD + 3 ? (size_t)(s->rows - HEAD - 2) : 1;
}

// The line of the selected row among those of draw_tables.
static size_t selected_line(const struct top_model *m)
{
    size_t before = 0, line = 0;
    if (m->kind == TOP_EVENTS)
        return m->selected;
    for (size_t k = 0; k < m->table_count; k++) {
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
        draw_help(s);
    else if (m->kind == TOP_EVENTS)
        draw_events(s, m);
    else
        draw_tables(s, m);
    draw_foot(s, m);
}
