// The program of test_languages.py in C: program BASE, where BASE is in ns since the epoch.
#include <sonde.h>
#include <stdlib.h>

static sonde_handle define(const char *name, enum sonde_kind kind, const char *unit,
                           const char *help, int level, const struct sonde_tag *tags, size_t count)
{
    struct sonde_metric metric = {name, unit, help, kind, level, tags, count};
    return sonde_define(&metric);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    const int64_t base = strtoll(argv[1], NULL, 10), ms = 1000000;
    const struct sonde_tag of_loss[] = {{"model", "sin"}, {"rank", "3"}};
    const struct sonde_tag of_steps[] = {{"exact", "true"}, {"rate", "0.1"}};
    const struct sonde_tag file = {"file", "a b"}, of = {"of", "none"};
    sonde_handle loss = define("loss", SONDE_GAUGE, "", "", 1, of_loss, 2);
    sonde_handle written =
        define("written", SONDE_GAUGE, "bytes", "bytes written so far", 1, NULL, 0);
    sonde_handle hidden = define("hidden", SONDE_GAUGE, "", "", 2, NULL, 0);
    sonde_handle warmth = sonde_gauge("warmth", "");
    sonde_handle steps = define("steps", SONDE_COUNTER, "", "", 1, of_steps, 2);
    const sonde_handle sides[] = {sonde_gauge("left", ""), sonde_gauge("right", "")};
    sonde_handle both = sonde_group(sides, 2);

    sonde_config("lr", "0.01", "optimizer", "adam");
    for (int i = 1; i <= 10; i++) {
        sonde_emit(loss, 1.0 / i);
        sonde_emit_at(written, 1024.0 * i, base + i * ms);
        sonde_emit(hidden, i);
        sonde_add(steps, 1);
    }
    sonde_set(warmth, 21.5);
    sonde_emit_group_at(both, (const double[]){1, 2}, base);
    sonde_emit_group_at(both, (const double[]){3, sonde_missing()}, base + ms);
    sonde_span_begin("epoch", "number", "1");
    for (int i = 1; i <= 3; i++) {
        const char number[] = {(char)('0' + i), 0};
        sonde_span_begin("step", "number", number, "phase", "warm up");
        sonde_span_end();
    }
    sonde_span_end();
    sonde_span_at("load", base, base + 1500 * ms, &file, 1);
    struct sonde_span task = sonde_span_open("task", &of, 1, NULL);
    struct sonde_span part = sonde_span_open("part", NULL, 0, &task);
    sonde_span_close(&part, "part", NULL, 0);
    sonde_span_close(&task, "task", &of, 1);
    sonde_annotate("done", "file", "ck-12");
    return 0;
}
