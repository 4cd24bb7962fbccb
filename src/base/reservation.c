#include "base/reservation.h"

int reservation_grow(struct reservation *r, size_t bytes, struct error *e)
{
    if (!r->watch || bytes <= r->bytes)
        return 0;
    int rc = r->watch->hold(r->watch->user, bytes - r->bytes, e);
    if (rc == 0)
        r->bytes = bytes;
    return rc;
}

void reservation_shrink(struct reservation *r, size_t bytes)
{
    if (!r->watch || bytes >= r->bytes)
        return;
    r->watch->release(r->watch->user, r->bytes - bytes);
    r->bytes = bytes;
}
