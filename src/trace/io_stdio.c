// io_stdio.c - wrappers of stdio.
//
// libc implements stdio without calling the functions that io_posix.c wraps. So this file counts
// the calls of the program, with the bytes that it passed. Most of these calls only copy; fflush,
// fclose and calls that find the buffer full take the time of the file system.
//
// These calls are not counted: fscanf and similar functions (the number of bytes is unknown), and
// macros that use only the buffer (getc_unlocked, putc_unlocked).
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#undef __NO_INLINE__
#define __NO_INLINE__ 1 // keeps the headers from defining inline functions of these names

#include "trace/io.h"
#include "trace/next.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// <stdio.h> may define these as macros, too.
#undef fread_unlocked
#undef fwrite_unlocked
#undef fgets_unlocked
#undef fputs_unlocked
#undef getc
#undef putc
#undef putchar

// clang-format off
#define WRAPPER __attribute__((visibility("default")))
// clang-format on

static int number_of(FILE *file)
{
    int code = errno, fd = file ? fileno(file) : -1; // -1 for a stream of fmemopen
    errno = code;
    return fd;
}

// ---- opening and closing

#define OPENS(name, declared, passed)                      \
    WRAPPER FILE *name declared                            \
    {                                                      \
        NEXT(name)                                         \
        uint64_t begin = io_begin_open();                  \
        FILE *opened = next passed;                        \
        io_opened(opened ? number_of(opened) : -1, begin); \
        return opened;                                     \
    }
OPENS(fopen, (const char *path, const char *mode), (path, mode))
OPENS(fopen64, (const char *path, const char *mode), (path, mode))
OPENS(tmpfile, (void), ())
OPENS(tmpfile64, (void), ())

// A wrapper of freopen, which closes the file's former descriptor.
#define REOPENS(name)                                                  \
    WRAPPER FILE *name(const char *path, const char *mode, FILE *file) \
    {                                                                  \
        NEXT(name)                                                     \
        uint64_t begin = io_begin_open();                              \
        io_forget(number_of(file));                                    \
        FILE *opened = next(path, mode, file);                         \
        io_opened(opened ? number_of(opened) : -1, begin);             \
        return opened;                                                 \
    }
REOPENS(freopen)
REOPENS(freopen64)

#define CLOSES(name)                            \
    WRAPPER int name(FILE *file)                \
    {                                           \
        NEXT(name)                              \
        int fd = number_of(file);               \
        uint64_t begin = io_begin(fd);          \
        struct io_cells *mount = io_forget(fd); \
        int result = next(file);                \
        io_closed(mount, begin);                \
        return result;                          \
    }
CLOSES(fclose)
CLOSES(pclose)

// ---- blocks

// `done` is the result of the call; the expression `bytes` computes the number of bytes from it.
#define MOVES(op, type, name, declared, passed, bytes) \
    WRAPPER type name declared                         \
    {                                                  \
        NEXT(name)                                     \
        int fd = number_of(file);                      \
        uint64_t begin = io_begin(fd);                 \
        type done = next passed;                       \
        io_count(fd, op, (int64_t)(bytes), begin);     \
        return done;                                   \
    }
#define BLOCK size_t size, size_t count, FILE *file
MOVES(IO_READ, size_t, fread, (void *to, BLOCK), (to, size, count, file), done *size)
MOVES(IO_READ, size_t, fread_unlocked, (void *to, BLOCK), (to, size, count, file), done *size)
MOVES(IO_WRITE, size_t, fwrite, (const void *from, BLOCK), (from, size, count, file), done *size)
MOVES(IO_WRITE, size_t, fwrite_unlocked, (const void *from, BLOCK), (from, size, count, file),
      done *size)
size_t __fread_chk(void *to, size_t room, BLOCK);
size_t __fread_unlocked_chk(void *to, size_t room, BLOCK);
MOVES(IO_READ, size_t, __fread_chk, (void *to, size_t room, BLOCK), (to, room, size, count, file),
      done *size)
MOVES(IO_READ, size_t, __fread_unlocked_chk, (void *to, size_t room, BLOCK),
      (to, room, size, count, file), done *size)

