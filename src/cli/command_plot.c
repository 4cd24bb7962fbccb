// `sonde plot`: reads the options, finds the runs, and executes Python with sonde.plot, which sends
// the requests and draws (bindings/python/sonde/plot/__main__.py documents its input).
//
// Python gets the address of a job, or the path of a recording, as client/target.h has found it.
// The extension of the package resolves both with the same code.
#include "cli/commands.h"
#include "cli/data_request.h"
#include "cli/expression_list.h"

#include "base/json_writer.h"
#include "client/expression.h"
#include "launch/command.h"
#include "launch/installation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BY_MAX = 16 }; // maximum number of keys in --by
enum { SIZE_LEAST_INCHES = 1, SIZE_MOST_INCHES = 200 };

#define KIND(id, name) name,
static const char *const kinds[] = {PLOT_KINDS(KIND)};
#undef KIND
#define KIND(id, name) id,
enum kind { PLOT_KINDS(KIND) KIND_COUNT };
#undef KIND

struct work {
    const struct options *o;
    enum kind kind;
    struct arena arena;
    struct expression_list what;
    struct expression *parsed; // one for each expression; unused for names of spans
    bool *known;               // whether a run has the metric
    struct buf runs, request;  // JSON
};

// Python code. Its last argument is the folder of the installed package, in case Python does not
// search it. Modules in the current folder are not imported: a json.py there would not be Python's
// own.
static const char program[] =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p] + [sys.argv.pop()]\n"
    "try:\n"
    "    import sonde.plot.__main__ as command\n"
    "except ImportError as error:\n"
    "    sys.exit(f'sonde: error: {sys.executable} has no package sonde ({error}); install it "
    "there "
    "(pip install . in the clone), or name the Python that has it with --python, SONDE_PYTHON or "
    "`python` in the configuration file')\n"
    "sys.exit(command.main())\n";

// ---------------------------------------------------------------- the command line

static int read_kind(struct work *w, struct error *e)
{
    const char *word = w->o->arguments[0];
    for (w->kind = LINES; w->kind < KIND_COUNT; w->kind++)
        if (strcmp(word, kinds[w->kind]) == 0)
            return 0;
    return error_set(e, -EINVAL,
                     "'%.64s' is no kind of picture; there is lines, boxes, heatmap "
                     "and spans",
                     word);
}

static int read_expressions(struct work *w, struct error *e)
{
    bool given = w->o->argument_count > 1;
    if (!given && w->kind != SPANS)
        return error_set(e, -EINVAL,
                         "an expression is missing, as in sonde plot %s cpu_percent -o cpu.png; "
                         "sonde query --list names the series",
                         kinds[w->kind]);
    int rc =
        expression_list_cut(&w->what, given ? str_of(w->o->arguments[1]) : STR("*"), &w->arena, e);
    if (rc || w->kind == SPANS)
        return rc;
    w->parsed = arena_array(&w->arena, w->what.count, sizeof *w->parsed);
    w->known = arena_array(&w->arena, w->what.count, sizeof *w->known);
    if (!w->parsed || !w->known)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < w->what.count && !rc; i++) {
        w->known[i] = false;
        rc = expression_read(w->what.texts[i], &w->arena, &w->parsed[i], e);
    }
    return rc;
}

// Checks the options that only some kinds of pictures have.
static int check_options(const struct work *w, struct error *e)
{
    static const struct {
        enum option_id id;
        unsigned kinds;
    } rules[] = {
        {OPT_PLOT_BY, 1U << BOXES},
        {OPT_PLOT_EVERY, 1U << BOXES},
        {OPT_PLOT_PER_SPAN, 1U << LINES | 1U << BOXES},
        {OPT_PLOT_MARK_SPANS, 1U << LINES | 1U << BOXES | 1U << HEATMAP},
        {OPT_PLOT_DOWNSAMPLE, 1U << LINES | 1U << BOXES | 1U << HEATMAP},
    };
    if (!options_text(w->o, OPT_PLOT_OUTPUT))
        return error_set(e, -EINVAL, "the picture's name is missing, as in -o cpu.png");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (options_text(w->o, rules[i].id) && !(rules[i].kinds >> w->kind & 1))
            return error_set(e, -EINVAL, "--%s is not an option of %s",
                             option_rows[rules[i].id].name, kinds[w->kind]);
    if (options_text(w->o, OPT_PLOT_BY) && options_text(w->o, OPT_PLOT_EVERY))
        return error_set(e, -EINVAL, "--by and --every contradict each other");
    return 0;
}

