// sonde_r.c - the native routines of the package sonde: sonde.h for R.
//
// A metric or a group is an external pointer. Its address is twice the handle plus one; it protects
// its definition. If R saves the pointer or sends it to another process (a worker of
// parallel::makeCluster), it arrives with the address NULL, because the handle could belong to
// another metric there. The first call there defines the metric again. A forked child uses the
// address as it is.
//
// An error in R leaves a routine by longjmp, so routines hold only memory that R frees.
#include <math.h>
#include <sonde.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define R_NO_REMAP
#include <R.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include <Rinternals.h>

enum { ROW_MAX = 4096 }; // metrics of a group: sonde.h
enum { NUMBER_SIZE = 32 };
#define NS_PER_S 1000000000
#define NS_PER_US 1000
static const double US_PER_S = 1e6;

static SEXP package;    // its environment, with the functions for convert()
static SEXP symbols[3]; // the tags of pointers
enum { GROUP = 2 };     // after enum sonde_kind

static const char *const classes[3][2] = {{"sonde_gauge", "sonde_metric"},
                                          {"sonde_counter", "sonde_metric"},
                                          {"sonde_group", "sonde_group"}};

// Calls a function of the package, such as as_text(value). The caller protects the result.
static SEXP convert(const char *function, SEXP value)
{
    SEXP quoted = PROTECT(Rf_lang2(Rf_install("quote"), value));
    SEXP call = PROTECT(Rf_lang2(Rf_install(function), quoted));
    SEXP result = Rf_eval(call, package);
    UNPROTECT(2);
    return result;
}

// ---------------------------------------------------------------- text

// Text without a mark keeps its bytes: in the locale C, R cannot translate them, but they are
// usually UTF-8.
static const char *utf8(SEXP text)
{
    return Rf_getCharCE(text) == CE_LATIN1 ? Rf_translateCharUTF8(text) : CHAR(text);
}

static const char *text_of(SEXP value, const char *argument)
{
    if (TYPEOF(value) != STRSXP || XLENGTH(value) != 1 || STRING_ELT(value, 0) == NA_STRING)
        Rf_error("%s must be one text", argument);
    return utf8(STRING_ELT(value, 0));
}

static const char *optional_text(SEXP value, const char *argument)
{
    return value == R_NilValue ? "" : text_of(value, argument);
}

// Returns the shortest form that reads back as the same number: 0.1, 1e-05.
static const char *number_text(double number)
{
    char *out = R_alloc(NUMBER_SIZE, 1);
    if (isnan(number))
        return R_IsNA(number) ? "NA" : "nan";
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_SIZE, "%.*g", digits, number);
        const double back = strtod(out, NULL); // of the same locale as snprintf
        if (!(back < number) && !(number < back))
            break;
    }
    for (char *c = out; *c; c++)
        if (*c == ',')
            *c = '.';
    return out;
}

static const char *whole_text(long long number)
{
    char *out = R_alloc(NUMBER_SIZE, 1);
    snprintf(out, NUMBER_SIZE, "%lld", number);
    return out;
}

// True for 64-bit integers in the bits of doubles: integer64 of the package bit64, or nanotime.
static bool is_int64(SEXP value)
{
    return TYPEOF(value) == REALSXP && Rf_isObject(value) &&
           (Rf_inherits(value, "integer64") || Rf_inherits(value, "nanotime"));
}

#define INT64_NA INT64_MIN

static int64_t int64_at(SEXP value, R_xlen_t i)
{
    int64_t number;
    memcpy(&number, &REAL(value)[i], sizeof number);
    return number;
}

