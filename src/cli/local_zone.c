#include "cli/local_zone.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct str local_zone(char out[LOCAL_ZONE_MAX])
{
    char link[PATH_MAX];
    const char *name = getenv("TZ");
    if (name && *name == ':')
        name++;
    if (!name || !*name) {
        ssize_t n = readlink("/etc/localtime", link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        name = strstr(link, "zoneinfo/");
        name = name ? name + strlen("zoneinfo/") : "";
    }
    if (strlen(name) >= LOCAL_ZONE_MAX || name[0] == '/')
        name = "";
    memcpy(out, name, strlen(name) + 1);
    return str_of(out);
}