// ---------------------------------------------------------------- runs

// Sends a query for a range without points, so that a wrong name is found before Python starts.
static int look_for_metrics(struct work *w, struct data_request *a, bool last, struct error *e)
{
    for (size_t i = 0; w->parsed && i < w->what.count; i++) {
        struct sonde_query q = w->parsed[i].query;
        struct sonde_result *r = NULL;
        q.start = "0";
        q.end_ns = 1;
        q.downsample = NULL;
        int rc = client_query(a->client, &q, 0, &r, e);
        sonde_result_free(r);
        w->known[i] |= !rc;
        if (rc && !client_unknown_metric(e))
            return rc;
        if (!w->known[i] && last)
            return data_request_unknown_metric(a, w->parsed[i].parsed.metric, e);
    }
    return 0;
}

// Finds a run, and adds its address or path to the request. `where` NULL: the default run.
static int find_run(struct work *w, struct json_writer *runs, char *where, bool last,
                    struct error *e)
{
    struct data_request a;
    int rc = data_request_open(w->o, &where, where != NULL, &a, e);
    if (rc)
        return rc;
    rc = look_for_metrics(w, &a, last, e);
    if (!rc)
        // An address may contain a token, which the client's name does not contain.
        json_put_string(
            runs, str_of(where && strstr(where, "://") ? where : sonde_client_name(a.client)));
    data_request_close(&a, EXIT_OK);
    return rc;
}

static int find_runs(struct work *w, struct error *e)
{
    struct json_writer runs = json_to(&w->runs);
    int count = w->o->argument_count > 2 ? w->o->argument_count - 2 : 0, rc = 0;
    json_begin_array(&runs);
    if (!count)
        rc = find_run(w, &runs, NULL, true, e);
    for (int i = 0; i < count && !rc; i++)
        rc = find_run(w, &runs, w->o->arguments[i + 2], i + 1 == count, e);
    json_end_array(&runs);
    return rc;
}

// ---------------------------------------------------------------- the request

static void put_text(struct json_writer *j, const struct options *o, enum option_id id,
                     const char *key)
{
    if (options_text(o, id))
        json_key_string(j, key, str_of(options_text(o, id)));
}

// Writes "start" or "end": seconds with nanoseconds, in AnalysisClient's form.
static void put_time(struct json_writer *j, const char *key, int64_t t_ns)
{
    char text[48];
    if (!t_ns)
        return;
    int n = snprintf(text, sizeof text, "%lld.%09lld", (long long)(t_ns / 1000000000),
                     (long long)(t_ns % 1000000000));
    json_key_string(j, key, (struct str){text, (size_t)n});
}

static int put_size(struct json_writer *j, const char *text, struct error *e)
{
    char *end;
    double width = strtod(text, &end), height = *end == 'x' ? strtod(end + 1, &end) : 0;
    if (*end || !(width >= SIZE_LEAST_INCHES && width <= SIZE_MOST_INCHES) ||
        !(height >= SIZE_LEAST_INCHES && height <= SIZE_MOST_INCHES))
        return error_set(e, -EINVAL,
                         "--size: '%.40s' is no size; it is width x height in inches, "
                         "each from %d to %d, as in 12x5",
                         text, SIZE_LEAST_INCHES, SIZE_MOST_INCHES);
    json_key(j, STR("size"));
    json_begin_array(j);
    json_put_double(j, width);
    json_put_double(j, height);
    json_end_array(j);
    return 0;
}

static int put_keys(struct json_writer *j, const char *text, struct error *e)
{
    struct str rest = str_of(text);
    int n = 0;
    json_key(j, STR("by"));
    json_begin_array(j);
    while (rest.data) {
        struct str key = str_trim(str_cut(&rest, ','));
        if (!key.size || n++ == BY_MAX)
            return error_set(e, -EINVAL, "--by takes 1 to %d keys of tags, as in host,gpu", BY_MAX);
        json_put_string(j, key);
    }
    json_end_array(j);
    return 0;
}