// Returns the text of element `i` of a vector that has no class, or of 64-bit integers.
static const char *element_text(SEXP vector, R_xlen_t i)
{
    switch (TYPEOF(vector)) {
    case LGLSXP: {
        const int truth = LOGICAL(vector)[i];
        return truth == NA_LOGICAL ? "NA" : truth ? "true" : "false";
    }
    case INTSXP:
        return INTEGER(vector)[i] == NA_INTEGER ? "NA" : whole_text(INTEGER(vector)[i]);
    case REALSXP:
        if (!is_int64(vector))
            return number_text(REAL(vector)[i]);
        return int64_at(vector, i) == INT64_NA ? "NA" : whole_text(int64_at(vector, i));
    default:
        return utf8(STRING_ELT(vector, i));
    }
}

static bool is_plain(SEXP value)
{
    const int type = TYPEOF(value);
    return (!Rf_isObject(value) &&
            (type == LGLSXP || type == INTSXP || type == REALSXP || type == STRSXP)) ||
           is_int64(value);
}

// ---------------------------------------------------------------- tags

struct tags {
    struct sonde_tag *list;
    size_t count, room;
};

static void add_tag(struct tags *tags, const char *key, const char *value)
{
    if (tags->count == tags->room) {
        const size_t room = tags->room ? 2 * tags->room : 16;
        struct sonde_tag *list = (struct sonde_tag *)(void *)R_alloc(room, sizeof *list);
        if (tags->count)
            memcpy(list, tags->list, tags->count * sizeof *list);
        tags->list = list;
        tags->room = room;
    }
    tags->list[tags->count++] = (struct sonde_tag){key, value};
}

// Adds `value` as one tag; NULL and empty vectors add none.
static void add_value(struct tags *tags, const char *key, SEXP value)
{
    if (value == R_NilValue || (Rf_isVector(value) && XLENGTH(value) == 0))
        return;
    if (is_plain(value) && XLENGTH(value) == 1) {
        add_tag(tags, key, element_text(value, 0));
        return;
    }
    // R_alloc keeps a copy, because the text of as_text() is not protected.
    SEXP text = PROTECT(convert("as_text", value));
    const char *bytes = utf8(STRING_ELT(text, 0));
    char *copy = R_alloc(strlen(bytes) + 1, 1);
    add_tag(tags, key, strcpy(copy, bytes));
    UNPROTECT(1);
}

static const char *name_at(SEXP names, R_xlen_t i)
{
    return names == R_NilValue ? "" : utf8(STRING_ELT(names, i));
}

// Adds the arguments `...` of a function: a named one is a tag; one without a name is a list or
// vector with names, whose elements are tags. libsonde refuses and counts tags without a key.
static void add_arguments(struct tags *tags, SEXP arguments)
{
    SEXP names = Rf_getAttrib(arguments, R_NamesSymbol);
    for (R_xlen_t i = 0; i < XLENGTH(arguments); i++) {
        SEXP value = VECTOR_ELT(arguments, i);
        const char *name = name_at(names, i);
        SEXP keys = *name ? R_NilValue : Rf_getAttrib(value, R_NamesSymbol);
        if (TYPEOF(keys) != STRSXP)
            add_value(tags, name, value);
        else if (TYPEOF(value) == VECSXP)
            for (R_xlen_t j = 0; j < XLENGTH(value); j++)
                add_value(tags, name_at(keys, j), VECTOR_ELT(value, j));
        else if (is_plain(value))
            for (R_xlen_t j = 0; j < XLENGTH(value); j++)
                add_tag(tags, name_at(keys, j), element_text(value, j));
        else
            add_value(tags, name, value);
    }
}

static struct tags tags_of(SEXP arguments)
{
    struct tags tags = {0};
    add_arguments(&tags, arguments);
    return tags;
}

static SEXP utf8_string(const char *text)
{
    return Rf_mkCharCE(text, CE_UTF8);
}

// Copies tags to `out` from element `at` on: key, value, key, value, ….
static void store_tags(SEXP out, R_xlen_t at, const struct tags *tags)
{
    for (size_t i = 0; i < tags->count; i++) {
        SET_STRING_ELT(out, at++, utf8_string(tags->list[i].key));
        SET_STRING_ELT(out, at++, utf8_string(tags->list[i].value));
    }
}

