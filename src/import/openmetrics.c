// openmetrics.c - the text of OpenMetrics and of Prometheus, with the time of each value.
//
//   # TYPE loss gauge
//   loss{host="n1",rank="3"} 0.25 1790000000.000000000
//   # EOF
//
// Times are seconds in OpenMetrics and milliseconds in Prometheus' older text: a number above
// 100,000,000,000 can only be the latter. The older text does not end with `# EOF`. A metric is
// named after its samples, so a counter keeps its _total.
#include "import/rows.h"

#include "base/clock.h"
#include "store/csv_lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const int64_t milliseconds_from = INT64_C(100000000000);

struct openmetrics {
    struct csv_lines lines;
    struct import_hosts *to;
    struct import_stats *stats;
    bool ended;   // the text ended with # EOF
    bool seconds; // a time was in seconds: this is OpenMetrics
    // The current family.
    struct buf family, unit, help;
    bool counter;
    // The current series. Lines of one series begin with the same text, `begin`.
    struct buf begin, name, text;
    struct store_label labels[STORE_LABELS_MAX];
    size_t label_count;
    struct buf key;
};

// ---------------------------------------------------------------- families

static void begin_family(struct openmetrics *o, struct str name)
{
    if (str_eq(buf_str(&o->family), name))
        return;
    o->family.size = o->unit.size = o->help.size = o->begin.size = 0;
    buf_add_str(&o->family, name);
    o->counter = false;
}

static void add_unescaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '\\' && i + 1 < text.size)
            c = text.data[++i] == 'n' ? '\n' : text.data[i];
        buf_add_char(out, c);
    }
}

static void take_comment(struct openmetrics *o, struct str line)
{
    str_cut(&line, ' ');
    struct str what = str_cut(&line, ' '), name = str_cut(&line, ' ');
    if (str_eq(what, STR("EOF")))
        o->ended = true;
    if (str_eq(what, STR("TYPE"))) {
        begin_family(o, name);
        o->counter = str_eq(str_trim(line), STR("counter"));
    } else if (str_eq(what, STR("UNIT"))) {
        begin_family(o, name);
        buf_add_str(&o->unit, str_trim(line));
    } else if (str_eq(what, STR("HELP"))) {
        begin_family(o, name);
        o->help.size = 0;
        add_unescaped(&o->help, str_trim(line));
    }
}

static bool is_of_family(const struct openmetrics *o, struct str name)
{
    struct str family = buf_str(&o->family);
    if (!family.size || !str_starts(name, family))
        return false;
    struct str ending = str_slice(name, family.size, name.size);
    return !ending.size || str_eq(ending, STR("_total"));
}

// ---------------------------------------------------------------- samples

// Cuts the quoted text off *rest, which begins behind the first quote. Returns false if the closing
// quote is missing.
static bool cut_quoted(struct str *rest, struct buf *out)
{
    for (size_t i = 0; i < rest->size; i++) {
        char c = rest->data[i];
        if (c == '"') {
            *rest = str_slice(*rest, i + 1, rest->size);
            return true;
        }
        if (c == '\\' && ++i < rest->size)
            c = rest->data[i] == 'n' ? '\n' : rest->data[i];
        if (i < rest->size)
            buf_add_char(out, c);
    }
    return false;
}

// Cuts `{key="value",…}` off the front of *rest. The labels' texts lie in o->text.
static bool cut_labels(struct openmetrics *o, struct str *rest)
{
    size_t ends[2 * STORE_LABELS_MAX + 1] = {0}, n = 0;
    *rest = str_slice(*rest, 1, rest->size);
    while (rest->size && rest->data[0] != '}') {
        ptrdiff_t equals = str_find_char(*rest, '=');
        if (equals <= 0 || n == STORE_LABELS_MAX || (size_t)equals + 1 >= rest->size ||
            rest->data[equals + 1] != '"')
            return false;
        buf_add_str(&o->text, str_trim(str_slice(*rest, 0, (size_t)equals)));
        ends[2 * n + 1] = o->text.size;
        *rest = str_slice(*rest, (size_t)equals + 2, rest->size);
        if (!cut_quoted(rest, &o->text))
            return false;
        ends[2 * ++n] = o->text.size;
        if (rest->size && rest->data[0] == ',')
            *rest = str_slice(*rest, 1, rest->size);
    }
    if (!rest->size)
        return false;
    *rest = str_slice(*rest, 1, rest->size);
    o->label_count = 0;
    for (size_t i = 0; i < n; i++) {
        struct str all = buf_str(&o->text),
                   value = str_slice(all, ends[2 * i + 1], ends[2 * i + 2]);
        if (value.size) // an empty value means that the label is absent
            o->labels[o->label_count++] =
                (struct store_label){str_slice(all, ends[2 * i], ends[2 * i + 1]), value};
    }
    return true;
}