// Writes the request except the runs. Returns -EINVAL if an option is wrong.
static int write_request(struct work *w, struct error *e)
{
    const struct options *o = w->o;
    struct json_writer j = json_to(&w->request);
    struct data_range range;
    int rc = data_request_range(o, &range, e);
    json_begin_object(&j);
    json_key_string(&j, "kind", str_of(kinds[w->kind]));
    json_key(&j, STR("what"));
    bool every_span = w->kind == SPANS && w->what.count == 1 && strcmp(w->what.texts[0], "*") == 0;
    json_begin_array(&j);
    for (size_t i = 0; i < w->what.count && !every_span; i++)
        json_put_string(&j, str_of(w->what.texts[i]));
    json_end_array(&j);
    json_key_bool(&j, "strict", options_flag(o, OPT_STRICT_ANSWER));
    put_time(&j, "start", rc ? 0 : range.start_ns);
    put_time(&j, "end", rc ? 0 : range.end_ns);
    put_text(&j, o, OPT_PLOT_DOWNSAMPLE, "downsample");
    put_text(&j, o, OPT_PLOT_PER_SPAN, "per_span");
    put_text(&j, o, OPT_PLOT_MARK_SPANS, "mark_spans");
    put_text(&j, o, OPT_PLOT_THEME, "theme");
    put_text(&j, o, OPT_PLOT_TITLE, "title");
    if (options_flag(o, OPT_PLOT_FROM_START))
        json_key_bool(&j, "from_start", true);
    if (options_text(o, OPT_PLOT_EVERY))
        json_key_double(&j, "every", options_number(o, OPT_PLOT_EVERY));
    if (!rc && options_text(o, OPT_PLOT_SIZE))
        rc = put_size(&j, options_text(o, OPT_PLOT_SIZE), e);
    if (!rc && options_text(o, OPT_PLOT_BY))
        rc = put_keys(&j, options_text(o, OPT_PLOT_BY), e);
    return rc;
}

// ---------------------------------------------------------------- Python

// Makes the request the standard input.
static int hand_over(const struct buf *request, struct error *e)
{
    int fd = memfd_create("sonde-plot", 0);
    size_t done = 0;
    while (fd >= 0 && done < request->size) {
        ssize_t n = write(fd, request->data + done, request->size - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || done < request->size || lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, 0) < 0)
        return error_set(e, -errno, "cannot hand the request to Python: %s", strerror(errno));
    if (fd > 0)
        close(fd);
    return 0;
}

static void set_place(const struct options *o, enum option_id id, const char *variable)
{
    if (options_text(o, id))
        setenv(variable, options_text(o, id), 1);
}

// Executes Python. Returns only after a failure.
static int become_python(const struct work *w, struct error *e)
{
    const char *given = options_text(w->o, OPT_PYTHON);
    char *python = given ? strdup(given) : command_python();
    if (!python)
        return error_set(e, -ENOMEM, "out of memory");
    char package[PATH_MAX];
    installation_find(INSTALLATION_PYTHON, package);
    char *const arguments[] = {python,
                               "-c",
                               (char *)(uintptr_t)program,
                               (char *)(uintptr_t)options_text(w->o, OPT_PLOT_OUTPUT),
                               package,
                               NULL};
    set_place(w->o, OPT_RUN_DIR, "SONDE_RUN_DIR");
    set_place(w->o, OPT_RUNS, "SONDE_RUNS");
    int rc = hand_over(&w->request, e);
    if (!rc) {
        execvp(python, arguments);
        rc =
            error_set(e, -errno,
                      "cannot start Python as %.200s: %s; sonde plot needs Python with the package "
                      "sonde and Matplotlib: --python, SONDE_PYTHON or `python` in the "
                      "configuration file names it",
                      python, strerror(errno));
    }
    free(python);
    return rc;
}

int command_plot(const struct options *o)
{
    struct error e;
    struct work w = {.o = o};
    int code = EXIT_USAGE, rc = read_kind(&w, &e);
    if (!rc)
        rc = read_expressions(&w, &e);
    if (!rc)
        rc = check_options(&w, &e);
    if (!rc)
        rc = write_request(&w, &e);
    if (!rc) {
        code = EXIT_FAILED;
        rc = find_runs(&w, &e);
    }
    if (!rc) {
        buf_printf(&w.request, ",\"runs\":%s}", buf_cstr(&w.runs));
        rc = w.request.failed || w.runs.failed ? error_set(&e, -ENOMEM, "out of memory")
                                               : become_python(&w, &e);
    }
    buf_free(&w.request);
    buf_free(&w.runs);
    expression_list_free(&w.what);
    arena_free(&w.arena);
    return rc ? command_failed(code, &e) : EXIT_OK;
}
