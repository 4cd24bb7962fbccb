#include "wire/fabric_memory.h"

#include "base/str.h"
#include "wire/settings.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "sonde-"

enum { DIGITS = 16 };

int fabric_memory_name(char out[FABRIC_MEMORY_NAME])
{
    static const struct wire_settings system;
    uint64_t number;
    int r = wire_random(&system, (uint8_t *)&number, sizeof number);
    if (r == 0)
        snprintf(out, FABRIC_MEMORY_NAME, "sonde://" PREFIX "%0*" PRIx64, DIGITS, number);
    return r;
}

static bool is_ours(const char *name)
{
    return str_starts(str_of(name), STR(PREFIX)) && strlen(name) == strlen(PREFIX) + DIGITS &&
           strspn(name + strlen(PREFIX), "0123456789abcdef") == DIGITS;
}

static void remove_nobodys(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    // From now on, a process that opens the file waits until we release the lease, and the kernel
    // sends us a signal. We choose SIGURG, which is ignored by default.
    fcntl(fd, F_SETSIG, SIGURG);
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

void fabric_memory_sweep(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    while (d && (entry = readdir(d)))
        if (is_ours(entry->d_name))
            remove_nobodys(dirfd(d), entry->d_name);
    if (d)
        closedir(d);
}