static struct tags stored_tags(SEXP texts, R_xlen_t at)
{
    struct tags tags = {0};
    for (; at + 1 < XLENGTH(texts); at += 2)
        add_tag(&tags, CHAR(STRING_ELT(texts, at)), CHAR(STRING_ELT(texts, at + 1)));
    return tags;
}

// ---------------------------------------------------------------- metrics

// The definition of a metric is a list of two elements:
enum { TEXTS, NUMBERS };
enum { NAME, UNIT, HELP, FIRST_TAG }; // texts
enum { KIND, LEVEL };                 // integers
// The definition of a group is the list of its metrics.

static sonde_handle define(SEXP definition)
{
    SEXP texts = VECTOR_ELT(definition, TEXTS);
    const int *numbers = INTEGER(VECTOR_ELT(definition, NUMBERS));
    const struct tags tags = stored_tags(texts, FIRST_TAG);
    const struct sonde_metric metric = {.name = CHAR(STRING_ELT(texts, NAME)),
                                        .unit = CHAR(STRING_ELT(texts, UNIT)),
                                        .help = CHAR(STRING_ELT(texts, HELP)),
                                        .kind = (enum sonde_kind)numbers[KIND],
                                        .level = numbers[LEVEL],
                                        .tags = tags.list,
                                        .tag_count = tags.count};
    return sonde_define(&metric);
}

static bool is_pointer(SEXP object)
{
    if (TYPEOF(object) != EXTPTRSXP)
        return false;
    SEXP tag = R_ExternalPtrTag(object);
    return tag == symbols[SONDE_GAUGE] || tag == symbols[SONDE_COUNTER] || tag == symbols[GROUP];
}

static bool is_group(SEXP object)
{
    return R_ExternalPtrTag(object) == symbols[GROUP];
}

static sonde_handle handle_of(SEXP pointer);

static sonde_handle define_group(SEXP metrics)
{
    // one more than the limit, so that libsonde sees and counts the excess
    sonde_handle handles[ROW_MAX + 1];
    const R_xlen_t count = XLENGTH(metrics) > ROW_MAX ? ROW_MAX + 1 : XLENGTH(metrics);
    for (R_xlen_t i = 0; i < count; i++) {
        SEXP metric = VECTOR_ELT(metrics, i);
        handles[i] = is_pointer(metric) ? handle_of(metric) : 0;
    }
    return sonde_group(handles, (size_t)count);
}

static sonde_handle handle_of(SEXP pointer)
{
    uintptr_t address = (uintptr_t)R_ExternalPtrAddr(pointer);
    if (!address) {
        SEXP definition = R_ExternalPtrProtected(pointer);
        const sonde_handle handle =
            is_group(pointer) ? define_group(definition) : define(definition);
        address = (uintptr_t)handle << 1 | 1;
        R_SetExternalPtrAddr(pointer, (void *)address);
    }
    return (sonde_handle)(address >> 1);
}

// Returns false for an object that was made in a process without this library; it records nothing.
static bool is_native(SEXP object)
{
    if (is_pointer(object))
        return true;
    if (!Rf_inherits(object, "sonde_metric") && !Rf_inherits(object, "sonde_group"))
        Rf_error("the first argument must be a metric or a group of sonde");
    return false;
}

static SEXP make(int kind, SEXP definition)
{
    SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, symbols[kind], definition));
    SEXP class = PROTECT(Rf_allocVector(STRSXP, 2));
    for (int i = 0; i < 2; i++)
        SET_STRING_ELT(class, i, Rf_mkChar(classes[kind][i]));
    Rf_setAttrib(pointer, R_ClassSymbol, class);
    handle_of(pointer);
    UNPROTECT(2);
    return pointer;
}

