// peaks.c - prints the highest value of a metric on each host of its job or of a recording. With a
// limit, it waits until a value is above it.
//
//   peaks [-w LIMIT] METRIC [RECORDING]
#include <sonde_client.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *host_of(const struct sonde_series *s)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (strcmp(s->tags[i].key, "host") == 0)
            return s->tags[i].value;
    return "?";
}

static void print_point(const struct sonde_series *s, size_t i)
{
    char text[32];
    time_t seconds = (time_t)(s->time_ns[i] / 1000000000);
    struct tm local;
    strftime(text, sizeof text, "%F %T", localtime_r(&seconds, &local));
    printf("%-16s %s  %g %s\n", host_of(s), text, s->values[i], s->unit);
}

static int show_peaks(struct sonde_client *client, const char *metric, struct sonde_error *e)
{
    const char *const by[] = {"host", NULL};
    struct sonde_result *peaks;
    int rc = sonde_client_peaks(client, &(struct sonde_query){.metric = metric}, by, &peaks, e);
    for (size_t i = 0; rc == 0 && i < sonde_result_count(peaks); i++)
        print_point(sonde_result_series(peaks, i), 0);
    if (rc == 0)
        sonde_result_free(peaks);
    return rc;
}

// Waits until a new point is above the limit.
static int wait_for(struct sonde_client *client, const char *metric, double limit,
                    struct sonde_error *e)
{
    struct sonde_watch *watch;
    struct sonde_result *fresh;
    bool above = false;
    int rc = sonde_client_watch(client, &(struct sonde_query){.metric = metric}, &watch, e);
    if (rc)
        return rc;
    while (!above && (rc == 0 || rc == -ETIMEDOUT)) {
        rc = sonde_watch_next(watch, 1000, &fresh, e);
        for (size_t i = 0; rc == 0 && !above && i < sonde_result_count(fresh); i++) {
            const struct sonde_series *s = sonde_result_series(fresh, i);
            for (size_t k = 0; k < s->count && !above; k++)
                if ((above = s->values[k] > limit))
                    print_point(s, k);
        }
        if (rc == 0)
            sonde_result_free(fresh);
    }
    sonde_watch_close(watch);
    return above ? 0 : rc;
}

int main(int argc, char **argv)
{
    struct sonde_error e;
    struct sonde_client *client;
    double limit = NAN;
    if (argc > 2 && strcmp(argv[1], "-w") == 0) {
        limit = strtod(argv[2], NULL);
        argc -= 2;
        argv += 2;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: peaks [-w LIMIT] METRIC [RECORDING]\n");
        return 2;
    }
    int rc = sonde_client_open(argc > 2 ? argv[2] : NULL, NULL, &client, &e);
    if (rc == 0) {
        rc = isnan(limit) ? show_peaks(client, argv[1], &e) : wait_for(client, argv[1], limit, &e);
        sonde_client_close(client);
    }
    if (rc)
        fprintf(stderr, "peaks: %s\n", e.text);
    return rc ? 1 : 0;
}
