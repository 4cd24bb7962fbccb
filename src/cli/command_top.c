#include "cli/colour.h"
#include "cli/commands.h"
#include "cli/local_zone.h"
#include "cli/screen.h"
#include "cli/terminal.h"
#include "cli/top_feed.h"
#include "cli/top_keys.h"
#include "cli/top_view.h"

#include "base/clock.h"
#include "base/log.h"
#include "client/client.h"
#include "query/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// Frames are half a second apart, because nodes are sampled twice a second. A request may take 5 s;
// if a key arrives meanwhile, it is handled after 0.3 s.
enum { PLACES_MAX = 4, TICK_MS = 500, WHEEL_ROWS = 3, ASK_MS = 5000, PATIENCE_MS = 300 };

static const int64_t BUCKETS_NS[] = {
    INT64_C(1) * NS_PER_S,  INT64_C(2) * NS_PER_S,   INT64_C(5) * NS_PER_S,  INT64_C(15) * NS_PER_S,
    INT64_C(60) * NS_PER_S, INT64_C(300) * NS_PER_S, INT64_C(600) * NS_PER_S};
enum { LIST_FIELDS = 2 }; // sort orders of events and findings, beside the default
enum { BUCKETS = sizeof BUCKETS_NS / sizeof BUCKETS_NS[0] };

// A view from which the user has opened a row. The model's node and member define its contents.
struct place {
    enum top_kind kind;
    int sort;
    bool descending;
    size_t selected, scroll;
    char filter[TOP_TEXT_MAX];
};

struct top {
    struct top_model model;
    struct top_feed feed;
    struct screen now, before;
    bool utf8, colour, drawn; // drawn: the terminal shows `before`
    int64_t data_request_since_ns, played_ns;
    struct place places[PLACES_MAX]; // the targets of Escape, the last one first
    size_t place_count;
    bool on_terminal;
};

// True if a request must end, because a key or a resize waits.
static bool key_waits(void *user)
{
    const struct top *top = user;
    return top->on_terminal && terminal_has_key() &&
           clock_monotonic_ns() - top->data_request_since_ns > (int64_t)PATIENCE_MS * NS_PER_MS;
}

static bool ask(struct top *top)
{
    top->data_request_since_ns = clock_monotonic_ns();
    return top_feed_tick(&top->feed, &top->model);
}

// ---------------------------------------------------------------- time

static int64_t newest_ns(const struct top *top)
{
    return top->model.job.last_ns;
}

static void go_to(struct top *top, int64_t t_ns)
{
    struct top_model *m = &top->model;
    int64_t first = m->job.first_ns + m->bucket_ns;
    bool back = !m->at_ns || t_ns < m->at_ns;
    if (!newest_ns(top))
        return;
    m->at_ns = t_ns >= newest_ns(top) ? 0 : t_ns < first ? first : t_ns;
    m->paused = m->at_ns != 0;
    if (back || !m->at_ns)
        top_model_forget(m);
    top_feed_due(&top->feed);
}

static void move(struct top *top, int buckets)
{
    int64_t from = top->model.at_ns ? top->model.at_ns : newest_ns(top);
    go_to(top, from + buckets * top->model.bucket_ns);
}

static void pause_or_play(struct top *top)
{
    struct top_model *m = &top->model;
    if (!newest_ns(top))
        return;
    if (!m->at_ns)
        m->at_ns = newest_ns(top); // freezes the displayed time
    m->paused = !m->paused;
    top->played_ns = clock_monotonic_ns();
}

// While a recording plays, its time advances with the clock.
static void play(struct top *top)
{
    struct top_model *m = &top->model;
    int64_t now = clock_monotonic_ns();
    if (!m->at_ns || m->paused)
        return;
    m->at_ns += now - top->played_ns;
    top->played_ns = now;
    if (m->at_ns >= newest_ns(top)) {
        m->at_ns = 0;
        m->paused = false;
    }
}

static void widen(struct top *top, int step)
{
    struct top_model *m = &top->model;
    int i = 0;
    while (i + 1 < BUCKETS && BUCKETS_NS[i] < m->bucket_ns)
        i++;
    i += step;
    m->bucket_ns = BUCKETS_NS[i < 0 ? 0 : i >= BUCKETS ? BUCKETS - 1 : i];
    top_model_forget(m);
}

// ---------------------------------------------------------------- views

static void show(struct top *top, enum top_kind kind, const char *of)
{
    top_model_show(&top->model, kind, of);
    top_feed_due(&top->feed);
}

