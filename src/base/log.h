// log.h - log lines on stderr.
//
// Writes "sonde: text"; warnings and errors are marked. Each call writes one line with one
// write(2), so lines of several processes do not mix. The text is made printable (printable.h).
// Thread-safe.
#ifndef SONDE_BASE_LOG_H
#define SONDE_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

// Sets the highest level that is logged (default LOG_WARNING) and the prefix of every line (default
// "sonde"; the string must stay valid).
void log_setup(enum log_level most, const char *who);
// Writes "sonde: text" for the user, at any level.
void log_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