// Cuts the name and the labels off the front of *rest.
static bool cut_series(struct openmetrics *o, struct str *rest)
{
    struct str line = *rest, before = buf_str(&o->begin);
    if (before.size && str_starts(line, before)) {
        *rest = str_slice(line, before.size, line.size);
        return true;
    }
    size_t n = 0;
    while (n < line.size && line.data[n] != '{' && line.data[n] != ' ' && line.data[n] != '\t')
        n++;
    o->begin.size = o->name.size = o->text.size = o->label_count = 0;
    *rest = str_slice(line, n, line.size);
    if (!n || (rest->size && rest->data[0] == '{' && !cut_labels(o, rest)))
        return false;
    if (!rest->size || (rest->data[0] != ' ' && rest->data[0] != '\t'))
        return false;
    buf_add_str(&o->name, str_slice(line, 0, n));
    buf_add_str(&o->begin, str_slice(line, 0, line.size - rest->size + 1));
    *rest = str_slice(*rest, 1, rest->size);
    return true;
}

static bool value_of(struct str text, double *out)
{
    if (str_eq(text, STR("+Inf")) || str_eq(text, STR("-Inf"))) {
        *out = text.data[0] == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (str_eq(text, STR("NaN"))) {
        *out = NAN;
        return true;
    }
    return str_to_double(text, out);
}

// Reads digits exactly; only numbers with an exponent become doubles.
static bool time_of(struct openmetrics *o, struct str text, int64_t *t_ns)
{
    struct str fraction = text, whole = str_cut(&fraction, '.');
    bool negative = whole.size && whole.data[0] == '-';
    int64_t seconds, ns = 0;
    double real;
    if (!str_to_i64(whole, &seconds)) {
        if (!str_to_double(text, &real) || !(fabs(real) < 9e9))
            return false;
        o->seconds = true;
        *t_ns = (int64_t)(real * NS_PER_S);
        return true;
    }
    if (!fraction.data && seconds > milliseconds_from)
        return !__builtin_mul_overflow(seconds, (int64_t)NS_PER_MS, t_ns);
    o->seconds = true;
    for (size_t i = 0; i < fraction.size; i++)
        if (fraction.data[i] < '0' || fraction.data[i] > '9')
            return false;
    for (size_t i = 0; i < 9; i++)
        ns = ns * 10 + (i < fraction.size ? fraction.data[i] - '0' : 0);
    return !__builtin_mul_overflow(seconds, (int64_t)NS_PER_S, t_ns) &&
           !__builtin_add_overflow(*t_ns, negative ? -ns : ns, t_ns);
}

static int take_sample(struct openmetrics *o, struct str line, struct error *e)
{
    struct import_row row = {.end_ns = INT64_MAX};
    if (!cut_series(o, &line))
        return -EINVAL;
    line = str_trim(line);
    struct str value = str_cut(&line, ' '), time = str_cut(&line, ' '); // exemplars may follow
    struct str name = buf_str(&o->name);
    if (!value_of(value, &row.value) || !time.size || !time_of(o, time, &row.t_ns))
        return -EINVAL;
    bool known = is_of_family(o, name);
    row.kind = known && o->counter ? IMPORT_COUNTER : IMPORT_GAUGE;
    row.name = name;
    row.unit = known ? buf_str(&o->unit) : (struct str){0};
    row.help = known ? buf_str(&o->help) : (struct str){0};
    row.labels = o->labels;
    row.label_count = o->label_count;
    return import_row_take(o->to, &row, &o->key, o->stats, e);
}

static int read_all(struct openmetrics *o, struct error *e)
{
    int rc;
    while ((rc = text_lines_next(&o->lines)) > 0) {
        struct str line = str_trim(o->lines.line);
        if (!line.size)
            continue;
        if (line.data[0] == '#') {
            take_comment(o, line);
            continue;
        }
        rc = take_sample(o, line, e);
        if (rc == -EINVAL)
            o->stats->bad_rows++;
        else if (rc)
            return rc;
    }
    o->stats->truncated = o->seconds && !o->ended;
    return rc ? csv_lines_failed(&o->lines, rc, e) : import_rows_check(o->stats, e);
}

int import_openmetrics(const char *path, struct import_hosts *to, struct import_stats *stats,
                       struct error *e)
{
    *stats = (struct import_stats){0};
    struct openmetrics *o = calloc(1, sizeof *o);
    if (!o)
        return error_set(e, -ENOMEM, "out of memory");
    o->to = to;
    o->stats = stats;
    int rc = csv_lines_open(&o->lines, path, e);
    if (!rc) {
        rc = read_all(o, e);
        if (rc)
            error_prefix(e, "cannot import %s", path);
    }
    csv_lines_close(&o->lines);
    buf_free(&o->family);
    buf_free(&o->unit);
    buf_free(&o->help);
    buf_free(&o->begin);
    buf_free(&o->name);
    buf_free(&o->text);
    buf_free(&o->key);
    free(o);
    return rc;
}
