// hwmon.c - temperatures and fans: /sys/class/hwmon/hwmonN/{name, temp1_input, temp1_label,
// fan1_input, …}.
//
// Temperatures are in thousandths of a degree, fans in turns a minute. Some sensors are on slow
// buses, so the source reads every RATE_S seconds, in a thread of its own. Chips of the same name
// get the names of their folders.
#include "collect/valuefiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE_S = 5 }; // seconds between samples

// The files of a kind of sensor: temp1_input, temp2_input, …
enum { SENSORS_MAX = 64, NAME_SIZE = 32 };

static const struct sensors {
    const char *prefix;
    enum metric_symbol row;
    double per;
} temperatures = {"temp", METRIC_TEMPERATURE, 1000}, fans = {"fan", METRIC_FAN, 1};

struct hwmon {
    struct valuefiles *values;
    const struct sensors *sensors;
    char names[SENSORS_MAX][NAME_SIZE];
    struct valuefile_row rows[SENSORS_MAX];
    size_t count;
};

static bool add_sensor(struct source *s, const char *folder, const char *file, void *user)
{
    (void)user;
    struct hwmon *h = s->state;
    static const char ending[] = "_input";
    size_t size = strlen(file), stem = size - (sizeof ending - 1);
    char label[SOURCE_TAG_SIZE], label_file[NAME_SIZE], chip[SOURCE_TAG_SIZE];
    if (h->count == SENSORS_MAX || size < sizeof ending || size >= NAME_SIZE ||
        strcmp(file + stem, ending) != 0)
        return h->count < SENSORS_MAX;
    int written = snprintf(label_file, sizeof label_file, "%.*s_label", (int)stem, file);
    if (written < 0 || (size_t)written >= sizeof label_file ||
        !valuefiles_text(s, folder, label_file, label))
        snprintf(label, sizeof label, "%.*s", (int)stem, file);
    if (!valuefiles_text(s, folder, "name", chip))
        snprintf(chip, sizeof chip, "unknown");
    if (source_find(s, str_of(chip), str_of(label)) >= 0) {
        char other[SOURCE_TAG_SIZE];
        const char *slash = strrchr(folder, '/');
        snprintf(other, sizeof other, "%.40s/%.20s", chip, slash ? slash + 1 : folder);
        memcpy(chip, other, sizeof chip);
        if (source_find(s, str_of(chip), str_of(label)) >= 0)
            // for two sensors with the same label
            snprintf(label, sizeof label, "%.*s", (int)stem, file);
    }
    memcpy(h->names[h->count], file, size + 1);
    h->rows[h->count] =
        (struct valuefile_row){h->sensors->row, h->names[h->count], 1, h->sensors->per};
    ptrdiff_t instance = source_instance(s, str_of(chip), str_of(label));
    if (instance < 0)
        return true;
    if (valuefiles_add(h->values, s, folder, &h->rows[h->count], instance))
        h->count++;
    else
        source_ignore(s, instance);
    return true;
}

static bool add_chip(struct source *s, const char *folder, const char *name, void *user)
{
    (void)user;
    struct hwmon *h = s->state;
    char chip[VALUEFILES_PATH];
    int size = snprintf(chip, sizeof chip, "%s/%s", folder, name);
    if (size > 0 && (size_t)size < sizeof chip)
        valuefiles_list(s, chip, h->sensors->prefix, add_sensor, NULL);
    return true;
}

static int open_sensors(struct source *s, const struct sensors *sensors, const char *absent)
{
    struct hwmon *h = calloc(1, sizeof *h);
    if (h)
        h->values = calloc(1, sizeof *h->values);
    if (!h || !h->values) {
        free(h);
        return source_fail(s, -ENOMEM, "no memory");
    }
    h->sensors = sensors;
    s->state = h;
    valuefiles_list(s, "/sys/class/hwmon", "hwmon", add_chip, NULL);
    int failed = valuefiles_done(h->values, s, absent);
    if (failed)
        free(h);
    return failed;
}

static int temperature_open(struct source *s)
{
    return open_sensors(s, &temperatures, "there is no sensor of temperature");
}

static int fan_open(struct source *s)
{
    return open_sensors(s, &fans, "there is no fan that can be asked");
}

static int hwmon_sample(struct source *s, double *values)
{
    struct hwmon *h = s->state;
    return valuefiles_sample(h->values, s, values);
}

static void hwmon_close(struct source *s)
{
    struct hwmon *h = s->state;
    valuefiles_free(h->values);
    free(h);
}

const struct source_kind source_temperature = {
    .name = {"temperature", 11},
    .rate_s = RATE_S,
    .open = temperature_open,
    .sample = hwmon_sample,
    .close = hwmon_close,
    .keys = {"chip", "sensor"},
    .tagged_from = METRIC_TEMPERATURE,
    .tagged_to = METRIC_TEMPERATURE,
    .apart = true,
};

const struct source_kind source_fan = {
    .name = {"fan", 3},
    .rate_s = RATE_S,
    .open = fan_open,
    .sample = hwmon_sample,
    .close = hwmon_close,
    .keys = {"chip", "sensor"},
    .tagged_from = METRIC_FAN,
    .tagged_to = METRIC_FAN,
    .apart = true,
};
