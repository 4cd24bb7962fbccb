// sonde.h compiles as C++, and all of it links.
#include "sonde.h"

int main()
{
    const sonde_tag tags[] = {{"key", "value"}};
    sonde_metric metric = {};
    metric.name = "from_cpp";
    metric.kind = SONDE_COUNTER;
    metric.tags = tags;
    metric.tag_count = 1;
    const sonde_handle members[] = {sonde_define(&metric), sonde_gauge("g", nullptr), sonde_counter("c", "bytes")};
    const sonde_handle group = sonde_group(members, 3);
    const double row[] = {1, 2, sonde_missing()};
    sonde_emit(members[0], 1);
    sonde_emit_at(members[0], 1, 1);
    sonde_set(members[1], 2);
    sonde_add(members[2], 3);
    sonde_emit_group(group, row);
    sonde_emit_group_at(group, row, 1);
    sonde_span_begin("span", "key", "value");
    sonde_span_begin("bare");
    sonde_span_end();
    sonde_span_end();
    sonde_span_at("past", 1, 2, tags, 1);
    sonde_span span = sonde_span_open_at("begun", 1, tags, 1, nullptr);
    sonde_span_close_at(&span, "begun", 2, tags, 1);
    sonde_annotate("note");
    sonde_config("lr", "0.01");
    return sonde_level() != 0 || sonde_dropped() != 0 || members[0] != 0 ||
           *sonde_version() == 0; // no agent: all is off
}
