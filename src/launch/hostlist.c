#include "launch/hostlist.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// ---------------------------------------------------------------- the set

void hosts_free(struct hosts *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->names[i]);
    free(h->names);
    map_free(&h->known);
    *h = (struct hosts){0};
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':';
}

static bool is_name(struct str name)
{
    if (name.size == 0 || name.size > HOST_NAME_MAX_BYTES || name.data[0] == '-' ||
        name.data[0] == '.')
        return false;
    for (size_t i = 0; i < name.size; i++) {
        if (!is_name_byte(name.data[i]))
            return false;
    }
    return true;
}

int hosts_add(struct hosts *h, struct str name, struct error *e)
{
    if (!is_name(name))
        return error_set(e, -EINVAL, "'%.*s' is not the name of a host",
                         name.size > 80 ? 80 : (int)name.size, name.data ? name.data : "");
    if (map_get(&h->known, name))
        return 0;
    if (h->count == HOSTS_MAX)
        return error_set(e, -E2BIG, "more than %d hosts", HOSTS_MAX);
    if (!array_room(&h->names, &h->capacity, h->count + 1, sizeof *h->names))
        return error_set(e, -ENOMEM, "out of memory");
    char *copy = strndup(name.data, name.size);
    uint64_t *index = copy ? map_add(&h->known, (struct str){copy, name.size}, NULL) : NULL;
    if (!index) {
        free(copy);
        return error_set(e, -ENOMEM, "out of memory");
    }
    *index = h->count;
    h->names[h->count++] = copy;
    return 0;
}

ptrdiff_t hosts_find(const struct hosts *h, struct str name)
{
    const uint64_t *index = map_get(&h->known, name);
    return index ? (ptrdiff_t)*index : -1;
}

// ---------------------------------------------------------------- the list

// One entry while its brackets are expanded.
struct entry {
    struct hosts *out;
    struct error *e;
    char name[HOST_NAME_MAX_BYTES + 1];
    unsigned brackets;
    // names of the whole list, repeated ones included: bounds a[1,1,1…][1,1,1…]…
    unsigned *made;
};

static int fault(struct entry *entry, const char *words, struct str at)
{
    return error_set(entry->e, -EINVAL, "%s at '%.*s'", words, at.size > 40 ? 40 : (int)at.size,
                     at.data);
}

static bool take_number(struct str *rest, unsigned long *value, int *width)
{
    *value = 0;
    *width = 0;
    while (rest->size > 0 && rest->data[0] >= '0' && rest->data[0] <= '9' &&
           *width < HOSTLIST_DIGITS_MAX) {
        *value = *value * 10 + (unsigned long)(rest->data[0] - '0');
        ++*width;
        *rest = str_slice(*rest, 1, rest->size);
    }
    return *width > 0;
}

static int add_from(struct entry *entry, size_t size, struct str rest);

// Adds the names of a bracket: the text before it, each number, and the text after it.
static int add_ranges(struct entry *entry, size_t size, struct str ranges, struct str rest)
{
    while (ranges.data) {
        struct str range = str_cut(&ranges, ','), at = range;
        unsigned long first, last;
        int width, last_width;
        if (!take_number(&range, &first, &width))
            return fault(entry, "a number is missing", at);
        last = first;
        if (range.size > 0 && range.data[0] == '-') {
            range = str_slice(range, 1, range.size);
            if (!take_number(&range, &last, &last_width))
                return fault(entry, "the range has no end", at);
        }
        if (range.size > 0)
            return fault(entry, "not a range of numbers", at);
        if (last < first)
            return fault(entry, "the range runs backwards", at);
        if (last - first >= HOSTS_MAX)
            return error_set(entry->e, -E2BIG, "more than %d hosts", HOSTS_MAX);
        for (unsigned long n = first; n <= last; n++) {
            size_t room = sizeof entry->name - size;
            int written = snprintf(entry->name + size, room, "%0*lu", width, n);
            if (written < 0 || (size_t)written >= room)
                return fault(entry, "a name that is too long", at);
            int status = add_from(entry, size + (size_t)written, rest);
            if (status < 0)
                return status;
        }
    }
    return 0;
}

// Adds the names that begin with name[0..size); `rest` still has to be expanded.
static int add_from(struct entry *entry, size_t size, struct str rest)
{
    ptrdiff_t open = str_find_char(rest, '[');
    size_t plain = open < 0 ? rest.size : (size_t)open;
    if (size + plain > HOST_NAME_MAX_BYTES)
        return fault(entry, "a name that is too long", rest);
    memcpy(entry->name + size, rest.data, plain);
    size += plain;
    if (open < 0 && ++*entry->made > HOSTLIST_NAMES_MAX)
        return error_set(entry->e, -E2BIG, "the list names more than %d hosts", HOSTLIST_NAMES_MAX);
    if (open < 0)
        return hosts_add(entry->out, (struct str){entry->name, size}, entry->e);
    struct str ranges = str_slice(rest, plain + 1, rest.size);
    ptrdiff_t close = str_find_char(ranges, ']');
    if (close < 0)
        return fault(entry, "a bracket that is not closed", str_slice(rest, plain, rest.size));
    if (entry->brackets == HOSTLIST_BRACKETS_MAX)
        return fault(entry, "too many brackets", rest);
    entry->brackets++;
    int status = add_ranges(entry, size, str_slice(ranges, 0, (size_t)close),
                            str_slice(ranges, (size_t)close + 1, ranges.size));
    entry->brackets--;
    return status;
}

// Returns the size of the first entry: up to the first comma outside brackets.
static size_t entry_size(struct str list)
{
    bool inside = false;
    size_t i = 0;
    for (; i < list.size && (inside || list.data[i] != ','); i++) {
        if (list.data[i] == '[')
            inside = true;
        else if (list.data[i] == ']')
            inside = false;
    }
    return i;
}

int hostlist_parse(struct str list, struct hosts *out, struct error *e)
{
    list = str_trim(list);
    if (list.size == 0)
        return error_set(e, -EINVAL, "the list of hosts is empty");
    if (list.size > HOSTLIST_BYTES_MAX)
        return error_set(e, -E2BIG, "a list of hosts of more than %d bytes", HOSTLIST_BYTES_MAX);
    unsigned made = 0;
    for (bool more = true; more;) {
        size_t size = entry_size(list);
        struct entry entry = {.out = out, .e = e, .made = &made};
        int status = add_from(&entry, 0, str_trim(str_slice(list, 0, size)));
        if (status < 0)
            return status;
        more = size < list.size;
        list = str_slice(list, size + 1, list.size);
    }
    return 0;
}