static SEXP r_define(SEXP kind, SEXP name, SEXP arguments, SEXP unit, SEXP help, SEXP level)
{
    const struct tags tags = tags_of(arguments);
    SEXP definition = PROTECT(Rf_allocVector(VECSXP, 2));
    SEXP texts = Rf_allocVector(STRSXP, FIRST_TAG + 2 * (R_xlen_t)tags.count);
    SET_VECTOR_ELT(definition, TEXTS, texts);
    SET_STRING_ELT(texts, NAME, utf8_string(text_of(name, "the name")));
    SET_STRING_ELT(texts, UNIT, utf8_string(optional_text(unit, "the unit")));
    SET_STRING_ELT(texts, HELP, utf8_string(optional_text(help, "the help")));
    store_tags(texts, FIRST_TAG, &tags);
    SEXP numbers = Rf_allocVector(INTSXP, 2);
    SET_VECTOR_ELT(definition, NUMBERS, numbers);
    INTEGER(numbers)[KIND] = Rf_asInteger(kind);
    INTEGER(numbers)[LEVEL] = Rf_asInteger(level);
    SEXP metric = make(INTEGER(numbers)[KIND], definition);
    UNPROTECT(1);
    return metric;
}

static SEXP r_group(SEXP metrics)
{
    for (R_xlen_t i = 0; i < XLENGTH(metrics); i++)
        if (is_native(VECTOR_ELT(metrics, i)) && is_group(VECTOR_ELT(metrics, i)))
            Rf_error("a group cannot contain a group");
    return make(GROUP, metrics);
}

static SEXP r_is_on(SEXP object)
{
    return Rf_ScalarLogical(is_native(object) && handle_of(object));
}

// ---------------------------------------------------------------- values and times

// Returns value as a vector of doubles, integers or logicals. The caller protects the result.
static SEXP numbers_of(SEXP value)
{
    if (is_int64(value)) {
        SEXP numbers = PROTECT(Rf_allocVector(REALSXP, XLENGTH(value)));
        for (R_xlen_t i = 0; i < XLENGTH(value); i++) {
            const int64_t number = int64_at(value, i);
            REAL(numbers)[i] = number == INT64_NA ? NA_REAL : (double)number;
        }
        Rf_setAttrib(numbers, R_DimSymbol, Rf_getAttrib(value, R_DimSymbol));
        UNPROTECT(1);
        return numbers;
    }
    if (Rf_isObject(value))
        value = convert("as_numbers", value);
    const int type = TYPEOF(value);
    if (type != REALSXP && type != INTSXP && type != LGLSXP)
        Rf_error("the value must be a number");
    return value;
}

// Returns false for NA. NaN is a value.
static inline bool number_at(SEXP numbers, R_xlen_t i, double *out)
{
    if (TYPEOF(numbers) == REALSXP) {
        *out = REAL_RO(numbers)[i];
        return !R_IsNA(*out);
    }
    const int number = TYPEOF(numbers) == INTSXP ? INTEGER_RO(numbers)[i] : LOGICAL_RO(numbers)[i];
    *out = number;
    return number != NA_INTEGER;
}

_Static_assert(sizeof(double) == sizeof(int64_t), "an int64_t fits into a double of R");

// Seconds since the epoch, rounded to microseconds: a double has no finer resolution at today's
// times. A time beyond 64 bits (the year 2262) becomes the last or the first that fits.
static int64_t ns_of_seconds(double seconds)
{
    const double us = nearbyint(seconds * US_PER_S);
    const double limit = (double)(INT64_MAX / NS_PER_US);
    if (us >= limit || us <= -limit)
        return us > 0 ? INT64_MAX : INT64_MIN + 1; // INT64_MIN is NA
    return (int64_t)us * NS_PER_US;
}

