#include "wire/bulk.h"

#include "wire/fabric.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>

// Returns the text after "fabric:", or NULL if the transport has no such prefix.
static const char *provider_of(const char *transport)
{
    const char *colon = strchr(transport, ':');
    return colon ? colon + 1 : NULL;
}

int wire_transport_check(const char *transport, struct error *e)
{
    bool fabric = strcmp(transport, "fabric") == 0 ||
                  (str_starts(str_of(transport), STR("fabric:")) && transport[7]);
    if (!fabric && strcmp(transport, "auto") != 0 && strcmp(transport, "tcp") != 0)
        return error_set(
            e, -EINVAL, "--transport=%.64s: it is auto, tcp, fabric or fabric:PROVIDER", transport);
    // Names of transports travel between processes in lines of text.
    if (strlen(transport) >= WIRE_TRANSPORT_NAME_MAX || strpbrk(transport, " \t\n\r"))
        return error_set(
            e, -EINVAL,
            "--transport=%.64s: a provider's name has no blanks and at most %d characters",
            transport, WIRE_TRANSPORT_NAME_MAX);
    return 0;
}

int wire_bulk_open(struct wire_loop *loop, const char *transport, enum wire_side side,
                   const char *near, struct wire_bulk **out, struct error *e)
{
    *out = NULL;
    int r = wire_transport_check(transport, e);
    if (r || strcmp(transport, "tcp") == 0)
        return r;
    bool any = strcmp(transport, "auto") == 0;
#if SONDE_FABRIC
    struct error why;
    if (any && !fabric_hardware())
        return 0;
    r = fabric_open(loop, any ? NULL : provider_of(transport), any, side, near, out, &why);
    if (r && !any)
        return error_set(e, r, "--transport=%s: %s", transport, why.text);
    // Most machines have neither the library nor such a network, so only a broken network is
    // logged.
    if (r == -EIO)
        log_warning("%s; data go over TCP", why.text);
    return 0;
#else
    (void)loop, (void)side, (void)near, (void)provider_of;
    return any ? 0
               : error_set(e, -ENOSYS,
                           "--transport=%s: this sonde was built without libfabric "
                           "(--transport=tcp works)",
                           transport);
#endif
}

void wire_bulk_close(struct wire_bulk *b)
{
    if (b)
        b->row->close(b);
}

bool wire_fabric_describe(char *out, size_t size)
{
#if SONDE_FABRIC
    return fabric_describe(out, size);
#else
    snprintf(out, size,
             "this sonde was built without libfabric: data of other nodes come over TCP");
    return false;
#endif
}
