// client_stats.c - statistics as a list with one dictionary per row.
#include "client.h"

#include <math.h>

// Takes over `value`. Returns false with an exception.
static bool set(PyObject *dict, const char *key, PyObject *value)
{
    bool good = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return good;
}

static bool set_number(PyObject *dict, const char *key, double value)
{
    PyObject *none = Py_None;
    if (!isnan(value))
        return set(dict, key, PyFloat_FromDouble(value));
    Py_INCREF(none);
    return set(dict, key, none);
}

static bool set_ns(PyObject *dict, const char *key, int64_t ns)
{
    return set(dict, key, PyLong_FromLongLong(ns));
}

// Makes a dictionary with the members of `sonde stats --json`.
static PyObject *stats_row(const struct sonde_stats *s, const struct sonde_stats_row *row,
                           const char *span)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"mean", row->mean},        {"deviation", row->deviation},
                   {"min", row->min},          {"max", row->max},
                   {"p50", row->p50},          {"p95", row->p95},
                   {"p99", row->p99},          {"last", row->last},
                   {"integral", row->integral}};
    PyObject *d = PyDict_New();
    bool good = d && set(d, "metric", client_text(s->metric)) &&
                set(d, "unit", client_text(s->unit)) && set(d, "rate", PyBool_FromLong(s->rate)) &&
                set(d, "tags", client_tags(row->tags, row->tag_count)) &&
                set(d, "series", PyLong_FromSize_t(row->series)) &&
                set(d, "count", PyLong_FromUnsignedLongLong(row->count)) &&
                set(d, "max_tags", client_tags(row->max_tags, row->max_tag_count)) &&
                set(d, "estimated", PyBool_FromLong(row->estimated)) &&
                set(d, "integral_unit", client_text(s->integral_unit)) &&
                set_ns(d, "min_ns", row->min_ns) && set_ns(d, "max_ns", row->max_ns) &&
                set_ns(d, "first_ns", row->first_ns) && set_ns(d, "last_ns", row->last_ns) &&
                set_ns(d, "covered_ns", row->covered_ns) &&
                (!span || set(d, "span", client_text(span)));
    for (size_t i = 0; good && i < sizeof numbers / sizeof *numbers; i++)
        good = set_number(d, numbers[i].key, numbers[i].value);
    if (good && row->span_start_ns)
        good = set_ns(d, "span_start_ns", row->span_start_ns) &&
               (row->span_end_ns == INT64_MAX || set_ns(d, "span_end_ns", row->span_end_ns));
    if (!good)
        Py_CLEAR(d);
    return d;
}

PyObject *client_stats_rows(const struct sonde_stats *s, const char *span)
{
    PyObject *rows = PyList_New(0);
    for (size_t i = 0; rows && i < s->count; i++) {
        PyObject *row = stats_row(s, &s->rows[i], span);
        if (!row || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows ? Py_BuildValue("(NN)", rows, client_text(s->missing ? s->missing : "")) : NULL;
}
