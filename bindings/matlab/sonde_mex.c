// sonde_mex.c - sonde.h for MATLAB and Octave: sonde_mex(COMMAND, …), which the functions of the
// package +sonde call. It uses only the part of the MEX API that both have.
//
// A metric is a double: the handle of sonde.h in the lower 32 bits, above them its kind. 0 is off.
//
// The interpreter calls MEX files from one thread, so the state is not locked. A call with an
// argument of the wrong type raises an error of the interpreter (misuse), which does not return;
// nothing is held then.
#include "../go/shim.h"

#include <mex.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    TEXT_MAX = 4096 + 1,          // one more than sonde.h allows, so that libsonde sees the excess
    TEXT_ROOM = TEXT_MAX + 3 + 1, // the rest of the last character, and a NUL
    NUMBER_MAX = 32,              // bytes of a number as text
    ROW_MAX = 4096,               // metrics of a group: sonde.h
    NESTED_MAX = 64               // depth of nested spans: sonde.h
};

#define KIND_UNIT 4294967296.0 // 2^32: above the handle

// Kinds of metrics. A group of n metrics has KIND_GROUP + n.
enum { KIND_GAUGE = SONDE_GAUGE, KIND_COUNTER = SONDE_COUNTER, KIND_GROUP = 1 };

struct metric {
    sonde_handle handle;
    size_t kind;
};

typedef const mxArray *const *arguments;

__attribute__((noreturn)) static void misuse(const char *what)
{
    mexErrMsgIdAndTxt("sonde:type", "sonde: %s", what);
    abort(); // not reached
}

// ---------------------------------------------------------------- text

// Calls a function of MATLAB that converts a value of a class that the MEX API cannot read.
static const mxArray *convert(const mxArray *from, const char *function)
{
    mxArray *argument = (mxArray *)(uintptr_t)from, *result = NULL;
    if (mexCallMATLAB(1, &result, 1, &argument, function) != 0 || !result)
        misuse("a value cannot be converted");
    return result; // the interpreter frees it after the call
}

static bool is_text(const mxArray *value)
{
    return mxIsChar(value) || mxIsClass(value, "string");
}