WRAPPER int fflush(FILE *file)
{
    NEXT(fflush)
    int fd = number_of(file);
    uint64_t begin = io_begin(fd);
    int result = next(file);
    io_count(fd, IO_SYNC, 0, begin);
    return result;
}

// ---- lines and texts

#define TEXT_SIZE (done ? strlen(done) : 0)
MOVES(IO_READ, char *, fgets, (char *to, int size, FILE *file), (to, size, file), TEXT_SIZE)
MOVES(IO_READ, char *, fgets_unlocked, (char *to, int size, FILE *file), (to, size, file),
      TEXT_SIZE)
char *__fgets_chk(char *to, size_t room, int size, FILE *file);
MOVES(IO_READ, char *, __fgets_chk, (char *to, size_t room, int size, FILE *file),
      (to, room, size, file), TEXT_SIZE)
#define LINE char **to, size_t *size
MOVES(IO_READ, ssize_t, getline, (LINE, FILE *file), (to, size, file), done)
MOVES(IO_READ, ssize_t, getdelim, (LINE, int end, FILE *file), (to, size, end, file), done)
ssize_t __getdelim(LINE, int end, FILE *file);
MOVES(IO_READ, ssize_t, __getdelim, (LINE, int end, FILE *file), (to, size, end, file), done)
MOVES(IO_WRITE, int, fputs, (const char *from, FILE *file), (from, file),
      done >= 0 ? strlen(from) : 0)
MOVES(IO_WRITE, int, fputs_unlocked, (const char *from, FILE *file), (from, file),
      done >= 0 ? strlen(from) : 0)
MOVES(IO_WRITE, int, vfprintf, (FILE * file, const char *format, va_list values),
      (file, format, values), done)
int __vfprintf_chk(FILE *file, int flag, const char *format, va_list values);
MOVES(IO_WRITE, int, __vfprintf_chk, (FILE * file, int flag, const char *format, va_list values),
      (file, flag, format, values), done)

WRAPPER int fprintf(FILE *file, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int done = vfprintf(file, format, values);
    va_end(values);
    return done;
}

int __fprintf_chk(FILE *file, int flag, const char *format, ...);
WRAPPER int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int done = __vfprintf_chk(file, flag, format, values);
    va_end(values);
    return done;
}

// It writes to standard output, which may be a file.
WRAPPER int vprintf(const char *format, va_list values)
{
    return vfprintf(stdout, format, values);
}

int __vprintf_chk(int flag, const char *format, va_list values);
WRAPPER int __vprintf_chk(int flag, const char *format, va_list values)
{
    return __vfprintf_chk(stdout, flag, format, values);
}

WRAPPER int printf(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int done = vfprintf(stdout, format, values);
    va_end(values);
    return done;
}

int __printf_chk(int flag, const char *format, ...);
WRAPPER int __printf_chk(int flag, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int done = __vfprintf_chk(stdout, flag, format, values);
    va_end(values);
    return done;
}

WRAPPER int puts(const char *from)
{
    NEXT(puts)
    int fd = number_of(stdout);
    uint64_t begin = io_begin(fd);
    int done = next(from);
    io_count(fd, IO_WRITE, done >= 0 ? (int64_t)strlen(from) + 1 : 0, begin);
    return done;
}

// ---- single characters, which cost less than reading the clock

#define GETS(name)                                               \
    WRAPPER int name(FILE *file)                                 \
    {                                                            \
        NEXT(name)                                               \
        int done = next(file);                                   \
        io_count_untimed(number_of(file), IO_READ, done != EOF); \
        return done;                                             \
    }
GETS(fgetc)
GETS(getc)
int _IO_getc(FILE *file);
GETS(_IO_getc)

#define PUTS(name)                                                \
    WRAPPER int name(int sign, FILE *file)                        \
    {                                                             \
        NEXT(name)                                                \
        int done = next(sign, file);                              \
        io_count_untimed(number_of(file), IO_WRITE, done != EOF); \
        return done;                                              \
    }
PUTS(fputc)
PUTS(putc)
int _IO_putc(int sign, FILE *file);
PUTS(_IO_putc)

WRAPPER int putchar(int sign)
{
    return putc(sign, stdout);
}
