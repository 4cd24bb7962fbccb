// kernel_name.c - reads the part of a mangled name that the short name needs. What it does not know
// ends the reading; the short name has what was read until then.
#include "trace/kernel_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text {
    const char *at;
    size_t size;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

// Reads a length and as many characters. Returns false at anything else.
static bool take_name(const char **at, struct text *out)
{
    const char *p = *at;
    size_t size = 0;
    while (is_digit(*p) && size < 10000)
        size = size * 10 + (size_t)(*p++ - '0');
    if (!size || strnlen(p, size) < size)
        return false;
    *out = (struct text){p, size};
    *at = p + size;
    return true;
}

// A substitution or a parameter of a template: S_, S1A_, St, T0_.
static bool skip_reference(const char **at)
{
    const char *p = *at;
    if (*p != 'S' && *p != 'T')
        return false;
    if (*p++ == 'S' && is_lower(*p)) {
        *at = p + 1;
        return true;
    }
    while (is_digit(*p) || (*p >= 'A' && *p <= 'Z'))
        p++;
    if (*p != '_')
        return false;
    *at = p + 1;
    return true;
}

// A literal among the arguments of a template: Li128E, Lb1E, LN2at4KindE3E.
static bool skip_literal(const char **at)
{
    const char *p = *at + 1;
    struct text name;
    if (*p == 'N') {
        for (p++; *p && *p != 'E';)
            if (!take_name(&p, &name) && !skip_reference(&p))
                return false;
        p += *p == 'E';
    } else if (!skip_reference(&p) && !take_name(&p, &name))
        p += is_lower(*p);
    while (is_digit(*p) || *p == 'n')
        p++;
    *at = p + 1;
    return *p == 'E';
}

// A function without a name: UlffE_, UlvE1_.
static bool skip_lambda(const char **at)
{
    const char *p = strchr(*at, 'E');
    if (!p)
        return false;
    for (p++; is_digit(*p); p++)
        ;
    *at = p + 1;
    return *p == '_';
}

static bool contains(struct text name, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= name.size; i++)
        if (memcmp(name.at + i, word, size) == 0)
            return true;
    return false;
}

static bool ends_with(struct text name, const char *word)
{
    size_t size = strlen(word);
    return name.size >= size && memcmp(name.at + name.size - size, word, size) == 0;
}

// Does not say what a kernel computes: a name of the compiler, a type of numbers.
static bool is_plain(struct text name)
{
    static const char *const types[] = {"Half", "BFloat16", "complex", "c10", "std", "cuda"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (name.size == strlen(types[i]) && ends_with(name, types[i]))
            return true;
    return name.at[0] == '_' && (name.size < 2 || name.at[1] == '_' || name.at[1] == 'G');
}

static bool is_functor(struct text name)
{
    return contains(name, "unctor");
}

static bool is_operation(struct text name)
{
    return ends_with(name, "Op") || ends_with(name, "Ops");
}

// What the arguments of a template name; empty: nothing.
struct named {
    struct text first;     // the first class
    struct text functor;   // the innermost one: the last one
    struct text operation; // likewise, of classes such as ReduceOp
    struct text function;  // around a lambda, itself a template
};

static struct text choose(const struct named *n)
{
    if (n->functor.at)
        return n->functor;
    if (n->operation.at && is_operation(n->first))
        return n->operation;
    return n->function.at ? n->function : n->first;
}

// Finds what the arguments of a template say of the computation: the function around a lambda, else
// a functor or an operation, else the first class. `at` is behind the I.
static struct text find_operation(const char *at)
{
    struct named n = {0};
    struct text name;
    bool scope = false, lambda = false; // within N…E; behind a Z
    while (*at) {
        if (is_digit(*at)) {
            if (!take_name(&at, &name))
                break;
            while (scope && is_digit(*at) && take_name(&at, &name)) // the last name of a scope
                ;
            if (is_plain(name))
                continue;
            if (lambda && *at != 'I')
                return name;
            if (lambda && !n.function.at)
                n.function = name;
            if (is_functor(name))
                n.functor = name;
            if (is_operation(name))
                n.operation = name;
            n.first = n.first.at ? n.first : name;
            lambda = false;
        } else if (*at == 'S' || *at == 'T') {
            if (!skip_reference(&at))
                break;
        } else if (*at == 'L' && at[1] == '_') { // the address of a function: L_Z…
            at += 2;
        } else if (*at == 'L') {
            if (!skip_literal(&at))
                break;
        } else if (*at == 'U') {
            if (!skip_lambda(&at))
                break;
        } else {
            scope = *at == 'N' || (scope && *at != 'E' && *at != 'I');
            lambda = *at == 'Z' || (lambda && *at == 'N');
            at++;
        }
    }
    return choose(&n);
}

// A scope that the compiler has made for names of one file.
static bool is_hidden(struct text name)
{
    return strncmp(name.at, "_GLOBAL__N", 10) == 0 || strncmp(name.at, "_INTERNAL_", 10) == 0;
}

static size_t add(char *out, size_t used, const char *text, size_t size)
{
    size_t room = KERNEL_NAME_BYTES - 1 - used;
    if (size > room)
        size = room;
    memcpy(out + used, text, size);
    return used + size;
}

void kernel_name_write(const char *name, char out[KERNEL_NAME_BYTES])
{
    size_t used = 0;
    const char *at = name;
    struct text part;
    if (strncmp(name, "_Z", 2) == 0) {
        at += 2;
        bool nested = *at == 'N';
        at += nested;
        for (;;) {
            at += *at == 'L' && is_digit(at[1]); // of this file only
            if (skip_reference(&at))
                continue;
            if (!is_digit(*at) || !take_name(&at, &part))
                break;
            if (!is_hidden(part)) {
                used = used ? add(out, used, "::", 2) : 0;
                used = add(out, used, part.at, part.size);
            }
            if (!nested)
                break;
        }
    }
    if (!used) {
        used = add(out, 0, name, strlen(name));
    } else if (*at == 'I') {
        struct text operation = find_operation(at + 1);
        if (operation.at) {
            used = add(out, used, "<", 1);
            used = add(out, used, operation.at, operation.size);
            used = add(out, used, ">", 1);
        }
    }
    out[used] = 0;
}