// Returns times as a vector for time_at(). The caller protects the result.
static SEXP times_of(SEXP time)
{
    if (Rf_isObject(time) && !is_int64(time) && !Rf_inherits(time, "POSIXct"))
        time = convert("as_times", time);
    if (TYPEOF(time) != REALSXP && TYPEOF(time) != INTSXP)
        Rf_error("a time must be a POSIXct, seconds since the epoch, or a result of sonde_time()");
    return time;
}

// Returns false for NA.
static bool time_at(SEXP times, R_xlen_t i, int64_t *out)
{
    if (is_int64(times)) {
        *out = int64_at(times, i);
        return *out != INT64_NA;
    }
    double seconds;
    const bool known = number_at(times, i, &seconds) && !isnan(seconds);
    *out = known ? ns_of_seconds(seconds) : 0;
    return known;
}

static int64_t one_time(SEXP time, const char *argument)
{
    int64_t ns;
    time = PROTECT(times_of(time));
    if (XLENGTH(time) != 1 || !time_at(time, 0, &ns))
        Rf_error("%s must be one time", argument);
    UNPROTECT(1);
    return ns;
}

static SEXP r_time(SEXP seconds, SEXP nanoseconds)
{
    const R_xlen_t count = XLENGTH(seconds);
    seconds = PROTECT(times_of(seconds));
    nanoseconds = PROTECT(numbers_of(nanoseconds));
    if (XLENGTH(seconds) != count || XLENGTH(nanoseconds) != count)
        Rf_error("seconds and nanoseconds must have the same length");
    SEXP out = PROTECT(Rf_allocVector(REALSXP, count));
    for (R_xlen_t i = 0; i < count; i++) {
        int64_t ns;
        double more;
        if (!time_at(seconds, i, &ns) || !number_at(nanoseconds, i, &more) || isnan(more) ||
            __builtin_add_overflow(ns, (int64_t)more, &ns))
            ns = INT64_NA;
        memcpy(&REAL(out)[i], &ns, sizeof ns);
    }
    Rf_setAttrib(out, R_ClassSymbol, Rf_mkString("integer64"));
    UNPROTECT(3);
    return out;
}

// ---------------------------------------------------------------- points and cells

static void check_times(SEXP times, R_xlen_t count)
{
    if (times != R_NilValue && XLENGTH(times) != count)
        Rf_error("%lld values cannot have %lld times", (long long)count, (long long)XLENGTH(times));
}

static void emit_points(sonde_handle metric, SEXP numbers, SEXP times)
{
    for (R_xlen_t i = 0; i < XLENGTH(numbers); i++) {
        double value;
        int64_t ns;
        if (!number_at(numbers, i, &value))
            continue;
        if (times == R_NilValue)
            sonde_put_point(metric, value);
        else if (time_at(times, i, &ns))
            sonde_put_point_at(metric, value, ns);
    }
}

static R_xlen_t rows_of(SEXP numbers)
{
    SEXP dim = Rf_getAttrib(numbers, R_DimSymbol);
    return TYPEOF(dim) == INTSXP && XLENGTH(dim) == 2 ? INTEGER(dim)[0] : 1;
}

// Values of columns that the group does not have are ignored; absent values are missing.
static void emit_rows(sonde_handle group, R_xlen_t size, SEXP numbers, SEXP times)
{
    double row[ROW_MAX];
    const R_xlen_t rows = rows_of(numbers), columns = rows ? XLENGTH(numbers) / rows : 0;
    for (R_xlen_t i = 0; i < rows; i++) {
        int64_t ns;
        for (R_xlen_t j = 0; j < size; j++)
            if (j >= columns || !number_at(numbers, i + j * rows, &row[j]))
                row[j] = sonde_missing();
        if (times == R_NilValue)
            sonde_put_row(group, row);
        else if (time_at(times, i, &ns))
            sonde_put_row_at(group, row, ns);
    }
}

