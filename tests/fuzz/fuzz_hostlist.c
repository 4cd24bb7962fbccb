// Expands Slurm's lists of hosts. The result has a limited size and no name that ssh would take for
// an option, and every error has a message.
#include "launch/hostlist.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hosts h = {0};
    struct error e = {0};
    int status = hostlist_parse((struct str){(const char *)data, size}, &h, &e);
    if (status == 0 ? h.count == 0 : !e.text[0])
        abort();
    if (h.count > HOSTS_MAX)
        abort();
    for (size_t i = 0; i < h.count; i++) {
        const char *name = h.names[i];
        if (!name[0] || name[0] == '-' || strlen(name) > HOST_NAME_MAX_BYTES ||
            name[strcspn(name, " \t\n'\"$`\\/;&|")] || hosts_find(&h, str_of(name)) != (ptrdiff_t)i)
            abort();
    }
    hosts_free(&h);
    return 0;
}