// Writes a character in UTF-8; returns the place after it.
static char *put_character(char *at, uint32_t c)
{
    if (c < 0x80) {
        *at++ = (char)c;
        return at;
    }
    if (c < 0x800) {
        *at++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *at++ = (char)(0xe0 | c >> 12);
        } else {
            *at++ = (char)(0xf0 | c >> 18);
            *at++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *at++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *at++ = (char)(0x80 | (c & 0x3f));
    return at;
}

// Writes at most TEXT_ROOM bytes with a NUL; returns the place after the NUL. A character of Octave
// is a byte of UTF-8, one of MATLAB is a unit of UTF-16. The text ends at its first NUL.
static char *put_text(char *at, const mxArray *text)
{
    if (!is_text(text))
        misuse("a name or key is not text");
    if (!mxIsChar(text))
        text = convert(text, "char");
    const mxChar *from = mxGetChars(text);
    const char *const end = at + TEXT_MAX;
    const size_t count = mxGetNumberOfElements(text);
    for (size_t i = 0; i < count && from[i] && at < end; i++) {
        if (sizeof *from == 1) {
            *at++ = (char)from[i];
            continue;
        }
        uint32_t c = (uint32_t)from[i], low = i + 1 < count ? (uint32_t)from[i + 1] : 0;
        if ((c & 0xfc00) == 0xd800 && (low & 0xfc00) == 0xdc00) {
            c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
            i++;
        } else if ((c & 0xf800) == 0xd800) {
            c = 0xfffd; // half of a pair
        }
        at = put_character(at, c);
    }
    *at++ = 0;
    return at;
}

static double number(const mxArray *from, size_t i)
{
    const void *data = mxGetData(from);
    switch (mxGetClassID(from)) {
    case mxDOUBLE_CLASS:
        return ((const double *)data)[i];
    case mxSINGLE_CLASS:
        return (double)((const float *)data)[i];
    case mxLOGICAL_CLASS:
        return (double)((const mxLogical *)data)[i];
    case mxINT8_CLASS:
        return (double)((const int8_t *)data)[i];
    case mxUINT8_CLASS:
        return (double)((const uint8_t *)data)[i];
    case mxINT16_CLASS:
        return (double)((const int16_t *)data)[i];
    case mxUINT16_CLASS:
        return (double)((const uint16_t *)data)[i];
    case mxINT32_CLASS:
        return (double)((const int32_t *)data)[i];
    case mxUINT32_CLASS:
        return (double)((const uint32_t *)data)[i];
    case mxINT64_CLASS:
        return (double)((const int64_t *)data)[i];
    case mxUINT64_CLASS:
        return (double)((const uint64_t *)data)[i];
    default:
        misuse("a value is not a number");
    }
}

static bool is_real(const mxArray *value)
{
    return (mxIsNumeric(value) || mxIsLogical(value)) && !mxIsComplex(value) && !mxIsSparse(value);
}

// Writes the shortest form that reads back as the same number: 0.1, 1e-05.
static void format(char out[NUMBER_MAX], double value, bool is_single)
{
    const int fewest = is_single ? 6 : 15, most = is_single ? 9 : 17;
    for (int digits = fewest; digits <= most; digits++) {
        snprintf(out, NUMBER_MAX, "%.*g", digits, value);
        // strtod uses the program's locale, as the text does
        if (is_single ? strtof(out, NULL) == (float)value : strtod(out, NULL) == value)
            break;
    }
    char *comma = strchr(out, ',');
    if (comma)
        *comma = '.';
    if (value != value)
        strcpy(out, "nan");
}

static char *put_value(char *at, const mxArray *value)
{
    if (is_text(value))
        return put_text(at, value);
    if (!is_real(value) || mxGetNumberOfElements(value) != 1)
        misuse("the value of a tag is neither text nor a number");
    switch (mxGetClassID(value)) {
    case mxLOGICAL_CLASS:
        snprintf(at, NUMBER_MAX, "%s", number(value, 0) != 0 ? "true" : "false");
        break;
    case mxINT64_CLASS:
        snprintf(at, NUMBER_MAX, "%lld", (long long)*(const int64_t *)mxGetData(value));
        break;
    case mxUINT64_CLASS:
        snprintf(at, NUMBER_MAX, "%llu", (unsigned long long)*(const uint64_t *)mxGetData(value));
        break;
    default: // small integers, too
        format(at, number(value, 0), mxGetClassID(value) == mxSINGLE_CLASS);
    }
    return at + strlen(at) + 1;
}

// A name and tags in the form of shim.h. The next call overwrites it.
static struct block {
    size_t tags, size;
    char text[(1 + 2 * SHIM_TAGS_MAX) * TEXT_ROOM];
} block;

static void put_tags(char *at, int count, arguments in)
{
    if (count % 2)
        misuse("a tag has no value");
    block.tags = 0;
    for (int i = 0; i < count && block.tags < SHIM_TAGS_MAX; i += 2, block.tags++)
        at = put_value(put_text(at, in[i]), in[i + 1]);
    block.size = (size_t)(at - block.text);
}

// The arguments are a name, and keys and values of tags.
static void put_block(int count, arguments in)
{
    if (count < 1)
        misuse("the name is missing");
    put_tags(put_text(block.text, in[0]), count - 1, in + 1);
}

// ---------------------------------------------------------------- metrics

// The largest handle of this process. A metric that was loaded from a file, or sent by another
// process, may be larger; libsonde must not get it.
static sonde_handle last_handle;

static mxArray *new_metric(sonde_handle handle, size_t kind)
{
    if (handle > last_handle)
        last_handle = handle;
    return mxCreateDoubleScalar(handle ? (double)handle + (double)kind * KIND_UNIT : 0);
}

// Returns a metric with the handle 0 for a metric that is off or not of this process.
static struct metric metric_of(double value)
{
    if (!(value >= 1 && value < (KIND_GROUP + ROW_MAX + 1) * KIND_UNIT))
        return (struct metric){0};
    const uint64_t bits = (uint64_t)value;
    const struct metric metric = {(sonde_handle)bits, bits >> 32};
    return metric.handle <= last_handle ? metric : (struct metric){0};
}

static struct metric metric_argument(int count, arguments in)
{
    if (count < 1 || !is_real(in[0]) || mxGetNumberOfElements(in[0]) != 1)
        misuse("the first argument is not a metric");
    return metric_of(number(in[0], 0));
}

static const mxArray *values_argument(int count, arguments in)
{
    if (count < 2 || !is_real(in[1]))
        misuse("the value is not a number");
    return in[1];
}

// The arguments are the name, then keys and values of tags. Three keys describe the metric instead.
static mxArray *define(int count, arguments in, size_t kind)
{
    static char details[2 * TEXT_ROOM]; // UNIT\0HELP\0
    const mxArray *tags[2 * SHIM_TAGS_MAX + 1], *unit = NULL, *help = NULL;
    int level = 1, tag_count = 0;
    if (count < 1)
        misuse("the name is missing");
    if (count % 2 == 0)
        misuse("a tag has no value");
    for (int i = 1; i < count; i += 2) {
        char key[TEXT_ROOM];
        put_text(key, in[i]);
        if (strcmp(key, "unit") == 0) {
            unit = in[i + 1];
        } else if (strcmp(key, "help") == 0) {
            help = in[i + 1];
        } else if (strcmp(key, "level") == 0) {
            if (!is_real(in[i + 1]) || mxGetNumberOfElements(in[i + 1]) != 1)
                misuse("the level is not a number");
            level = (int)mxGetScalar(in[i + 1]);
        } else if (tag_count < 2 * SHIM_TAGS_MAX) {
            tags[tag_count++] = in[i];
            tags[tag_count++] = in[i + 1];
        }
    }
    char *at = details;
    details[0] = details[1] = 0;
    at = unit ? put_text(at, unit) : at + 1;
    *at = 0;
    if (help)
        put_text(at, help);
    put_tags(put_text(block.text, in[0]), tag_count, tags);
    return new_metric(shim_define(block.text, block.tags, details, (int)kind, level), kind);
}

static mxArray *gauge(int count, arguments in)
{
    return define(count, in, KIND_GAUGE);
}

static mxArray *counter(int count, arguments in)
{
    return define(count, in, KIND_COUNTER);
}

// The argument is an array of metrics.
static mxArray *group(int count, arguments in)
{
    // one more than the limit, so that libsonde sees and counts the excess
    static sonde_handle handles[ROW_MAX + 1];
    if (count != 1 || !is_real(in[0]))
        misuse("the members of a group are not an array of metrics");
    size_t members = mxGetNumberOfElements(in[0]);
    if (members > ROW_MAX + 1)
        members = ROW_MAX + 1;
    for (size_t i = 0; i < members; i++)
        handles[i] = metric_of(number(in[0], i)).handle;
    return new_metric(sonde_group(handles, members), KIND_GROUP + members);
}

// ---------------------------------------------------------------- points and cells

// Returns a time in ns. int64 and uint64 are ns; other numbers are seconds, rounded to
// microseconds, because a double cannot hold today's ns.
static int64_t time_of(const mxArray *times, size_t i)
{
    if (mxGetClassID(times) == mxINT64_CLASS)
        return ((const int64_t *)mxGetData(times))[i];
    if (mxGetClassID(times) == mxUINT64_CLASS)
        return (int64_t)((const uint64_t *)mxGetData(times))[i];
    const double microseconds = number(times, i) * 1e6, limit = 9.2e15;
    if (!(microseconds > -limit && microseconds < limit))
        misuse("a time of class double is in seconds; pass ns as int64");
    return (int64_t)(microseconds + (microseconds < 0 ? -0.5 : 0.5)) * 1000;
}

static const mxArray *times_argument(const mxArray *times, size_t points)
{
    if (mxIsClass(times, "datetime"))
        times = convert(times, "posixtime");
    if (!is_real(times))
        misuse("a time is not a number");
    if (mxGetNumberOfElements(times) != points)
        misuse("there is not one time for each point");
    return times;
}

// Emits rows of a group: each row of a matrix with a column for each metric, or one row that is
// filled up with missing values. NaN is the missing value.
static void emit_rows(struct metric group, const mxArray *values, const mxArray *times)
{
    static double row[ROW_MAX];
    const size_t members = group.kind - KIND_GROUP, count = mxGetNumberOfElements(values);
    const bool is_matrix = mxGetN(values) == members;
    const size_t rows = is_matrix ? mxGetM(values) : 1, step = is_matrix ? rows : 1;
    times = times ? times_argument(times, rows) : NULL;
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < members; i++) {
            const size_t at = r + i * step;
            const double value = at < count ? number(values, at) : sonde_missing();
            row[i] = value == value ? value : sonde_missing();
        }
        if (times)
            sonde_emit_group_at(group.handle, row, time_of(times, r));
        else
            sonde_emit_group(group.handle, row);
    }
}

