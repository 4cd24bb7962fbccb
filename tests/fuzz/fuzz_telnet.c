// Sends random bytes over a telnet connection, in two pieces, with random answers of the agent.
// Only complete put lines of a permitted client reach the agent.
#include "faces/opentsdb/telnet.h"

#include <stdlib.h>

// Replaces the counts for the command `stats`, because this target has no connections.
void connections_counts(struct connections *c, struct connection_counts *out)
{
    (void)c;
    *out = (struct connection_counts){.open = 1};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct site site;
    static struct service service = {.site = &site};
    size_t half = size / 2;
    for (int guarded = 0; guarded < 2; guarded++) {
        struct telnet t;
        struct buf reply = {0}, points = {0}, rest = {0};
        auth_set_token(&site.auth,
                       guarded ? STR("no input says this: \x01\x02\x03\x04\x05\x06\x07") : STR(""));
        telnet_begin(&t, &service);
        telnet_feed(&t, (struct str){(const char *)data, half}, &reply, &points);
        telnet_feed(&t, (struct str){(const char *)data + half, size - half}, &reply, &points);
        telnet_feed(&t, STR(""), &reply, &points);
        if (guarded && points.size && !t.admitted)
            abort();
        struct str lines = buf_str(&points);
        while (lines.data && lines.size)
            if (!str_starts(str_cut(&lines, '\n'), STR("put")))
                abort();
        telnet_agent_answered((struct str){(const char *)data, size}, &rest, &reply);
        if (rest.size && str_find_char(buf_str(&rest), '\n') >= 0)
            abort();
        telnet_free(&t);
        buf_free(&reply);
        buf_free(&points);
        buf_free(&rest);
    }
    return 0;
}
