// scripts.c - implements scripts.h.
//
// Each script has one timer, which serves for the next run, for the timeout, and for reading more
// output. SIGCHLD reports the end of a script. A script is freed when the last of its handles is
// closed, in the loop.
#include "agent/scripts.h"

#include "agent/instants.h"
#include "agent/script_child.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIECE_SIZE = 16384,
    PIECES_A_ROUND = 16, // reads before other work has its turn: more than a pipe holds
    REPLY_MAX = 4096,
    STDERR_MAX = 256,   // bytes of the last line that are kept
    BACK_OFF_MIN_S = 1, // pause before a restart; doubled after each failure, until BACK_OFF_MAX_S
    BACK_OFF_MAX_S = 60,
    WORKS_AFTER = 2, // a script works again after it has printed for this many times its last pause
};

struct script {
    struct scripts *all;
    struct list_link link;   // in all->scripts
    struct script_spec spec; // its texts are copies
    char *gpu;               // the tag `gpu`, our copy
    struct script_child child;
    struct instants instants;
    uv_timer_t timer;
    uv_poll_t output, errors;
    bool output_open, errors_open; // the handles are open
    unsigned handles;              // number of handles that are not closed yet
    bool removed;
    int out, err; // descriptors; -1 = closed
    pid_t pid;    // 0 = the script does not run
    bool timed_out;
    // monotonic times of this run and of the next start; 0 = none
    int64_t begun_ns, first_output_ns, last_output_ns, next_ns;
    int64_t second; // the monotonic second for which `bytes` are counted
    size_t bytes;
    unsigned back_off_s;
    bool failing; // the last run failed, and the log has reported it
    struct ingest_lines *lines;
    struct buf reply;
    bool bad_line_logged;
    char last_error[STDERR_MAX];
    size_t last_error_size;
    bool error_line_ended;
    unsigned logged_lines; // number of lines of this run that were logged
};

struct scripts {
    uv_loop_t *loop;
    struct ingest *in;
    uv_signal_t child;
    bool finishing;
    struct list_link scripts;
};

// ---- records about a script ----

// Writes the script's title, such as "collector slow-gpu of GPU 3".
static const char *title(const struct script *s, char out[SCRIPT_NAME_SIZE + 64])
{
    snprintf(out, SCRIPT_NAME_SIZE + 64, "%s %s%s%s", s->spec.kind, s->spec.name,
             s->gpu ? " of GPU " : "", s->gpu ? s->gpu : "");
    return out;
}

#define warn(s, format, ...) \
    log_warning("%s" format, title((s), (char[SCRIPT_NAME_SIZE + 64]){0}), __VA_ARGS__)

// ---- output of a script ----

static void on_timer(uv_timer_t *timer);

static void wake_at(struct script *s, int64_t at_ns)
{
    int64_t wait_ms = (at_ns - clock_monotonic_ns() + NS_PER_MS - 1) / NS_PER_MS;
    uv_timer_start(&s->timer, on_timer, wait_ms > 0 ? (uint64_t)wait_ms : 0, 0);
}

// Handles the answers to bad lines: logs the first one, and counts all.
static void take_reply(struct script *s)
{
    if (s->reply.size && !s->bad_line_logged) {
        struct str rest = {s->reply.data, s->reply.size}, line = str_cut(&rest, '\n');
        warn(s, ": %.*s; more such lines are counted, not listed", STR_ARG(line));
        s->bad_line_logged = true;
    }
    s->reply.size = 0;
    s->reply.failed = false;
}

// Passes a line about the script itself to the ingest.
static void record(struct script *s, struct buf *line)
{
    if (!line->failed)
        ingest_lines_feed(s->lines, buf_str(line), &s->reply);
    take_reply(s);
    line->size = 0;
}

static void annotate(struct script *s, const char *how)
{
    struct buf line = {0};
    char words[SCRIPT_NAME_SIZE + 64];
    buf_printf(&line, "annotate script=%s", s->spec.name);
    if (s->gpu)
        buf_printf(&line, " gpu=%s", s->gpu);
    buf_printf(&line, " failing=%s -- %s", how ? "yes" : "no", title(s, words));
    buf_printf(&line, "%s%s%s%s\n", how ? ": " : " works again", how ? how : "",
               how && s->last_error[0] ? ": " : "", how ? s->last_error : "");
    record(s, &line);
    buf_free(&line);
}