static mxArray *emit(int count, arguments in)
{
    const struct metric metric = metric_argument(count, in);
    const mxArray *values = values_argument(count, in), *times = count > 2 ? in[2] : NULL;
    const size_t points = mxGetNumberOfElements(values);
    if (metric.kind > KIND_GROUP) {
        emit_rows(metric, values, times);
    } else if (times) {
        times = times_argument(times, points);
        for (size_t i = 0; i < points; i++)
            sonde_emit_at(metric.handle, number(values, i), time_of(times, i));
    } else {
        for (size_t i = 0; i < points; i++)
            sonde_emit(metric.handle, number(values, i));
    }
    return NULL;
}

static mxArray *change_cell(int count, arguments in, void (*change)(sonde_handle, double))
{
    const struct metric metric = metric_argument(count, in);
    const mxArray *values = values_argument(count, in);
    if (metric.kind > KIND_GROUP)
        misuse("a group has no cell");
    for (size_t i = 0; i < mxGetNumberOfElements(values); i++)
        change(metric.handle, number(values, i));
    return NULL;
}

static mxArray *cell_set(int count, arguments in)
{
    return change_cell(count, in, sonde_set);
}

static mxArray *cell_add(int count, arguments in)
{
    return change_cell(count, in, sonde_add);
}

