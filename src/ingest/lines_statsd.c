// lines_statsd.c - "name:value|type|@rate|#tag:value,tag": Etsy's StatsD protocol with Datadog's
// tags.
//
// Types: c counter, g gauge, ms and h and d timers and distributions (each value is a point), s
// set. One line may hold several values ("m:1:2:3|ms"). Datadog's other additions (container ids,
// time stamps, cardinality) are ignored.
#include "ingest/lines_parse.h"

#include <math.h>

static const struct {
    struct str name;
    enum line_kind kind;
    struct str unit;
} types[] = {
    {{"c", 1}, LINE_COUNT, {"", 0}},
    {{"g", 1}, LINE_GAUGE, {"", 0}},
    {{"ms", 2}, LINE_POINT, {"milliseconds", 12}},
    {{"h", 1}, LINE_POINT, {"", 0}},
    {{"d", 1}, LINE_POINT, {"", 0}},
    {{"s", 1}, LINE_MEMBER, {"", 0}},
};

static bool parse_tags(struct line *l, struct str rest)
{
    while (rest.data) {
        struct str value = str_cut(&rest, ','), key = str_cut(&value, ':');
        if (key.size == 0 && !value.data)
            continue; // skip the empty tag of "#a:b,"
        // A tag without a value gets the value "true".
        if (!line_add_label(l, key, value.data ? value : STR("true")))
            return false;
    }
    return true;
}

static bool parse_values(struct line *l, struct line_item item, struct str values, double rate)
{
    while (values.data) {
        struct str text = str_cut(&values, ':');
        if (item.kind == LINE_MEMBER) {
            if (text.size == 0)
                return line_fail(l, "a set's member is missing");
            item.member = text;
        } else if (!str_to_double(text, &item.value)) {
            return line_fail(l, "value '%s' is not a number", line_quote(text));
            // an infinite value would make the total infinite for ever
        } else if (!isfinite(item.value / rate)) {
            return line_fail(l, "value '%s' is not a finite number", line_quote(text));
        }
        struct line_item one = item;
        if (item.kind == LINE_COUNT)
            one.value = item.value / rate;
        if (item.kind == LINE_GAUGE && (text.data[0] == '+' || text.data[0] == '-'))
            one.kind = LINE_GAUGE_ADD;
        if (!line_add_item(l, &one))
            return false;
    }
    return true;
}

bool line_parse_statsd(struct line *l, struct str text)
{
    struct str sections = text, values = str_cut(&sections, '|');
    struct line_item item = {.name = str_cut(&values, ':')};
    struct str type = str_cut(&sections, '|');
    size_t found = 0;
    while (found < sizeof types / sizeof *types && !str_eq(types[found].name, type))
        found++;
    if (found == sizeof types / sizeof *types)
        return line_fail(l, "type '%s' is not one of c g ms h d s", line_quote(type));
    item.kind = types[found].kind;
    item.unit = types[found].unit;
    double rate = 1;
    while (sections.data) {
        struct str section = str_cut(&sections, '|');
        struct str behind = str_slice(section, 1, section.size);
        if (str_starts(section, STR("@")) &&
            !(str_to_double(behind, &rate) && rate > 0 && rate <= 1))
            return line_fail(l, "sample rate '%s' is not above 0 and at most 1",
                             line_quote(behind));
        if (str_starts(section, STR("#")) && !parse_tags(l, behind))
            return false;
    }
    return parse_values(l, item, values, rate);
}
