#include "cli/answers.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/recordings.h"

#include "base/json_writer.h"
#include "base/log.h"
#include "base/printable.h"
#include "store/inspect.h"

static const char *const states[] = {
    [STORE_LIVE] = "live", [STORE_CLOSED] = "closed", [STORE_CRASHED] = "crashed"};

static double per_value(uint64_t bytes, uint64_t values)
{
    return values ? (double)bytes / (double)values : 0;
}

typedef unsigned long long ull;

static void add_text(struct buf *out, const char *path, const struct store_inspection *i)
{
    char first[64], last[64];
    answers_local_time(i->first_ns, 3, first, sizeof first);
    answers_local_time(i->last_ns, 3, last, sizeof last);
    printable_add(out, str_of(path));
    buf_add_char(out, '\n');
    buf_printf(out, "  state   %s, format %u.%u\n", states[i->state], i->major, i->minor);
    if (i->values > 0)
        buf_printf(out, "  time    %s to %s\n", first, last);
    buf_printf(out, "  holds   %llu metrics, %llu series, %llu sets, %llu spans and annotations\n",
               (ull)i->metrics, (ull)i->series, (ull)i->sets, (ull)i->events);
    buf_printf(out, "  values  %llu, of them %llu not sealed yet\n", (ull)i->values,
               (ull)i->live_values);
    buf_printf(out, "  bytes   %llu (%.3f a value), %llu on the disk\n", (ull)i->file_bytes,
               per_value(i->file_bytes, i->values), (ull)i->disk_bytes);
    buf_printf(out,
               "  blocks  %llu, of them %llu cold: %llu bytes, of them %llu for time stamps, %llu "
               "for headers\n",
               (ull)i->blocks, (ull)i->cold_blocks, (ull)i->block_bytes, (ull)i->time_bytes,
               (ull)i->directory_bytes);
    struct columns table = {0};
    static const char *const titles[] = {"  codec", "columns", "values", "bytes", "bytes a value"};
    columns_titles(&table, titles, sizeof titles / sizeof titles[0]);
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        if (i->codecs[codec].columns == 0)
            continue;
        columns_cell(&table, "  %s", codec_name((enum codec_id)codec));
        columns_cell(&table, "%llu", (ull)i->codecs[codec].columns);
        columns_cell(&table, "%llu", (ull)i->codecs[codec].values);
        columns_cell(&table, "%llu", (ull)i->codecs[codec].bytes);
        columns_cell(&table, "%.3f", per_value(i->codecs[codec].bytes, i->codecs[codec].values));
    }
    if (table.cells > table.count)
        columns_write(&table, out);
    columns_free(&table);
    if (i->damage.blocks)
        printable_printf(out, "  damage  %llu blocks, %llu bytes: %s", (ull)i->damage.blocks,
                         (ull)i->damage.bytes, i->damage.first);
    else
        buf_printf(out, "  damage  none");
    buf_add_char(out, '\n');
}

static void add_json(struct json_writer *w, const char *path, const struct store_inspection *i)
{
    json_begin_object(w);
    json_key_string(w, "path", str_of(path));
    json_key_string(w, "state", str_of(states[i->state]));
    json_key(w, STR("format"));
    json_begin_array(w);
    json_put_u64(w, i->major);
    json_put_u64(w, i->minor);
    json_end_array(w);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"metrics", i->metrics},
        {"series", i->series},
        {"sets", i->sets},
        {"events", i->events},
        {"values", i->values},
        {"live_values", i->live_values},
        {"file_bytes", i->file_bytes},
        {"disk_bytes", i->disk_bytes},
        {"blocks", i->blocks},
        {"cold_blocks", i->cold_blocks},
        {"block_bytes", i->block_bytes},
        {"catalog_bytes", i->catalog_bytes},
        {"time_bytes", i->time_bytes},
        {"directory_bytes", i->directory_bytes},
    };
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        json_key_u64(w, numbers[n].key, numbers[n].value);
    if (i->values > 0) {
        json_key_i64(w, "first_ns", i->first_ns);
        json_key_i64(w, "last_ns", i->last_ns);
        json_key_double(w, "bytes_per_value", per_value(i->file_bytes, i->values));
    }
    json_key(w, STR("codecs"));
    json_begin_object(w);
    for (int codec = 0; codec < CODEC_COUNT; codec++) {
        if (i->codecs[codec].columns == 0)
            continue;
        json_key(w, str_of(codec_name((enum codec_id)codec)));
        json_begin_object(w);
        json_key_u64(w, "columns", i->codecs[codec].columns);
        json_key_u64(w, "values", i->codecs[codec].values);
        json_key_u64(w, "bytes", i->codecs[codec].bytes);
        json_end_object(w);
    }
    json_end_object(w);
    json_key(w, STR("damage"));
    json_begin_object(w);
    json_key_u64(w, "blocks", i->damage.blocks);
    json_key_u64(w, "bytes", i->damage.bytes);
    json_key_string(w, "first", str_of(i->damage.first));
    json_end_object(w);
    json_end_object(w);
}

int command_inspect(const struct options *o)
{
    struct error e;
    struct recordings r;
    if (recordings_find(o, o->arguments, (size_t)o->argument_count, &r, &e) < 0)
        return command_failed(EXIT_FAILED, &e);
    if (r.what[0])
        log_say("%s", r.what);
    struct buf out = {0};
    struct json_writer w = json_to(&out);
    bool json = options_flag(o, OPT_JSON);
    int code = EXIT_OK;
    if (json)
        json_begin_array(&w);
    for (size_t i = 0; i < r.count; i++) {
        struct store_inspection inspection;
        if (store_inspect(r.paths[i], &inspection, &e) < 0) {
            code = command_failed(EXIT_FAILED, &e);
            continue;
        }
        if (inspection.damage.blocks)
            code = EXIT_FAILED;
        if (json)
            add_json(&w, r.paths[i], &inspection);
        else
            add_text(&out, r.paths[i], &inspection);
    }
    if (json) {
        json_end_array(&w);
        buf_add_char(&out, '\n');
    }
    recordings_close(&r);
    int printed = command_print(&out);
    return printed ? printed : code;
}