// Saves the view for Escape, and opens a row of it. `of` may be a text of the model.
static void open_view(struct top *top, enum top_kind kind, const char *of)
{
    struct top_model *m = &top->model;
    char name[TOP_TEXT_MAX];
    if (top->place_count == PLACES_MAX)
        return;
    struct place *p = &top->places[top->place_count++];
    *p = (struct place){.kind = m->kind,
                        .sort = m->sort,
                        .descending = m->descending,
                        .selected = m->selected,
                        .scroll = m->scroll};
    snprintf(p->filter, sizeof p->filter, "%s", m->filter);
    snprintf(name, sizeof name, "%s", of);
    show(top, kind, name);
}

static void open_member(struct top *top, const struct top_table *t, const struct top_row *row)
{
    char name[TOP_TEXT_MAX] = "";
    for (size_t i = 0; i < TOP_KEYS_MAX && t->keys[i]; i++) {
        const char *value = row->key_values[i];
        if (!value)
            continue;
        if (strcmp(t->keys[i], "host") == 0)
            snprintf(top->model.node, sizeof top->model.node, "%s", value);
        else
            snprintf(name, sizeof name, "%s %s", t->keys[i], value);
    }
    open_view(top, TOP_MEMBER, name);
}

static void open_event(struct top *top)
{
    struct top_model *m = &top->model;
    size_t order[TOP_EVENTS_MAX], n = top_model_events(m, order);
    if (m->selected < n)
        go_to(top, m->events[order[m->selected]].start_ns);
}

// Shows the metric or the spans of the finding, at the end of the time in which the member was
// slow.
static void open_finding(struct top *top)
{
    struct top_model *m = &top->model;
    size_t order[TOP_FINDINGS_MAX], n = top_model_findings(m, order);
    if (m->selected >= n)
        return;
    const struct top_finding *f = &m->findings[order[m->selected]];
    if (!f->now)
        go_to(top, f->until_ns);
    open_view(top, f->span ? TOP_EVENTS : TOP_SERIES, f->what);
    if (f->span)
        snprintf(m->filter, sizeof m->filter, "%s", f->what);
}

static void open_row(struct top *top)
{
    const struct top_model *m = &top->model;
    const struct top_table *t;
    const struct top_row *row = top_model_selected(m, &t);
    if (m->kind == TOP_EVENTS)
        open_event(top);
    else if (m->kind == TOP_FINDINGS)
        open_finding(top);
    else if (row && m->kind == TOP_NODES)
        open_view(top, TOP_NODE, row->name);
    else if (row && t->by_metric)
        open_view(top, TOP_SERIES, row->name);
    else if (row && (strcmp(t->title, "GPU") == 0 || strcmp(t->title, "RANK") == 0))
        open_member(top, t, row);
}

static void back(struct top *top)
{
    struct top_model *m = &top->model;
    if (m->help) {
        m->help = false;
    } else if (m->filter[0] && !(top->place_count && m->kind < TOP_VIEWS)) {
        m->filter[0] = 0;
    } else if (top->place_count) {
        const struct place *p = &top->places[--top->place_count];
        char node[TOP_TEXT_MAX], member[2 * TOP_TEXT_MAX];
        snprintf(node, sizeof node, "%s", m->node);
        snprintf(member, sizeof member, "%s %s", m->member_key, m->member);
        if (p->kind < TOP_MEMBER)
            m->member_key[0] = m->member[0] = 0;
        show(top, p->kind, p->kind == TOP_NODE ? node : p->kind == TOP_MEMBER ? member : NULL);
        m->sort = p->sort;
        m->descending = p->descending;
        m->selected = p->selected;
        m->scroll = p->scroll;
        snprintf(m->filter, sizeof m->filter, "%s", p->filter);
    }
}

static void sort_by(struct top *top, int step)
{
    struct top_model *m = &top->model;
    const struct top_table *t = &m->tables[0];
    for (size_t i = 0; i < m->table_count && !t->count; i++)
        t = &m->tables[i];
    bool list = m->kind == TOP_EVENTS || m->kind == TOP_FINDINGS;
    int columns = list ? LIST_FIELDS : m->table_count ? (int)t->column_count : 0;
    // Skips columns without any value.
    for (int tries = 0; tries <= columns; tries++) {
        m->sort += step;
        m->sort = m->sort >= columns ? -1 : m->sort < -1 ? columns - 1 : m->sort;
        if (m->sort < 0 || list || top_table_has(t, (size_t)m->sort))
            break;
    }
    m->descending = m->sort >= 0 && !list; // numbers descending; names ascending
}

// ---------------------------------------------------------------- keys

