// `sonde span`: spans from the shell. The id of a span is random. A command that runs inside a span
// finds the id in SONDE_SPAN, so its own spans are nested in it.
#include "cli/agent_lines.h"
#include "cli/commands.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/log.h"
#include "launch/command.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ID_SIZE = 17 }; // 16 digits and a NUL

static void make_id(char out[ID_SIZE])
{
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != sizeof id)
        // soon after a boot, the kernel may have no random numbers yet
        id = (uint64_t)clock_realtime_ns();
    snprintf(out, ID_SIZE, "%016" PRIx64, id ? id : 1);
}

static bool is_id(const char *text)
{
    size_t digits = strspn(text, "0123456789abcdef");
    return digits > 0 && digits < ID_SIZE && !text[digits] && text[strspn(text, "0")];
}

// Returns the id in SONDE_SPAN; NULL: none.
static const char *id_around(void)
{
    const char *id = getenv("SONDE_SPAN");
    return id && is_id(id) ? id : NULL;
}

static void add_time(struct buf *line)
{
    int64_t now = clock_realtime_ns();
    buf_printf(line, " %" PRId64 ".%09" PRId64, now / NS_PER_S, now % NS_PER_S);
}

// Sends a line. Returns 0 if it was recorded, 1 if it was refused (with a message), or 2 if no
// agent runs.
static int send_line(const struct options *o, struct buf *line)
{
    struct error e;
    buf_add_char(line, '\n');
    int refused = agent_lines_send(o, buf_str(line), -1, &e);
    buf_free(line);
    if (refused == -ENOENT || refused == -ECONNREFUSED)
        return 2;
    if (refused < 0)
        log_error("%s", e.text);
    return refused != 0;
}

static int begin(const struct options *o, const char *id, const char *name, char *const *tags,
                 int count)
{
    struct buf line = {0};
    const char *parent = id_around();
    buf_printf(&line, "span begin %s%s%s", id, parent ? "/" : "", parent ? parent : "");
    add_time(&line);
    for (int i = 0; i < count; i++) {
        struct str value = str_of(tags[i]), key = str_cut(&value, '=');
        buf_printf(&line, " %.*s=", STR_ARG(key));
        escape_word(&line, value);
    }
    buf_add_str(&line, STR(" -- "));
    escape_word(&line, str_of(name));
    return send_line(o, &line);
}

static int end(const struct options *o, const char *id)
{
    struct buf line = {0};
    buf_printf(&line, "span end %s", id);
    add_time(&line);
    return send_line(o, &line);
}

// Runs the command in this process group. Forwards signals that only this process has received.
static int run_inside(char *const *command)
{
    sigset_t passed, before;
    siginfo_t info;
    int status;
    sigemptyset(&passed);
    const int numbers[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&passed, numbers[i]);
    sigprocmask(SIG_BLOCK, &passed, &before);
    // With SIGCHLD ignored, the exit code of the command would be lost.
    struct sigaction inherited, usual = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &usual, &inherited);
    pid_t pid = fork();
    if (pid == 0) {
        sigaction(SIGCHLD, &inherited, NULL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(command[0], command);
        int failed = errno;
        log_error("cannot run %s: %s", command[0], strerror(failed));
        _exit(command_failure_code(-failed));
    }
    if (pid < 0) {
        log_error("cannot run %s: %s", command[0], strerror(errno));
        return command_failure_code(-errno);
    }
    while (waitpid(pid, &status, WNOHANG) == 0)
        // A terminal sends its signals (SI_KERNEL) to the whole group.
        if (sigwaitinfo(&passed, &info) > 0 && info.si_signo != SIGCHLD &&
            info.si_code != SI_KERNEL)
            kill(pid, info.si_signo);
    return command_exit_code(status);
}

static int run(const struct options *o, const char *name, char *const *tags, int count,
               char *const *command)
{
    char id[ID_SIZE];
    make_id(id);
    bool recorded = begin(o, id, name, tags, count) == 0;
    if (recorded)
        setenv("SONDE_SPAN", id, 1);
    int code = run_inside(command);
    if (recorded)
        end(o, id);
    return code;
}

static int wrong(const char *format, const char *word)
{
    struct error e;
    error_set(&e, -EINVAL, format, word);
    return command_failed(EXIT_USAGE, &e);
}

int command_span(const struct options *o)
{
    char *const *words = o->arguments + 1;
    int count = o->argument_count - 1, own = 0;
    bool runs = strcmp(o->arguments[0], "run") == 0;
    if (strcmp(o->arguments[0], "end") == 0) {
        const char *id = count > 0 ? words[0] : id_around();
        if (count > 1)
            return wrong("one span at a time: sonde span end [ID]%s", "");
        if (!id || !*id)
            return EXIT_OK; // the span was begun without telemetry
        if (!is_id(id))
            return wrong("'%.80s' is not the id of a span: sonde span end [ID]", id);
        return end(o, id) == 1 ? EXIT_FAILED : EXIT_OK;
    }
    if (!runs && strcmp(o->arguments[0], "begin") != 0)
        return wrong("'%.80s' is not one of begin, end and run: sonde span run NAME -- COMMAND",
                     o->arguments[0]);
    while (own < count && !(runs && strcmp(words[own], "--") == 0))
        own++;
    if (own == 0 || !*words[0])
        return wrong("the name is missing: sonde span %s NAME [KEY=VALUE…]", o->arguments[0]);
    for (int i = 1; i < own; i++)
        if (!*words[i] || words[i][strcspn(words[i], " \t\r\n=")] != '=' || *words[i] == '=')
            return wrong("'%.80s' is not a tag: sonde span run NAME [KEY=VALUE…] -- COMMAND",
                         words[i]);
    if (runs && count - own < 2)
        return wrong("the command is missing: sonde span run %.80s -- COMMAND", words[0]);
    if (runs)
        return run(o, words[0], words + 1, own - 1, words + own + 1);
    char id[ID_SIZE];
    make_id(id);
    int failed = begin(o, id, words[0], words + 1, own - 1);
    if (failed == 0)
        puts(id);
    return failed == 1 ? EXIT_FAILED : EXIT_OK;
}
