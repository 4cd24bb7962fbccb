// fields.c - finds lines by name and remembers their positions.
#include "collect/fields.h"

#include "collect/procfile.h"

static bool take_number(struct fields *f, size_t field, struct str line)
{
    struct str rest = str_slice(line, f->table[field].name.size, line.size);
    uint64_t number;
    if (f->have[field] || !scan_u64(&rest, &number) ||
        !str_eq(str_trim(rest), f->table[field].unit))
        return false;
    f->numbers[field] = number;
    f->have[field] = true;
    return true;
}

static bool is_field(struct str line, struct str name)
{
    return line.size >= name.size && memcmp(line.data, name.data, name.size) == 0;
}

static size_t read_all(struct fields *f, struct str text)
{
    size_t found = 0, next = 0;
    struct str line;
    memset(f->have, 0, sizeof f->have);
    for (f->lines = 0; scan_line(&text, &line); f->lines++) {
        size_t hit = 0;
        for (size_t tried = 0; tried < f->count && !hit; tried++) {
            size_t field = (next + tried) % f->count;
            if (is_field(line, f->table[field].name))
                hit = field + 1;
        }
        if (f->lines < FIELDS_LINES_MAX)
            f->memo[f->lines] = (uint8_t)hit;
        if (hit) {
            found += take_number(f, hit - 1, line);
            next = hit;
        }
    }
    return found;
}

size_t fields_read(struct fields *f, struct str text)
{
    struct str rest = text, line;
    size_t found = 0, lines = 0;
    if (f->lines == 0 || f->lines > FIELDS_LINES_MAX)
        return read_all(f, text);
    memset(f->have, 0, sizeof f->have);
    for (; scan_line(&rest, &line); lines++) {
        if (lines == f->lines)
            return read_all(f, text);
        size_t hit = f->memo[lines];
        if (!hit)
            continue;
        if (!is_field(line, f->table[hit - 1].name))
            return read_all(f, text);
        found += take_number(f, hit - 1, line);
    }
    return lines == f->lines ? found : read_all(f, text);
}

void fields_put(const struct fields *f, const struct source *s, double *values)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->have[i])
            source_put(s, values, f->table[i].row, (double)f->numbers[i] * f->table[i].scale);
}
