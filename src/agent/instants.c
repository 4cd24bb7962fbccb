// instants.c - implements instants.h.
#include "agent/instants.h"

static int64_t first_after(int64_t now_ns, int64_t rate_ns)
{
    return (now_ns / rate_ns + 1) * rate_ns;
}

struct instants instants_from(int64_t now_ns, int64_t rate_ns)
{
    return (struct instants){.rate_ns = rate_ns, .next_ns = first_after(now_ns, rate_ns)};
}

bool instants_due(struct instants *i, int64_t now_ns, int64_t *instant_ns, int64_t *wait_ns)
{
    if (i->next_ns - now_ns > i->rate_ns)
        i->next_ns = first_after(now_ns, i->rate_ns); // the clock was set back
    if (now_ns < i->next_ns) {
        *wait_ns = i->next_ns - now_ns;
        return false;
    }
    int64_t missed = (now_ns - i->next_ns) / i->rate_ns;
    i->skipped += (uint64_t)missed;
    *instant_ns = i->next_ns + missed * i->rate_ns;
    i->next_ns = *instant_ns + i->rate_ns;
    return true;
}