static SEXP r_emit(SEXP object, SEXP value, SEXP time)
{
    if (!is_native(object))
        return R_NilValue;
    const bool group = is_group(object);
    SEXP numbers = PROTECT(numbers_of(value));
    SEXP times = PROTECT(time == R_NilValue ? time : times_of(time));
    check_times(times, group ? rows_of(numbers) : XLENGTH(numbers));
    const sonde_handle handle = handle_of(object);
    if (handle && group)
        emit_rows(handle, XLENGTH(R_ExternalPtrProtected(object)), numbers, times);
    else if (handle)
        emit_points(handle, numbers, times);
    UNPROTECT(2);
    return R_NilValue;
}

static SEXP update_cell(SEXP object, SEXP value, void (*update)(sonde_handle, double))
{
    if (!is_native(object))
        return R_NilValue;
    if (is_group(object))
        Rf_error("a group has no cell");
    SEXP numbers = PROTECT(numbers_of(value));
    const sonde_handle handle = handle_of(object);
    double number;
    for (R_xlen_t i = 0; handle && i < XLENGTH(numbers); i++)
        if (number_at(numbers, i, &number))
            update(handle, number);
    UNPROTECT(1);
    return R_NilValue;
}

static SEXP r_set(SEXP metric, SEXP value)
{
    return update_cell(metric, value, sonde_cell_set);
}

static SEXP r_add(SEXP metric, SEXP amount)
{
    return update_cell(metric, amount, sonde_cell_add);
}

// Returns the seconds of a clock that never goes back, for timers.
static SEXP r_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return Rf_ScalarReal((double)now.tv_sec + (double)now.tv_nsec / NS_PER_S);
}

// ---------------------------------------------------------------- events

static SEXP r_span_begin(SEXP name, SEXP arguments)
{
    const char *text = text_of(name, "the name");
    if (!sonde_level())
        return Rf_ScalarLogical(false);
    const struct tags tags = tags_of(arguments);
    sonde_span_begin_tags(text, tags.list, tags.count);
    return Rf_ScalarLogical(true);
}

static SEXP r_span_end(void)
{
    sonde_span_end();
    return R_NilValue;
}

// An open span is a list of its struct sonde_span, and its name and tags, which libsonde takes
// again at the end. Closing it clears the struct, so that a copy of the list is closed, too.
enum { SPAN, SPAN_TEXTS };
enum { FIRST_SPAN_TAG = 1 };

static struct sonde_span *span_of(SEXP object)
{
    if (!Rf_inherits(object, "sonde_span") || TYPEOF(object) != VECSXP)
        Rf_error("this is not a span of sonde_span_open()");
    if (XLENGTH(object) == 0)
        return NULL; // made in a process without this library
    return (struct sonde_span *)(void *)RAW(VECTOR_ELT(object, SPAN));
}

static SEXP r_span_open(SEXP name, SEXP arguments, SEXP parent, SEXP start)
{
    const char *text = text_of(name, "the name");
    const struct tags tags = tags_of(arguments);
    const struct sonde_span *around = parent == R_NilValue ? NULL : span_of(parent);
    const int64_t start_ns = start == R_NilValue ? 0 : one_time(start, "the start");
    SEXP object = PROTECT(Rf_allocVector(VECSXP, 2));
    SEXP bytes = Rf_allocVector(RAWSXP, sizeof(struct sonde_span));
    SET_VECTOR_ELT(object, SPAN, bytes);
    SEXP texts = Rf_allocVector(STRSXP, FIRST_SPAN_TAG + 2 * (R_xlen_t)tags.count);
    SET_VECTOR_ELT(object, SPAN_TEXTS, texts);
    SET_STRING_ELT(texts, 0, utf8_string(text));
    store_tags(texts, FIRST_SPAN_TAG, &tags);
    Rf_setAttrib(object, R_ClassSymbol, Rf_mkString("sonde_span"));
    if (around && !around->id)
        around = NULL;
    const struct sonde_span span =
        start == R_NilValue ? sonde_span_open(text, tags.list, tags.count, around)
                            : sonde_span_open_at(text, start_ns, tags.list, tags.count, around);
    memcpy(RAW(bytes), &span, sizeof span);
    UNPROTECT(1);
    return object;
}