static double steady_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static mxArray *timer_begin(int count, arguments in)
{
    (void)count, (void)in;
    return mxCreateDoubleScalar(steady_seconds());
}

// The arguments are a metric, and what timer_begin returned.
static mxArray *timer_end(int count, arguments in)
{
    const struct metric metric = metric_argument(count, in);
    const double seconds = steady_seconds() - mxGetScalar(values_argument(count, in));
    if (metric.kind == KIND_COUNTER)
        sonde_add(metric.handle, seconds);
    else if (metric.kind == KIND_GAUGE)
        sonde_emit(metric.handle, seconds);
    return NULL;
}

// ---------------------------------------------------------------- nested spans

// The open nested spans, the outermost first. They are spans of no thread for libsonde, because an
// object of the interpreter may end before or after the objects inside of it:
//
//     for i = 1:3
//         s = sonde.span('step');   % the new span begins, then the assignment ends the last one
//     end
struct nested {
    struct sonde_span span;
    double id;
    bool begun; // by span_begin, for span_end
    size_t tags;
    char text[];
};

static struct {
    struct nested *spans[NESTED_MAX];
    size_t depth;
    size_t unrecorded; // spans begun by span_begin while there was no room
    double last_id;
} nest;

// Returns the id; 0 if the span is not recorded.
static double nested_begin(int count, arguments in, bool begun)
{
    put_block(count, in);
    if (sonde_level() == 0)
        return 0;
    struct nested *new = nest.depth < NESTED_MAX ? malloc(sizeof *new + block.size) : NULL;
    if (!new) {
        nest.unrecorded += begun;
        return 0;
    }
    const struct sonde_span none = {0};
    new->span = shim_span_open(block.text, block.tags,
                               nest.depth ? nest.spans[nest.depth - 1]->span : none);
    new->id = ++nest.last_id;
    new->begun = begun;
    new->tags = block.tags;
    memcpy(new->text, block.text, block.size);
    nest.spans[nest.depth++] = new;
    return new->id;
}

