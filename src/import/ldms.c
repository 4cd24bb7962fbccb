// ldms.c - CSV files of LDMS' store_csv.
//
//   #Time,Time_usec,ProducerName,component_id,job_id,app_id,MemFree,MemTotal
//   1790000000.002127,2127,node1,1,17,0,4182,8192
//
// Time already includes the microseconds.
#include "import/rows.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/storable_name.h"
#include "store/csv_lines.h"

#include <errno.h>
#include <stdlib.h>

enum { COLUMNS_MAX = IMPORT_COLUMNS_OF_ROWS_MAX };

enum role { ROLE_TIME, ROLE_IGNORED, ROLE_HOST, ROLE_TAG, ROLE_METRIC };

struct ldms {
    struct csv_lines lines;
    struct import_hosts *to;
    struct import_stats *stats;
    struct arena names, text;
    enum role roles[COLUMNS_MAX];
    struct str columns[COLUMNS_MAX], cells[COLUMNS_MAX];
    size_t count;
    struct buf key;
};

static enum role role_of(struct str name)
{
    return str_eq(name, STR("#Time"))          ? ROLE_TIME
           : str_eq(name, STR("Time_usec"))    ? ROLE_IGNORED
           : str_eq(name, STR("DT"))           ? ROLE_IGNORED
           : str_eq(name, STR("ProducerName")) ? ROLE_HOST
           : str_eq(name, STR("component_id")) ? ROLE_TAG
           : str_eq(name, STR("job_id"))       ? ROLE_TAG
           : str_eq(name, STR("app_id"))       ? ROLE_TAG
                                               : ROLE_METRIC;
}

static int read_header(struct ldms *l, struct error *e)
{
    int rc = csv_lines_next(&l->lines);
    if (rc <= 0)
        return error_set(e, rc ? rc : -EINVAL, "no line of column names");
    struct str rest = l->lines.line;
    while (rest.data) {
        struct str name = str_trim(csv_lines_cell(&l->lines, &rest));
        struct buf plain = {0};
        if (l->count == COLUMNS_MAX)
            return error_set(e, -E2BIG, "more than %d columns", COLUMNS_MAX);
        l->roles[l->count] = role_of(name);
        storable_name_add(&plain, name.size ? name : STR("_"), STORE_NAME_MAX);
        l->columns[l->count] =
            plain.failed ? (struct str){0} : arena_str(&l->names, buf_str(&plain));
        buf_free(&plain);
        if (!l->columns[l->count++].data)
            return error_set(e, -ENOMEM, "out of memory");
    }
    return l->roles[0] == ROLE_TIME
               ? 0
               : error_set(e, -EINVAL, "the first column is not #Time, as in LDMS' files");
}

// Cuts the line into as many cells as there are columns. Returns 1; 0 for a wrong number; -ENOMEM.
static int read_cells(struct ldms *l)
{
    struct str rest = l->lines.line;
    size_t n = 0;
    arena_reset(&l->text);
    for (; rest.data && n < l->count; n++) {
        l->cells[n] = arena_str(&l->text, str_trim(csv_lines_cell(&l->lines, &rest)));
        if (!l->cells[n].data)
            return -ENOMEM;
    }
    return n == l->count && !rest.data;
}

static bool time_of(struct str text, int64_t *t_ns)
{
    struct str fraction = text, whole = str_cut(&fraction, '.');
    int64_t seconds, ns = 0;
    for (size_t i = 0; i < 9; i++) {
        char c = i < fraction.size ? fraction.data[i] : '0';
        if (c < '0' || c > '9')
            return false;
        ns = ns * 10 + (c - '0');
    }
    return str_to_i64(whole, &seconds) && seconds >= 0 &&
           !__builtin_mul_overflow(seconds, (int64_t)NS_PER_S, t_ns) &&
           !__builtin_add_overflow(*t_ns, ns, t_ns);
}

static int take_line(struct ldms *l, struct error *e)
{
    struct store_label labels[4];
    struct import_row row = {.end_ns = INT64_MAX, .kind = IMPORT_GAUGE, .labels = labels};
    int rc = read_cells(l);
    if (rc < 0)
        return error_set(e, rc, "out of memory");
    if (!rc || !time_of(l->cells[0], &row.t_ns))
        return -EINVAL;
    for (size_t i = 0; i < l->count && row.label_count < 4; i++) {
        bool tag = l->roles[i] == ROLE_TAG && !str_eq(l->cells[i], STR("0"));
        if (l->cells[i].size && (tag || l->roles[i] == ROLE_HOST))
            labels[row.label_count++] = (struct store_label){
                l->roles[i] == ROLE_HOST ? STR("host") : l->columns[i], l->cells[i]};
    }
    rc = 0;
    for (size_t i = 0; i < l->count && !rc; i++) {
        if (l->roles[i] != ROLE_METRIC || !l->cells[i].size)
            continue;
        row.name = l->columns[i];
        rc = str_to_double(l->cells[i], &row.value)
                 ? import_row_take(l->to, &row, &l->key, l->stats, e)
                 : -EINVAL;
        if (rc == -EINVAL)
            l->stats->bad_rows++, rc = 0;
    }
    return rc;
}

static int read_lines(struct ldms *l, struct error *e)
{
    int rc;
    while ((rc = csv_lines_next(&l->lines)) > 0) {
        // Each file of a rotation repeats the header.
        if (!l->lines.line.size || l->lines.line.data[0] == '#')
            continue;
        rc = take_line(l, e);
        if (rc == -EINVAL)
            l->stats->bad_rows++;
        else if (rc)
            return rc;
    }
    return rc ? csv_lines_failed(&l->lines, rc, e) : import_rows_check(l->stats, e);
}

int import_ldms(const char *path, struct import_hosts *to, struct import_stats *stats,
                struct error *e)
{
    *stats = (struct import_stats){0};
    struct ldms *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(e, -ENOMEM, "out of memory");
    l->to = to;
    l->stats = stats;
    int rc = csv_lines_open(&l->lines, path, e);
    if (!rc) {
        rc = read_header(l, e);
        if (!rc)
            rc = read_lines(l, e);
        if (rc)
            error_prefix(e, "cannot import %s", path);
    }
    csv_lines_close(&l->lines);
    arena_free(&l->names);
    arena_free(&l->text);
    buf_free(&l->key);
    free(l);
    return rc;
}
