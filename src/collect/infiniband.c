// infiniband.c - counters of InfiniBand and RoCE ports:
// /sys/class/infiniband/DEVICE/ports/PORT/counters/NAME.
//
// port_rcv_data and port_xmit_data count words of 4 bytes. Reading the hardware takes some 10 us a
// counter, and longer if the device has a problem. So the source reads once a second, in a thread
// of its own.
#include "collect/valuefiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE_S = 1 }; // seconds between samples

enum { WORD_BYTES = 4 };

static const struct valuefile_row rows[] = {
    {METRIC_INFINIBAND_RECEIVE_BYTES, "port_rcv_data", WORD_BYTES, 1},
    {METRIC_INFINIBAND_TRANSMIT_BYTES, "port_xmit_data", WORD_BYTES, 1},
    {METRIC_INFINIBAND_RECEIVE_PACKETS, "port_rcv_packets", 1, 1},
    {METRIC_INFINIBAND_TRANSMIT_PACKETS, "port_xmit_packets", 1, 1},
    {METRIC_INFINIBAND_RECEIVE_ERRORS, "port_rcv_errors", 1, 1},
    {METRIC_INFINIBAND_TRANSMIT_DISCARDS, "port_xmit_discards", 1, 1},
    {METRIC_INFINIBAND_TRANSMIT_WAITS, "port_xmit_wait", 1, 1},
    {METRIC_INFINIBAND_SYMBOL_ERRORS, "symbol_error", 1, 1},
    {METRIC_INFINIBAND_LINK_DOWNED, "link_downed", 1, 1},
};

static bool add_port(struct source *s, const char *folder, const char *port, void *user)
{
    const char *device = user;
    char counters[VALUEFILES_PATH];
    int size = snprintf(counters, sizeof counters, "%s/%s/counters", folder, port);
    ptrdiff_t instance = source_instance(s, str_of(device), str_of(port));
    if (instance < 0 || size < 0 || (size_t)size >= sizeof counters)
        return true;
    size_t opened = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        opened += valuefiles_add(s->state, s, counters, &rows[i], instance);
    if (opened == 0)
        source_ignore(s, instance);
    return true;
}

static bool add_device(struct source *s, const char *folder, const char *device, void *user)
{
    (void)user;
    char ports[VALUEFILES_PATH], name[SOURCE_TAG_SIZE];
    int size = snprintf(ports, sizeof ports, "%s/%s/ports", folder, device);
    int name_size = snprintf(name, sizeof name, "%s", device);
    if (size > 0 && (size_t)size < sizeof ports && (size_t)name_size < sizeof name)
        valuefiles_list(s, ports, "", add_port, name);
    return true;
}

static int infiniband_open(struct source *s)
{
    s->state = calloc(1, sizeof(struct valuefiles));
    if (!s->state)
        return source_fail(s, -ENOMEM, "no memory");
    valuefiles_list(s, "/sys/class/infiniband", "", add_device, NULL);
    return valuefiles_done(s->state, s, "there is no InfiniBand or RoCE port");
}

static int infiniband_sample(struct source *s, double *values)
{
    return valuefiles_sample(s->state, s, values);
}

static void infiniband_close(struct source *s)
{
    valuefiles_free(s->state);
}

const struct source_kind source_infiniband = {
    .name = {"infiniband", 10},
    .rate_s = RATE_S,
    .open = infiniband_open,
    .sample = infiniband_sample,
    .close = infiniband_close,
    .keys = {"device", "port"},
    .tagged_from = METRIC_INFINIBAND_RECEIVE_BYTES,
    .tagged_to = METRIC_INFINIBAND_LINK_DOWNED,
    .apart = true,
};