// A span that outlives the span around it is not inside of it any more: its new parent is the next
// one outside.
static void nested_end(size_t place)
{
    struct nested *old = nest.spans[place];
    shim_span_close(old->span, old->text, old->tags);
    if (place + 1 < nest.depth)
        nest.spans[place + 1]->span.parent = old->span.parent;
    nest.depth--;
    for (size_t i = place; i < nest.depth; i++)
        nest.spans[i] = nest.spans[i + 1];
    free(old);
}

static mxArray *scope_begin(int count, arguments in)
{
    return mxCreateDoubleScalar(nested_begin(count, in, false));
}

// The argument is what scope_begin returned.
static mxArray *scope_end(int count, arguments in)
{
    const double id = count == 1 ? mxGetScalar(in[0]) : 0;
    for (size_t i = nest.depth; i-- > 0;)
        if (nest.spans[i]->id == id) {
            nested_end(i);
            break;
        }
    return NULL;
}

static mxArray *span_begin(int count, arguments in)
{
    nested_begin(count, in, true);
    return NULL;
}

static mxArray *span_end(int count, arguments in)
{
    (void)count, (void)in;
    if (nest.unrecorded) {
        nest.unrecorded--;
        return NULL;
    }
    for (size_t i = nest.depth; i-- > 0;)
        if (nest.spans[i]->begun) {
            nested_end(i);
            break;
        }
    return NULL;
}

// ---------------------------------------------------------------- other spans, annotations

// An open span is a vector of uint8: struct sonde_span, the number of tags, the block.
enum { SPAN_TAGS = sizeof(struct sonde_span), SPAN_TEXT };

// Returns an id of 0 if the value is not an open span.
static struct sonde_span span_argument(const mxArray *value)
{
    struct sonde_span span = {0};
    const size_t size = mxGetNumberOfElements(value);
    if (size == 0)
        return span; // sonde was off
    if (mxGetClassID(value) != mxUINT8_CLASS || size <= SPAN_TEXT)
        misuse("the argument is not an open span");
    const unsigned char *bytes = mxGetData(value);
    size_t texts = 0;
    for (size_t i = SPAN_TEXT; i < size; i++)
        texts += bytes[i] == 0;
    if (bytes[SPAN_TAGS] > SHIM_TAGS_MAX || texts != 1 + 2 * (size_t)bytes[SPAN_TAGS] ||
        bytes[size - 1] != 0)
        misuse("the argument is not an open span");
    memcpy(&span, bytes, sizeof span);
    return span;
}

// The arguments are the name, an open span as the parent or nothing, and tags.
static mxArray *span_open(int count, arguments in)
{
    struct sonde_span parent = {0};
    if (count < 1)
        misuse("the name is missing");
    char *at = put_text(block.text, in[0]);
    if (count > 1 && !is_text(in[1])) {
        parent = span_argument(in[1]);
        count--, in++;
    }
    put_tags(at, count - 1, in + 1);
    const struct sonde_span span = shim_span_open(block.text, block.tags, parent);
    if (span.id == 0)
        return mxCreateNumericMatrix(0, 0, mxUINT8_CLASS, mxREAL);
    mxArray *result =
        mxCreateNumericMatrix(1, (mwSize)(SPAN_TEXT + block.size), mxUINT8_CLASS, mxREAL);
    unsigned char *bytes = mxGetData(result);
    memcpy(bytes, &span, sizeof span);
    bytes[SPAN_TAGS] = (unsigned char)block.tags;
    memcpy(bytes + SPAN_TEXT, block.text, block.size);
    return result;
}

