#include "launch/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int shared_memory_check(struct error *e)
{
    int fd = memfd_create("sonde-check", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int failed = fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (!failed)
        return 0;
    return error_set(e, -failed,
                     "memfd_create with sealing: %s; what programs emit through libsonde is lost, "
                     "sonde put and node metrics work (Linux 3.17 or newer has it, unless a "
                     "container forbids it)",
                     strerror(failed));
}