static void type(struct top *top, int key)
{
    struct top_model *m = &top->model;
    size_t size = strlen(m->filter);
    if (key == KEY_ENTER || key == KEY_ESCAPE) {
        m->typing = false;
        if (key == KEY_ESCAPE)
            m->filter[0] = 0;
    } else if (key == KEY_BACKSPACE) {
        while (size && ((unsigned char)m->filter[size - 1] & 0xc0) == 0x80)
            size--;
        m->filter[size ? size - 1 : 0] = 0;
    } else if (key >= ' ' && key < 256 && size + 1 < sizeof m->filter) {
        m->filter[size] = (char)key;
        m->filter[size + 1] = 0;
    }
    m->selected = 0;
}

static void choose(struct top *top, long step)
{
    struct top_model *m = &top->model;
    if (m->help) {
        long to = (long)m->help_scroll + step;
        m->help_scroll = to < 0 ? 0 : (size_t)to; // drawing clamps it to the lines
        return;
    }
    if (step < 0 && m->selected < (size_t)-step)
        m->selected = 0;
    else
        m->selected += (size_t)step; // drawing clamps it to the rows
}

// Chooses the row under the mouse; opens it if it was chosen before.
static void click(struct top *top)
{
    struct top_model *m = &top->model;
    int line = terminal_mouse_row();
    size_t row = line < TOP_LINES_MAX && !m->help ? m->row_of[line] : 0;
    if (!row)
        return;
    if (m->selected == row - 1)
        open_row(top);
    else
        m->selected = row - 1;
}

// Handles a key. Returns false to quit.
static bool take_key(struct top *top, int key)
{
    struct top_model *m = &top->model;
    long page = (long)top_view_page(&top->now);
    if (key == KEY_GONE)
        return false;
    if (m->typing) {
        type(top, key);
        return true;
    }
    if (key == KEY_CLICK)
        click(top);
    else if (key == KEY_WHEEL_UP || key == KEY_WHEEL_DOWN)
        choose(top, key == KEY_WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS);
    switch (top_action_of(key)) {
    case TOP_DO_QUIT:
        return false;
    case TOP_DO_VIEW:
        top->place_count = 0;
        show(top, (enum top_kind)(key - '1'), NULL);
        break;
    case TOP_DO_NEXT_VIEW:
        top->place_count = 0;
        show(top, m->kind + 1 >= TOP_VIEWS ? TOP_NODES : m->kind + 1, NULL);
        break;
    case TOP_DO_HELP:
        m->help = !m->help;
        m->help_scroll = 0;
        break;
    case TOP_DO_FILTER:
        m->typing = true;
        break;
    case TOP_DO_SORT_NEXT:
        sort_by(top, 1);
        break;
    case TOP_DO_SORT_BEFORE:
        sort_by(top, -1);
        break;
    case TOP_DO_REVERSE:
        m->descending = !m->descending;
        break;
    case TOP_DO_UP:
        choose(top, -1);
        break;
    case TOP_DO_DOWN:
        choose(top, 1);
        break;
    case TOP_DO_PAGE_UP:
        choose(top, -page);
        break;
    case TOP_DO_PAGE_DOWN:
        choose(top, page);
        break;
    case TOP_DO_OPEN:
        open_row(top);
        break;
    case TOP_DO_BACK:
        back(top);
        break;
    case TOP_DO_EARLIER:
        move(top, -1);
        break;
    case TOP_DO_LATER:
        move(top, 1);
        break;
    case TOP_DO_WINDOW_EARLIER:
        move(top, -TOP_BUCKETS);
        break;
    case TOP_DO_WINDOW_LATER:
        move(top, TOP_BUCKETS);
        break;
    case TOP_DO_FIRST:
        go_to(top, m->job.first_ns + TOP_BUCKETS * m->bucket_ns);
        break;
    case TOP_DO_NEWEST:
        go_to(top, INT64_MAX);
        break;
    case TOP_DO_PAUSE:
        pause_or_play(top);
        break;
    case TOP_DO_SHORTER:
        widen(top, -1);
        break;
    case TOP_DO_LONGER:
        widen(top, 1);
        break;
    case TOP_DO_MOUSE:
        m->mouse = !m->mouse;
        terminal_mouse(m->mouse);
        break;
    case TOP_DO_NOTHING:
        break;
    }
    return true;
}

// ---------------------------------------------------------------- frames

static bool draw(struct top *top)
{
    struct buf out = {0};
    top_view_draw(&top->now, &top->model);
    screen_update(&out, &top->now, top->drawn ? &top->before : NULL, top->colour);
    bool written = !out.failed && terminal_write(buf_str(&out));
    buf_free(&out);
    struct screen swap = top->before;
    top->before = top->now;
    top->now = swap;
    top->drawn = true;
    return written;
}

