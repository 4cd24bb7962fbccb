// readback TIMES: emits with each kind of call in sonde.h, and queries the value at once in the
// same process. Prints how many answers contained the value.
#include <sonde.h>
#include <sonde_client.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sonde_client *client;

// Returns the last value of the metric's only series; NaN if there is none.
static double last_of(const char *metric)
{
    struct sonde_query q = {.metric = metric};
    struct sonde_result *result;
    struct sonde_error error;
    double last = NAN;
    if (sonde_client_query(client, &q, &result, &error) != 0)
        return NAN;
    if (sonde_result_count(result) == 1) {
        const struct sonde_series *s = sonde_result_series(result, 0);
        if (s->count)
            last = s->values[s->count - 1];
    }
    sonde_result_free(result);
    return last;
}

static bool has(const char *path, const char *text)
{
    char *answer;
    size_t size;
    struct sonde_error error;
    if (sonde_client_ask(client, path, NULL, &answer, &size, &error) != 0)
        return false;
    bool found = strstr(answer, text) != NULL;
    sonde_list_free(answer);
    return found;
}

int main(int argc, char **argv)
{
    struct sonde_error error;
    int times = argc > 1 ? atoi(argv[1]) : 1;
    if (sonde_client_open(NULL, NULL, &client, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    sonde_handle point = sonde_gauge("point", ""), cell = sonde_gauge("cell", ""),
                 total = sonde_counter("total", "");
    sonde_handle members[] = {sonde_gauge("left", ""), sonde_gauge("right", "")};
    sonde_handle both = sonde_group(members, 2);
    int points = 0, cells = 0, totals = 0, rows = 0, spans = 0, notes = 0;
    for (int i = 1; i <= times; i++) {
        char text[64];
        sonde_emit(point, i);
        points += last_of("point") == i;
        sonde_set(cell, i);
        cells += last_of("cell") == i;
        sonde_add(total, 1);
        totals += last_of("total") == i;
        sonde_emit_group(both, (const double[]){i, -i});
        rows += last_of("left") == i && last_of("right") == -i;
        snprintf(text, sizeof text, "span_%d", i);
        sonde_span_begin(text);
        sonde_span_end();
        spans += has("/sonde/v1/spans", text);
        snprintf(text, sizeof text, "note_%d", i);
        sonde_annotate(text);
        notes += has("/sonde/v1/annotations", text);
    }
    printf("points %d cells %d totals %d rows %d spans %d notes %d of %d\n", points, cells, totals,
           rows, spans, notes, times);
    sonde_client_close(client);
    return 0;
}
