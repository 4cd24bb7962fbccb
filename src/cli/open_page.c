#include "cli/open_page.h"

#include "base/log.h"
#include "launch/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

// Chooses the first program in $BROWSER, a list separated by colons.
static bool choose_browser(char *out, size_t size)
{
    if (is_set("BROWSER")) {
        struct str rest = str_of(getenv("BROWSER")), first = str_cut(&rest, ':');
        snprintf(out, size, "%.*s", STR_ARG(first));
        return first.size && first.size < size;
    }
    snprintf(out, size, "xdg-open");
    return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

static int write_link(const char *url, const char *folder, char file[OPEN_PAGE_PATH_MAX],
                      struct error *e)
{
    char name[64];
    struct buf text = {0};
    snprintf(name, sizeof name, "open-%d.html", (int)getpid());
    if (snprintf(file, OPEN_PAGE_PATH_MAX, "%s/%s", folder, name) >= OPEN_PAGE_PATH_MAX)
        return error_set(e, -ENAMETOOLONG, "the path of the folder %s is too long", folder);
    buf_printf(&text,
               "<!doctype html><html lang=\"en\"><meta http-equiv=\"refresh\" content=\"0;url=%s\">"
               "<title>sonde</title><a href=\"%s\">The page of this job</a></html>\n",
               url, url);
    int rc = text.failed ? error_set(e, -ENOMEM, "out of memory")
                         : folder_write(folder, name, buf_str(&text), e);
    buf_free(&text);
    return rc;
}

// Starts the browser. It outlives this process, so it gets a process group of its own, no blocked
// signals, and no output on this terminal.
static int start_browser(const char *program, const char *file)
{
    extern char **environ;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    char *arguments[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)file, NULL};
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    int rc = posix_spawnp(&pid, program, &files, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return -rc;
}

bool open_page(const char *url, const char *folder, char file[OPEN_PAGE_PATH_MAX])
{
    char program[FOLDER_PATH_MAX];
    struct error e = {0};
    file[0] = 0;
    if (!choose_browser(program, sizeof program))
        return false;
    int rc = write_link(url, folder, file, &e);
    if (rc) {
        file[0] = 0;
        log_warning("cannot open a browser: %s", e.text);
        return false;
    }
    rc = start_browser(program, file);
    if (rc)
        log_warning("cannot start %s: %s; open the address by hand", program, strerror(-rc));
    return rc == 0;
}