static SEXP r_span_close(SEXP object, SEXP arguments, SEXP end)
{
    struct sonde_span *span = span_of(object);
    const int64_t end_ns = end == R_NilValue ? 0 : one_time(end, "the end");
    if (!span || !span->id)
        return R_NilValue;
    SEXP texts = VECTOR_ELT(object, SPAN_TEXTS);
    const char *name = CHAR(STRING_ELT(texts, 0));
    struct tags tags = stored_tags(texts, FIRST_SPAN_TAG);
    add_arguments(&tags, arguments);
    if (end == R_NilValue)
        sonde_span_close(span, name, tags.list, tags.count);
    else
        sonde_span_close_at(span, name, end_ns, tags.list, tags.count);
    span->id = 0;
    return R_NilValue;
}

static SEXP r_span_at(SEXP name, SEXP start, SEXP end, SEXP arguments)
{
    const char *text = text_of(name, "the name");
    const int64_t start_ns = one_time(start, "the start"), end_ns = one_time(end, "the end");
    const struct tags tags = tags_of(arguments);
    sonde_span_at(text, start_ns, end_ns, tags.list, tags.count);
    return R_NilValue;
}

static SEXP r_annotate(SEXP text, SEXP arguments)
{
    const struct tags tags = tags_of(arguments);
    sonde_annotate_tags(text_of(text, "the text"), tags.list, tags.count);
    return R_NilValue;
}

static SEXP r_config(SEXP arguments)
{
    const struct tags parameters = tags_of(arguments);
    sonde_config_tags(parameters.list, parameters.count);
    return R_NilValue;
}

// ---------------------------------------------------------------- the run

static SEXP r_level(void)
{
    return Rf_ScalarInteger(sonde_level());
}

static SEXP r_dropped(void)
{
    return Rf_ScalarReal((double)sonde_dropped());
}

// Returns NULL if there is no problem.
static SEXP r_check(void)
{
    char why[1024];
    return sonde_check(why, sizeof why) == 0 ? R_NilValue : Rf_mkString(why);
}

static SEXP r_connect(SEXP socket_path, SEXP level)
{
    const char *path = text_of(socket_path, "the socket");
    return Rf_ScalarLogical(sonde_connect(path, Rf_asInteger(level)) == 0);
}

// `environment` is that of the package.
static SEXP r_load(SEXP environment)
{
    package = environment;
    R_PreserveObject(package);
    for (int i = 0; i < 3; i++)
        symbols[i] = Rf_install(classes[i][0]);
    return R_NilValue;
}

#define ROUTINE(name, arguments)                       \
    {                                                  \
#name, (DL_FUNC)(uintptr_t)r_##name, arguments \
    }
static const R_CallMethodDef routines[] = {
    ROUTINE(load, 1),       ROUTINE(define, 6),     ROUTINE(group, 1),    ROUTINE(is_on, 1),
    ROUTINE(time, 2),       ROUTINE(emit, 3),       ROUTINE(set, 2),      ROUTINE(add, 2),
    ROUTINE(clock, 0),      ROUTINE(span_begin, 2), ROUTINE(span_end, 0), ROUTINE(span_open, 4),
    ROUTINE(span_close, 3), ROUTINE(span_at, 4),    ROUTINE(annotate, 2), ROUTINE(config, 1),
    ROUTINE(level, 0),      ROUTINE(dropped, 0),    ROUTINE(check, 0),    ROUTINE(connect, 2),
    {NULL, NULL, 0},
};

attribute_visible void R_init_sonde(DllInfo *library);
attribute_visible void R_init_sonde(DllInfo *library)
{
    R_registerRoutines(library, NULL, routines, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
    R_forceSymbols(library, TRUE);
}
