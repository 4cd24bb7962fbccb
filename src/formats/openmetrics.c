#include "formats/openmetrics.h"

#include "base/hash.h"
#include "base/json_writer.h"

#include <ctype.h>
#include <math.h>

static void add_name(struct buf *out, struct str name, bool colons)
{
    if (!name.size || isdigit((unsigned char)name.data[0]))
        buf_add_char(out, '_');
    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = (unsigned char)name.data[i];
        bool good = c < 0x80 && (isalnum(c) || c == '_' || (c == ':' && colons));
        buf_add_char(out, good ? (char)c : '_');
    }
}

void openmetrics_add_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '\n')
            buf_add_str(out, STR("\\n"));
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else
            buf_add_char(out, c);
    }
}

struct str openmetrics_family(struct str metric, bool counter, struct map *taken,
                              struct arena *arena)
{
    struct buf name = {0};
    struct str own = metric;
    bool added = true;
    if (counter && str_ends(own, STR("_total")) && own.size > STR("_total").size)
        own.size -= STR("_total").size;
    add_name(&name, own, true);
    struct str family = arena_str(arena, buf_str(&name));
    if (family.data && map_add(taken, family, &added) && !added) {
        buf_printf(&name, "_%08x", (unsigned)hash_bytes(metric.data, metric.size, 0));
        family = arena_str(arena, buf_str(&name));
        if (family.data)
            map_add(taken, family, NULL);
    }
    buf_free(&name);
    return family;
}

// OpenMetrics requires the unit at the end of the name.
static bool ends_in_unit(struct str family, struct str unit)
{
    return unit.size && family.size > unit.size && str_ends(family, unit) &&
           family.data[family.size - unit.size - 1] == '_';
}

void openmetrics_add_head(struct buf *out, struct str family, bool counter, struct str unit,
                          struct str help)
{
    if (help.size) {
        buf_printf(out, "# HELP %.*s ", STR_ARG(family));
        openmetrics_add_escaped(out, help);
        buf_add_char(out, '\n');
    }
    buf_printf(out, "# TYPE %.*s %s\n", STR_ARG(family), counter ? "counter" : "gauge");
    if (ends_in_unit(family, unit))
        buf_printf(out, "# UNIT %.*s %.*s\n", STR_ARG(family), STR_ARG(unit));
}

void openmetrics_add_label_name(struct buf *out, struct str key)
{
    add_name(out, key, false);
}

void openmetrics_add_labels(struct buf *out, const struct openmetrics_label *labels, size_t count)
{
    struct buf text = {0};
    size_t ends[OPENMETRICS_LABELS_MAX + 1] = {0};
    if (count > OPENMETRICS_LABELS_MAX)
        count = OPENMETRICS_LABELS_MAX;
    for (size_t i = 0; i < count; i++) {
        add_name(&text, labels[i].key, false);
        bool again = true;
        while (again && !text.failed) {
            again = false;
            struct str own = str_slice(buf_str(&text), ends[i], text.size);
            for (size_t k = 0; k < i && !again; k++)
                again = str_eq(own, str_slice(buf_str(&text), ends[k], ends[k + 1]));
            if (again)
                buf_add_char(&text, '_');
        }
        ends[i + 1] = text.size;
    }
    for (size_t i = 0; i < count; i++) {
        struct str name = str_slice(buf_str(&text), ends[i], ends[i + 1]);
        buf_printf(out, "%s%.*s=\"", i ? "," : "{", STR_ARG(name));
        openmetrics_add_escaped(out, labels[i].value);
        buf_add_char(out, '"');
    }
    if (count)
        buf_add_char(out, '}');
    buf_free(&text);
}

void openmetrics_add_value(struct buf *out, double value)
{
    char text[NUMBER_TEXT_MAX];
    if (isnan(value))
        buf_add_str(out, STR("NaN"));
    else if (isinf(value))
        buf_add_str(out, value > 0 ? STR("+Inf") : STR("-Inf"));
    else
        buf_add(out, text, number_format(text, value));
}
