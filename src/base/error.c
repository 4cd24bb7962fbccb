#include "base/error.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Escapes the text, because it may quote foreign text, and programs print it unchanged.
static void make_printable(struct error *e)
{
    char text[ERROR_TEXT_MAX];
    printable_copy(text, sizeof text, str_of(e->text));
    memcpy(e->text, text, sizeof text);
}

int error_set(struct error *e, int code, const char *format, ...)
{
    if (!e)
        return code;
    e->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    make_printable(e);
    return code;
}

// Appends as much text as there is room for.
static void append(struct error *e, struct str more)
{
    size_t size = strlen(e->text);
    more = str_slice(more, 0, sizeof e->text - 1 - size);
    memcpy(e->text + size, more.data, more.size);
    e->text[size + more.size] = 0;
}

int error_prefix(struct error *e, const char *format, ...)
{
    if (!e)
        return 0;
    char old[ERROR_TEXT_MAX];
    memcpy(old, e->text, sizeof old);
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    append(e, STR(": "));
    append(e, str_of(old));
    make_printable(e);
    return e->code;
}