static mxArray *span_close(int count, arguments in)
{
    if (count != 1)
        misuse("the open span is missing");
    const struct sonde_span span = span_argument(in[0]);
    if (span.id) {
        const char *bytes = mxGetData(in[0]);
        shim_span_close(span, bytes + SPAN_TEXT, (unsigned char)bytes[SPAN_TAGS]);
    }
    return NULL;
}

// The arguments are the name, start, end, and tags.
static mxArray *span_at(int count, arguments in)
{
    if (count < 3)
        misuse("a span needs a name, a start and an end");
    const int64_t start = time_of(times_argument(in[1], 1), 0);
    const int64_t end = time_of(times_argument(in[2], 1), 0);
    put_tags(put_text(block.text, in[0]), count - 3, in + 3);
    shim_span_at(block.text, block.tags, start, end);
    return NULL;
}

static mxArray *annotate(int count, arguments in)
{
    put_block(count, in);
    shim_annotate(block.text, block.tags);
    return NULL;
}

// The arguments are keys and values. They are passed on in turns, because their number is not
// limited.
static mxArray *config(int count, arguments in)
{
    if (count % 2)
        misuse("a parameter has no value");
    block.text[0] = 0; // no name
    for (int i = 0; i < count; i += 2) {
        put_tags(block.text + 1, 2, in + i);
        shim_config(block.text, block.tags);
    }
    return NULL;
}

// ---------------------------------------------------------------- the state of sonde

static mxArray *level(int count, arguments in)
{
    (void)count, (void)in;
    return mxCreateDoubleScalar(sonde_level());
}

static mxArray *dropped(int count, arguments in)
{
    (void)count, (void)in;
    return mxCreateDoubleScalar((double)sonde_dropped());
}

// Returns '' if there is no problem.
static mxArray *check(int count, arguments in)
{
    char why[1024];
    (void)count, (void)in;
    return mxCreateString(sonde_check(why, sizeof why) == 0 ? "" : why);
}

// The arguments are the path of a socket and a level. Returns whether it succeeded.
static mxArray *connect_agent(int count, arguments in)
{
    if (count != 2 || !is_real(in[1]) || mxGetNumberOfElements(in[1]) != 1)
        misuse("sonde.connect needs the path of a socket and a level");
    put_text(block.text, in[0]);
    return mxCreateLogicalScalar(sonde_connect(block.text, (int)mxGetScalar(in[1])) == 0);
}

static mxArray *version(int count, arguments in)
{
    (void)count, (void)in;
    return mxCreateString(sonde_version());
}

static const struct command {
    const char *name;
    mxArray *(*run)(int count, arguments in); // NULL: no result
} COMMANDS[] = {
    {"emit", emit},
    {"cell_add", cell_add},
    {"cell_set", cell_set},
    {"scope_begin", scope_begin},
    {"scope_end", scope_end},
    {"span_begin", span_begin},
    {"span_end", span_end},
    {"timer_begin", timer_begin},
    {"timer_end", timer_end},
    {"gauge", gauge},
    {"counter", counter},
    {"group", group},
    {"span_open", span_open},
    {"span_close", span_close},
    {"span_at", span_at},
    {"annotate", annotate},
    {"config", config},
    {"level", level},
    {"dropped", dropped},
    {"check", check},
    {"connect", connect_agent},
    {"version", version},
};

void mexFunction(int result_count, mxArray *results[], int count, const mxArray *in[])
{
    (void)result_count;
    // libsonde's memory and fork handlers are used until the process ends.
    if (!mexIsLocked())
        mexLock();
    char name[16] = "";
    if (count < 1 || mxGetString(in[0], name, sizeof name) != 0)
        misuse("call the functions of the package sonde instead of sonde_mex");
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (strcmp(name, COMMANDS[i].name) == 0) {
            mxArray *result = COMMANDS[i].run(count - 1, in + 1);
            if (result)
                results[0] = result;
            return;
        }
    misuse("sonde_mex does not have this command; are the files of +sonde of another version?");
}
