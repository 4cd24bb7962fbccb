#include "client/forwarded.h"

#include "launch/job.h"
#include "wire/forwarder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *forwarded_socket(const char *run_folder)
{
    char *path;
    struct stat info;
    if (asprintf(&path, "%s/" WIRE_FORWARDER_SOCKET, run_folder) < 0)
        return NULL;
    if (lstat(path, &info) == 0 && S_ISSOCK(info.st_mode) && info.st_uid == geteuid())
        return path;
    free(path);
    return NULL;
}

char *forwarded_socket_of_environment(void)
{
    const char *id = getenv("SONDE_JOB");
    char base[FOLDER_PATH_MAX], folder[FOLDER_PATH_MAX + JOB_ID_MAX + 1];
    if (!id || !*id || strlen(id) > JOB_ID_MAX || strchr(id, '/') ||
        folder_base_path(getenv("SONDE_RUN_DIR"), base, NULL) < 0)
        return NULL;
    int fd = folder_open_private(base, NULL);
    if (fd < 0)
        return NULL;
    close(fd);
    snprintf(folder, sizeof folder, "%s/%s", base, id);
    return forwarded_socket(folder);
}
