// Imports a malicious file, in each format that has rows. It is refused with a reason, or becomes
// recordings, and a cancelled import leaves none of them. The first byte chooses the format.
#include "import/import.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static import_fn *const readers[] = {import_parquet,     import_csv,         import_influx,
                                     import_openmetrics, import_tensorboard, import_sqlite,
                                     import_ldms};

static void check_empty(void)
{
    DIR *d = opendir(folder);
    int entries = 0;
    while (d && readdir(d))
        entries++;
    if (!d || entries != 2) // only . and ..
        abort();
    closedir(d);
}

static void remove_folder(void)
{
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct import_hosts_options o = {.folder = folder, .host = STR("host")};
    struct import_hosts *to;
    struct import_stats stats;
    struct error e = {0};
    char path[64];
    if (!folder[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.40s/fuzz-import-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(folder) || atexit(remove_folder))
            abort();
    }
    if (!size)
        return 0;
    int fd = memfd_create("file", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1 ||
        import_hosts_begin(&o, &to, &e))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int rc = readers[data[0] % (sizeof readers / sizeof *readers)](path, to, &stats, &e);
    if (rc && !e.text[0])
        abort();
    import_hosts_cancel(to);
    close(fd);
    check_empty();
    return 0;
}
