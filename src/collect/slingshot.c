// slingshot.c - counters of HPE Slingshot network cards:
// /sys/class/cxi/DEVICE/device/telemetry/NAME, "number@time".
//
// The driver reads the card at its own intervals, so more than one reading a second gives no new
// values. The source has a thread of its own, like InfiniBand.
#include "collect/valuefiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE_S = 1 }; // seconds between samples

static const struct valuefile_row rows[] = {
    {METRIC_SLINGSHOT_RECEIVE_BYTES, "hni_sts_rx_ok_octets", 1, 1},
    {METRIC_SLINGSHOT_TRANSMIT_BYTES, "hni_sts_tx_ok_octets", 1, 1},
    {METRIC_SLINGSHOT_CORRECTED, "hni_pcs_corrected_cw", 1, 1},
    {METRIC_SLINGSHOT_UNCORRECTED, "hni_pcs_uncorrected_cw", 1, 1},
};

static bool add_device(struct source *s, const char *folder, const char *device, void *user)
{
    (void)user;
    char telemetry[VALUEFILES_PATH];
    int size = snprintf(telemetry, sizeof telemetry, "%s/%s/device/telemetry", folder, device);
    ptrdiff_t instance = source_instance(s, str_of(device), STR(""));
    if (instance < 0 || size < 0 || (size_t)size >= sizeof telemetry)
        return true;
    size_t opened = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        opened += valuefiles_add(s->state, s, telemetry, &rows[i], instance);
    if (opened == 0)
        source_ignore(s, instance);
    return true;
}

static int slingshot_open(struct source *s)
{
    s->state = calloc(1, sizeof(struct valuefiles));
    if (!s->state)
        return source_fail(s, -ENOMEM, "no memory");
    valuefiles_list(s, "/sys/class/cxi", "", add_device, NULL);
    return valuefiles_done(s->state, s, "there is no Slingshot card");
}

static int slingshot_sample(struct source *s, double *values)
{
    return valuefiles_sample(s->state, s, values);
}

static void slingshot_close(struct source *s)
{
    valuefiles_free(s->state);
}

const struct source_kind source_slingshot = {
    .name = {"slingshot", 9},
    .rate_s = RATE_S,
    .open = slingshot_open,
    .sample = slingshot_sample,
    .close = slingshot_close,
    .keys = {"device"},
    .tagged_from = METRIC_SLINGSHOT_RECEIVE_BYTES,
    .tagged_to = METRIC_SLINGSHOT_UNCORRECTED,
    .apart = true,
};
