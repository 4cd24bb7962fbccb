#include "base/log.h"

#include "base/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

static _Atomic int most_level = LOG_WARNING;
static const char *_Atomic who_writes = "sonde";

void log_setup(enum log_level most, const char *who)
{
    atomic_store(&most_level, (int)most);
    atomic_store(&who_writes, who);
}

static void write_line(const char *word, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void write_line(const char *word, const char *format, va_list args)
{
    int saved = errno;
    char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
    int n = snprintf(line, sizeof line, "%s: %s", atomic_load(&who_writes), word);
    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = 0;
    size_t size = (size_t)n + printable_copy(line + n, sizeof line - (size_t)n - 1, str_of(text));
    line[size++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, size);
    (void)written; // no message can report that a log line failed
    errno = saved;
}

void log_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line("", format, args);
    va_end(args);
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const word[] = {"error: ", "warning: ", "", "debug: "};
    if ((int)level > atomic_load_explicit(&most_level, memory_order_relaxed))
        return;
    va_list args;
    va_start(args, format);
    write_line(word[level], format, args);
    va_end(args);
}