static int resize(struct top *top)
{
    int columns, rows;
    screen_free(&top->now);
    screen_free(&top->before);
    top->drawn = false;
    terminal_size(&columns, &rows);
    int rc = screen_create(&top->now, columns, rows, top->utf8);
    return rc ? rc : screen_create(&top->before, columns, rows, top->utf8);
}

static int once(struct top *top)
{
    struct buf out = {0};
    ask(top); // request the facts first, because other data depend on them: the end of a recording
    top_view_draw(&top->now, &top->model);
    screen_plain(&out, &top->now, top->colour);
    int code = top->model.job.trouble[0] ? EXIT_FAILED : EXIT_OK;
    if (code) {
        struct error e;
        buf_free(&out);
        error_set(&e, -EIO, "%s", top->model.job.trouble);
        return command_failed(code, &e);
    }
    return command_print(&out);
}

static int loop(struct top *top)
{
    int64_t next = 0;
    bool goes_on = true;
    int rc = 0;
    while (goes_on && rc == 0) {
        int64_t now = clock_monotonic_ns();
        if (now >= next) {
            play(top);
            ask(top);
            next = clock_monotonic_ns() + (int64_t)TICK_MS * NS_PER_MS;
        }
        if (terminal_changed() && (rc = resize(top)))
            break;
        goes_on = draw(top);
        int64_t left = (next - clock_monotonic_ns() + NS_PER_MS - 1) / NS_PER_MS;
        int key = goes_on ? terminal_wait(left < 0 ? 0 : (int)left) : KEY_GONE;
        while (key != KEY_NONE && goes_on) {
            enum top_kind kind = top->model.kind;
            goes_on = take_key(top, key);
            next = 0; // send the requests that the key needs at once
            // The keys after one that opens a view are meant for its rows.
            key = goes_on && kind == top->model.kind && terminal_has_key() ? terminal_wait(0)
                                                                           : KEY_NONE;
        }
    }
    return rc;
}

// ---------------------------------------------------------------- the command

static bool colour_of(const struct options *o)
{
    const char *when = options_text(o, OPT_COLOUR);
    return strcmp(when, "always") == 0 || (strcmp(when, "auto") == 0 && colour_enabled(1));
}

static enum top_kind kind_of(const char *name)
{
    static const char *const names[] = {"nodes",  "gpus",  "processes", "metrics",
                                        "events", "ranks", "findings"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum top_kind)i;
    return TOP_NODES;
}

static int run(struct top *top, const struct options *o, struct error *e)
{
    if (resize(top))
        return command_failed(EXIT_FAILED, (error_set(e, -ENOMEM, "out of memory"), e));
    if (options_flag(o, OPT_ONCE))
        return once(top);
    int rc = terminal_take();
    if (rc == 0) {
        top->on_terminal = true;
        rc = loop(top);
    }
    terminal_give_back();
    return rc ? command_failed(EXIT_FAILED,
                               (error_set(e, rc, "cannot use the terminal: %s", strerror(-rc)), e))
              : EXIT_OK;
}

int command_top(const struct options *o)
{
    struct error e = {0};
    struct top top = {.utf8 = terminal_is_utf8(), .colour = colour_of(o)};
    const char *where = o->argument_count ? o->arguments[0] : NULL;
    struct sonde_client_options more = {.timeout_ms = ASK_MS, .stop = key_waits, .user = &top};
    log_setup(LOG_ERROR, "sonde");
    if (!options_flag(o, OPT_ONCE) && !terminal_is_one())
        return command_failed(
            EXIT_USAGE, (error_set(&e, -ENOTTY,
                                   "sonde top needs a terminal; sonde top --once prints one screen "
                                   "as text"),
                         &e));
    top_model_create(&top.model);
    top_model_show(&top.model, kind_of(options_text(o, OPT_SHOW)), NULL);
    int64_t at_ns = 0;
    const char *at = options_text(o, OPT_AT);
    char zone[LOCAL_ZONE_MAX];
    if (at && query_parse_time(str_of(at), clock_realtime_ns(), local_zone(zone), &at_ns, &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    top.model.at_ns = at_ns;
    top.model.paused = at_ns != 0;
    top.feed.options = &more;
    top.feed.by_id = !where || !strchr(where, '/');
    if (sonde_client_open(where, &more, &top.feed.client, (struct sonde_error *)(void *)&e) < 0)
        return command_failed(EXIT_FAILED, &e);
    int code = run(&top, o, &e);
    top_feed_free(&top.feed);
    top_model_free(&top.model);
    screen_free(&top.now);
    screen_free(&top.before);
    return code;
}
