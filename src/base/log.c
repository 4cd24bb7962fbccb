#include "base/log.h"

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

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const word[] = {"error: ", "warning: ", "", "debug: "};
    if ((int)level > atomic_load_explicit(&most_level, memory_order_relaxed))
        return;
    int saved = errno;
    char line[LINE_MAX_BYTES];
    int n = snprintf(line, sizeof line, "%s: %s", atomic_load(&who_writes), word[level]);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    n += m < 0 ? 0 : m;
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, (size_t)n);
    (void)written; // nobody is left to tell
    errno = saved;
}
