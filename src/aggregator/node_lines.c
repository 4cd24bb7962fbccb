#include "aggregator/node_lines.h"

#include "base/log.h"

void node_lines_take(struct hub *hub, struct str line)
{
    struct str hosts = line, word = str_cut(&hosts, ' '), via = STR("");
    bool behind = str_eq(word, STR("behind")), expect = behind || str_eq(word, STR("expect")),
         exclude = str_eq(word, STR("exclude"));
    if (behind && hosts.data)
        via = str_cut(&hosts, ' ');
    while ((expect || exclude) && hosts.data) {
        struct str host = str_trim(str_cut(&hosts, ','));
        if (exclude && host.size)
            hub_exclude(hub, host);
        else if (host.size && hub_expect(hub, host, via) != 0)
            log_warning("cannot add the node %.*s: its data will be missing",
                        STR_ARG(str_slice(host, 0, 100)));
    }
}
