#include "store/no_recording.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

bool no_recording_but_dump(struct str name)
{
    return str_starts(name, STR("ts_")) && str_ends(name, STR(".db"));
}

static bool has_dumps(const char *folder)
{
    bool found = false;
    DIR *d = opendir(folder);
    for (struct dirent *entry; d && !found && (entry = readdir(d));)
        found = no_recording_but_dump(str_of(entry->d_name));
    if (d)
        closedir(d);
    return found;
}

int no_recording(const char *path, struct error *e)
{
    char below[PATH_MAX];
    int n = snprintf(below, sizeof below, "%s/telemetry", path);
    if (has_dumps(path) || (n > 0 && n < (int)sizeof below && has_dumps(below)))
        return error_set(e, -ENOENT,
                         "there is no recording (*.sonde) in %s, but databases of Dragon's "
                         "telemetry; make recordings "
                         "of them: sonde import --format dragon-sqlite -o DIR %s",
                         path, path);
    return error_set(e, -ENOENT, "there is no recording (*.sonde) in %s", path);
}