// Notes that the script works. A script that keeps printing never exits successfully. So it counts
// as working after it has printed for some time, which gets longer with each failure. The time to
// its first line does not count, because a slow start is no success.
static void note_success(struct script *s)
{
    if (!s->failing || s->spec.rate_s > 0 ||
        s->last_output_ns - s->first_output_ns < WORKS_AFTER * s->back_off_s * (int64_t)NS_PER_S)
        return;
    s->failing = false;
    annotate(s, NULL);
}

// Reads the available output, within the budget of this second. Returns false at the end of the
// output.
static bool read_output(struct script *s)
{
    char piece[PIECE_SIZE];
    for (int i = 0; i < PIECES_A_ROUND; i++) {
        int64_t second = clock_monotonic_ns() / NS_PER_S;
        if (second != s->second)
            s->bytes = 0;
        s->second = second;
        if (s->bytes >= SCRIPT_BYTES_A_SECOND && !s->all->finishing) {
            uv_poll_stop(&s->output);
            wake_at(s, (second + 1) * NS_PER_S);
            return true;
        }
        ssize_t got = read(s->out, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        s->bytes += (size_t)got;
        s->last_output_ns = clock_monotonic_ns();
        if (!s->first_output_ns)
            s->first_output_ns = s->last_output_ns;
        note_success(s);
        ingest_lines_feed(s->lines, (struct str){piece, (size_t)got}, &s->reply);
        take_reply(s);
        if (s->all->finishing && s->bytes >= SCRIPT_BYTES_A_SECOND)
            return false;
    }
    return true;
}

static void dispose(struct script *s)
{
    ingest_lines_destroy(s->lines);
    buf_free(&s->reply);
    script_child_free(&s->child);
    free(s->gpu);
    free(s);
}

static void on_closed(uv_handle_t *handle)
{
    struct script *s = handle->data;
    if (--s->handles == 0 && s->removed)
        dispose(s);
}

static void close_output(struct script *s)
{
    if (s->output_open)
        uv_close((uv_handle_t *)&s->output, on_closed);
    s->output_open = false;
    if (s->out < 0)
        return;
    close(s->out);
    s->out = -1;
    ingest_lines_end(s->lines, &s->reply);
    take_reply(s);
}

static void end_error_line(struct script *s)
{
    struct str words = {s->last_error, s->last_error_size}, mark = STR("sonde: ");
    if (s->error_line_ended || !str_starts(words, mark))
        return;
    if (++s->logged_lines <= SCRIPT_LOGGED_MAX)
        warn(s, ": %s%s", s->last_error + mark.size,
             s->logged_lines == SCRIPT_LOGGED_MAX ? " (further lines are not logged)" : "");
}

// Keeps the last line that is not empty.
static bool read_errors(struct script *s)
{
    char piece[PIECE_SIZE];
    ssize_t got = read(s->err, piece, sizeof piece);
    for (ssize_t i = 0; i < got; i++) {
        if (piece[i] == '\n') {
            end_error_line(s);
            s->error_line_ended = true;
            continue;
        }
        if (s->error_line_ended)
            s->last_error_size = 0;
        s->error_line_ended = false;
        if (s->last_error_size < STDERR_MAX - 1)
            s->last_error[s->last_error_size++] = (unsigned char)piece[i] < ' ' ? ' ' : piece[i];
        s->last_error[s->last_error_size] = 0;
    }
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void close_errors(struct script *s)
{
    if (s->errors_open)
        uv_close((uv_handle_t *)&s->errors, on_closed);
    s->errors_open = false;
    if (s->err >= 0)
        close(s->err);
    s->err = -1;
}

static void on_output(uv_poll_t *poll, int status, int events)
{
    struct script *s = poll->data;
    (void)status, (void)events;
    if (!read_output(s))
        uv_poll_stop(&s->output); // the remaining steps follow when the script has ended
}

static void on_errors(uv_poll_t *poll, int status, int events)
{
    struct script *s = poll->data;
    (void)status, (void)events;
    if (!read_errors(s))
        uv_poll_stop(&s->errors);
}

// ---- runs of a script ----

static int watch(struct script *s, uv_poll_t *handle, bool *open, int fd, uv_poll_cb call)
{
    int failed = uv_poll_init(s->all->loop, handle, fd);
    *open = failed == 0;
    s->handles += *open;
    handle->data = s;
    return failed ? failed : uv_poll_start(handle, UV_READABLE, call);
}

static void report(struct script *s, int code, const char *how);

static void start(struct script *s)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    pid_t parent = getpid();
    s->timed_out = false;
    s->last_error_size = 0;
    s->last_error[0] = 0;
    s->error_line_ended = false;
    s->logged_lines = 0;
    s->begun_ns = s->last_output_ns = clock_monotonic_ns();
    s->first_output_ns = 0;
    bool piped = pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0;
    pid_t pid = piped ? fork() : -1;
    if (pid == 0)
        script_child_become(&s->child, out[1], err[1], parent);
    int failed = pid < 0 ? errno : 0;
    for (size_t i = 0; i < 2; i++) {
        int write_end = i == 0 ? out[1] : err[1], read_end = i == 0 ? out[0] : err[0];
        if (write_end >= 0)
            close(write_end);
        if (read_end >= 0 && failed)
            close(read_end);
    }
    if (failed) {
        report(s, 126, strerror(failed));
        s->next_ns = s->begun_ns + BACK_OFF_MAX_S * (int64_t)NS_PER_S;
        return;
    }
    setpgid(pid, pid); // so that the whole group can be killed
    s->pid = pid;
    s->out = out[0];
    s->err = err[0];
    fcntl(s->out, F_SETFL, O_NONBLOCK);
    fcntl(s->err, F_SETFL, O_NONBLOCK);
    if (watch(s, &s->output, &s->output_open, s->out, on_output) ||
        watch(s, &s->errors, &s->errors_open, s->err, on_errors))
        warn(s, "%s", ": its output cannot be watched");
}

// Reports a failed run. The log gets only the first failure in a row; the recording gets every exit
// code.
static void report(struct script *s, int code, const char *how)
{
    bool failing = code != 0;
    if (failing && !s->failing)
        warn(s, ": %s%s%s; further failures are recorded, but not logged", how,
             s->last_error[0] ? ": " : "", s->last_error);
    if (failing != s->failing)
        annotate(s, failing ? how : NULL);
    s->failing = failing;
    if (!failing)
        return;
    struct buf line = {0};
    buf_printf(&line, "sonde_script_exit_code %d script=%s", code, s->spec.name);
    if (s->gpu)
        buf_printf(&line, " gpu=%s", s->gpu);
    buf_add_char(&line, '\n');
    record(s, &line);
    buf_free(&line);
}

static void schedule(struct script *s)
{
    int64_t now = clock_monotonic_ns();
    if (s->pid) {
        int64_t from = s->spec.rate_s > 0 ? s->begun_ns : s->last_output_ns;
        if (s->spec.timeout_s > 0)
            wake_at(s, from + (int64_t)(s->spec.timeout_s * NS_PER_S));
        return;
    }
    if (s->spec.rate_s > 0) {
        int64_t instant_ns, wait_ns = 0;
        instants_due(&s->instants, clock_realtime_ns(), &instant_ns,
                     &wait_ns); // this skips instants that have passed meanwhile
        int64_t to_next = s->instants.next_ns - clock_realtime_ns();
        wake_at(s, now + (to_next > 0 ? to_next : 0));
        s->next_ns = 1;
    } else {
        wake_at(s, s->next_ns);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct script *s = timer->data;
    int64_t now = clock_monotonic_ns();
    if (s->removed)
        return;
    if (s->pid && s->output_open && s->bytes >= SCRIPT_BYTES_A_SECOND &&
        now / NS_PER_S != s->second)
        uv_poll_start(&s->output, UV_READABLE, on_output);
    int64_t from = s->spec.rate_s > 0 ? s->begun_ns : s->last_output_ns;
    if (s->pid && s->spec.timeout_s > 0 && now - from >= (int64_t)(s->spec.timeout_s * NS_PER_S)) {
        s->timed_out = true;
        kill(-s->pid, SIGKILL); // on_child continues after SIGCHLD
        return;
    }
    if (!s->pid && s->next_ns)
        start(s);
    schedule(s);
}

static void close_script(struct script *s);

static void ended(struct script *s, int status)
{
    kill(-s->pid, SIGKILL); // kills leftover processes of its group
    s->pid = 0;
    s->bytes = 0; // start with a new budget, because the pipe holds only little
    if (s->out >= 0)
        read_output(s);
    close_output(s);
    if (s->err >= 0)
        read_errors(s);
    close_errors(s);
    char how[64];
    int code = s->timed_out        ? SCRIPT_TIMED_OUT
               : WIFEXITED(status) ? WEXITSTATUS(status)
                                   : 128 + WTERMSIG(status);
    if (s->timed_out)
        snprintf(how, sizeof how, "timed out after %g s and was killed", s->spec.timeout_s);
    else if (WIFEXITED(status))
        snprintf(how, sizeof how, "exit code %d", code);
    else
        snprintf(how, sizeof how, "ended by signal %d", WTERMSIG(status));
    if (s->removed) {
        close_script(s);
        return;
    }
    report(s, code, how);
    int64_t now = clock_monotonic_ns();
    bool lasted = now - s->begun_ns >= BACK_OFF_MAX_S * (int64_t)NS_PER_S;
    unsigned twice = s->back_off_s * 2 < BACK_OFF_MAX_S ? s->back_off_s * 2 : BACK_OFF_MAX_S;
    s->back_off_s = lasted || !s->back_off_s ? BACK_OFF_MIN_S : twice;
    s->next_ns = now + s->back_off_s * (int64_t)NS_PER_S;
    schedule(s);
}

// Closes a script that does not run, and will not run again.
static void close_script(struct script *s)
{
    list_remove(&s->link);
    uv_timer_stop(&s->timer);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}

static void on_child(uv_signal_t *handle, int number)
{
    struct scripts *all = handle->data;
    (void)number;
    LIST_EACH (link, &all->scripts) {
        struct script *s = LIST_OF(link, struct script, link);
        int status;
        if (s->pid && waitpid(s->pid, &status, WNOHANG) == s->pid)
            ended(s, status);
    }
}

// ---- one script ----

void scripts_remove(struct script *s)
{
    if (s->removed)
        return;
    s->removed = true;
    uv_timer_stop(&s->timer);
    if (s->pid)
        kill(-s->pid, SIGKILL); // SIGCHLD tells the rest
    else
        close_script(s);
}

struct script *scripts_add(struct scripts *all, const struct script_spec *spec, struct error *e)
{
    struct script *s = calloc(1, sizeof *s);
    if (!s) {
        error_set(e, -ENOMEM, "no memory for a %s", spec->kind);
        return NULL;
    }
    *s = (struct script){.all = all, .spec = *spec, .out = -1, .err = -1, .next_ns = 1};
    s->reply.limit = REPLY_MAX;
    s->gpu = spec->gpu ? strdup(spec->gpu) : NULL;
    bool made = script_child_make(&s->child, spec) && (s->gpu || !spec->gpu);
    if (!made || ingest_lines_create(all->in, &s->lines) != 0) {
        error_set(e, -ENOMEM, "no memory for %s %s", spec->kind, spec->name);
        dispose(s);
        return NULL;
    }
    if (spec->rate_s > 0)
        s->instants = instants_from(clock_realtime_ns(), (int64_t)llround(spec->rate_s * NS_PER_S));
    uv_timer_init(all->loop, &s->timer);
    s->timer.data = s;
    s->handles = 1;
    list_prepend(&all->scripts, &s->link);
    wake_at(s, 0); // the first run starts at once, so that a short job has a value, too
    return s;
}

// ---- all scripts ----

int scripts_create(uv_loop_t *loop, struct ingest *in, const char *text, const char *folder,
                   struct scripts **out, struct error *e)
{
    struct script_spec specs[SCRIPTS_MAX];
    size_t count;
    *out = NULL;
    int failed = scripts_parse(text ? text : "", specs, &count, e);
    if (failed)
        return failed;
    struct scripts *all = calloc(1, sizeof *all);
    if (!all)
        return error_set(e, -ENOMEM, "no memory for scripts");
    all->loop = loop;
    all->in = in;
    list_init(&all->scripts);
    uv_signal_init(loop, &all->child);
    all->child.data = all;
    *out = all;
    failed = uv_signal_start(&all->child, on_child, SIGCHLD);
    if (failed)
        return error_set(e, failed, "cannot watch scripts: %s", uv_strerror(failed));
    for (size_t i = 0; i < count; i++) {
        specs[i].folder = folder;
        if (!scripts_add(all, &specs[i], e))
            return e->code;
    }
    return 0;
}

void scripts_finish(struct scripts *all)
{
    if (!all || all->finishing)
        return;
    all->finishing = true;
    LIST_EACH (link, &all->scripts) {
        struct script *s = LIST_OF(link, struct script, link);
        s->removed = true;
        if (s->pid) {
            int status;
            kill(-s->pid, SIGKILL);
            waitpid(s->pid, &status, 0);
            ended(s, status);
        } else {
            close_script(s);
        }
    }
    uv_close((uv_handle_t *)&all->child, NULL);
}

void scripts_destroy(struct scripts *all)
{
    free(all);
}
