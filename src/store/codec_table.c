// codec_table.c - reading tables. The layout is in codec_table_parts.h.
//
// Opening a table walks the directory and finds the start of each column's part of each stream. It
// checks all sizes. Decoding then checks only the extras and the positions, which depend on the
// data.
#include "store/codec_table_parts.h"

#include <errno.h>
#include <stdlib.h>

struct column {
    const uint8_t *stream[STREAMS]; // the start of the column's part of each stream
    size_t extras;
    uint64_t first, centre, factor, value;
    uint32_t n, count, misses;
    uint32_t refers[REFERENCES_MAX]; // column << 1 | subtract
    uint8_t n_refers, id, scale, form, low, apart;
    bool times;
};

struct codec_table {
    size_t n_columns;
    struct column columns[];
};

// ---- The directory

static unsigned order_of(const struct column *c)
{
    return c->form & ORDER_MASK;
}

static bool read_whole_numbers(struct bytes *in, struct column *c, size_t n_columns)
{
    struct codec_scale scale;
    c->scale = bytes_u8(in);
    c->form = bytes_u8(in);
    c->low = bytes_u8(in);
    c->first = (uint64_t)unzigzag(bytes_varint(in));
    c->centre = (uint64_t)unzigzag(bytes_varint(in));
    c->factor = bytes_varint(in);
    uint64_t misses = bytes_varint(in);
    size_t all = c->n - (order_of(c) == 0 ? 0 : 1);
    uint64_t count = c->form & FORM_DENSE ? all : bytes_varint(in);
    c->extras = bytes_varint(in);
    uint64_t n_refers = bytes_varint(in);
    if (!codec_scale_of(c->scale, &scale) || c->form > (FORM_DENSE | 2) || order_of(c) > 2 ||
        c->low > LOW_MAX || misses > (c->times ? 0 : c->n) || count > all ||
        n_refers > REFERENCES_MAX || (n_refers > 0 && order_of(c) != 1))
        return false;
    c->misses = (uint32_t)misses;
    c->count = (uint32_t)count;
    c->n_refers = (uint8_t)n_refers;
    for (size_t i = 0; i < c->n_refers; i++) {
        uint64_t refers = bytes_varint(in);
        if (refers >> 1 >= n_columns)
            return false;
        c->refers[i] = (uint32_t)refers;
    }
    return true;
}

static bool read_column(struct bytes *in, struct column *c, size_t n_columns)
{
    uint8_t kind = bytes_u8(in);
    uint64_t n = bytes_varint(in);
    *c = (struct column){.id = kind & 7, .times = kind & KIND_TIMES, .n = (uint32_t)n};
    if (kind > (KIND_TIMES | 7) || n == 0 || n > CODEC_VALUES_MAX)
        return false;
    switch (c->id) {
    case CODEC_CONSTANT:
        c->value = bytes_u64(in);
        return true;
    case CODEC_PLAIN:
        return true;
    case CODEC_RUNS: {
        uint64_t count = bytes_varint(in);
        c->extras = bytes_varint(in);
        c->count = (uint32_t)count;
        return count < n;
    }
    case CODEC_BITS:
        c->form = bytes_u8(in);
        c->apart = bytes_u8(in);
        return c->form < BITS_FORMS;
    case CODEC_INTEGER:
    case CODEC_DECIMAL:
        return read_whole_numbers(in, c, n_columns);
    default:
        return false;
    }
}

// Computes the size of the column's part of each stream.
static void sizes_of(const struct column *c, size_t size[STREAMS])
{
    memset(size, 0, STREAMS * sizeof size[0]);
    if (c->id == CODEC_PLAIN) {
        size[RAW] = c->n * (size_t)8;
    } else if (c->id == CODEC_BITS) {
        size_t apart = (size_t)__builtin_popcount(c->apart);
        size[LOW] = c->n * apart;
        size[RAW] = c->n * (8 - apart);
    } else if (c->id == CODEC_RUNS) {
        size[GAPS] = c->count;
        size[EXTRAS] = c->extras;
        size[RAW] = (c->count + (size_t)1) * 8;
    } else if (c->id != CODEC_CONSTANT) {
        bool dense = c->form & FORM_DENSE;
        size[GAPS] = dense ? 0 : c->count;
        size[CHANGES] = dense ? 0 : c->count;
        size[DENSE] = dense ? c->count : 0;
        size[EXTRAS] = c->extras;
        size[RAW] = c->misses * (size_t)MISS_BYTES;
        size[LOW] = low_bytes(c->count, c->low);
    }
}

struct layout {
    size_t n_columns;
    struct bytes directory;
    struct bytes stream[STREAMS];
};

static int open_layout(const uint8_t *in, size_t size, struct layout *out)
{
    struct bytes bytes = bytes_of(in, size);
    uint64_t stream_bytes[STREAMS];
    uint8_t version = bytes_u8(&bytes);
    uint64_t n_columns = bytes_varint(&bytes), directory_bytes = bytes_varint(&bytes);
    for (size_t s = 0; s < STREAMS; s++)
        stream_bytes[s] = bytes_varint(&bytes);
    struct str directory = bytes_take(&bytes, directory_bytes);
    out->n_columns = (size_t)n_columns;
    out->directory = bytes_of(directory.data, directory.size);
    for (size_t s = 0; s < STREAMS; s++) {
        struct str stream = bytes_take(&bytes, stream_bytes[s]);
        out->stream[s] = bytes_of(stream.data, stream.size);
    }
    if (bytes.failed || bytes_left(&bytes) != 0 || version != TABLE_VERSION || n_columns == 0 ||
        n_columns > CODEC_TABLE_COLUMNS_MAX)
        return -EBADMSG;
    return 0;
}

size_t codec_table_ends(const uint8_t *in, size_t size, size_t ends[STREAMS + 1])
{
    struct layout layout;
    if (open_layout(in, size, &layout) != 0)
        return 0;
    ends[0] = (size_t)(layout.stream[0].at - in);
    for (size_t s = 0; s < STREAMS; s++)
        ends[s + 1] = (size_t)(layout.stream[s].end - in);
    return STREAMS + 1;
}

static int open_columns(struct layout *layout, struct column *columns)
{
    for (size_t i = 0; i < layout->n_columns; i++) {
        struct column *c = &columns[i];
        size_t size[STREAMS];
        if (!read_column(&layout->directory, c, layout->n_columns) || layout->directory.failed)
            return -EBADMSG;
        sizes_of(c, size);
        for (size_t s = 0; s < STREAMS; s++)
            c->stream[s] = (const uint8_t *)bytes_take(&layout->stream[s], size[s]).data;
    }
    bool rest = bytes_left(&layout->directory) != 0;
    for (size_t s = 0; s < STREAMS; s++)
        rest |= layout->stream[s].failed || bytes_left(&layout->stream[s]) != 0;
    return rest ? -EBADMSG : 0;
}

int codec_table_open(const uint8_t *in, size_t size, struct codec_table **out)
{
    struct layout layout;
    *out = NULL;
    if (open_layout(in, size, &layout) != 0)
        return -EBADMSG;
    struct codec_table *table = malloc(sizeof *table + layout.n_columns * sizeof table->columns[0]);
    if (table == NULL)
        return -ENOMEM;
    table->n_columns = layout.n_columns;
    if (open_columns(&layout, table->columns) != 0) {
        free(table);
        return -EBADMSG;
    }
    *out = table;
    return 0;
}

void codec_table_close(struct codec_table *table)
{
    free(table);
}

size_t codec_table_bytes(const struct codec_table *table)
{
    return sizeof *table + table->n_columns * sizeof table->columns[0];
}

size_t codec_table_columns(const struct codec_table *table)
{
    return table->n_columns;
}

size_t codec_table_rows(const struct codec_table *table, size_t column)
{
    return table->columns[column].n;
}

size_t codec_table_column_bytes(const struct codec_table *table, size_t column)
{
    size_t size[STREAMS], all = 0;
    sizes_of(&table->columns[column], size);
    for (size_t s = 0; s < STREAMS; s++)
        all += size[s];
    return all;
}

enum codec_id codec_table_codec(const struct codec_table *table, size_t column)
{
    return (enum codec_id)table->columns[column].id;
}

// ---- Whole numbers

static inline bool read_token(uint8_t byte, struct bytes *extras, uint64_t *out)
{
    if (byte < TOKEN_LONG) {
        *out = byte;
        return true;
    }
    size_t size = byte - (size_t)(TOKEN_LONG - 1);
    if (size > TOKEN_EXTRA_MAX || bytes_left(extras) < size)
        return false;
    uint64_t v = 0;
    memcpy(&v, extras->at, size);
    extras->at += size;
    *out = v + TOKEN_LONG;
    return true;
}

// Reads `low` bits from bit `at` on. `in` has `size` bytes.
static inline uint64_t low_bits(const uint8_t *in, size_t size, size_t at, unsigned low)
{
    uint64_t window = 0;
    size_t byte = at / 8, left = size - byte;
    if (left < sizeof window)
        memcpy(&window, in + byte, left);
    else
        window = load_u64(in + byte);
    return window >> at % 8 & ((UINT64_C(1) << low) - 1);
}

static bool add_dense(const struct column *c, uint64_t sign, struct bytes *extras, number *q)
{
    const uint8_t *tokens = c->stream[DENSE], *low = c->stream[LOW];
    size_t low_size = low_bytes(c->count, c->low);
    for (size_t i = 0; i < c->count;) { // i is a multiple of TOKENS
        size_t at = i / 8 * c->low;
        i += codec_kernels()->add_tokens(tokens + i, c->count - i, c->low ? low + at : NULL,
                                         low_size - at, c->low, sign, q + i);
        for (size_t end = i + TOKENS < c->count ? i + TOKENS : c->count; i < end; i++) {
            uint64_t z;
            if (!read_token(tokens[i], extras, &z))
                return false;
            if (c->low > 0)
                z = z << c->low | low_bits(low, low_size, i * c->low, c->low);
            q[i] += signed_number(z, sign);
        }
    }
    return true;
}

static bool add_sparse(const struct column *c, uint64_t sign, struct bytes *extras, number *q)
{
    const uint8_t *gaps = c->stream[GAPS], *tokens = c->stream[CHANGES];
    size_t low_size = low_bytes(c->count, c->low), k = order_of(c) == 0 ? 0 : 1;
    for (size_t i = 0; i < c->count; i++, k++) {
        uint64_t gap, z;
        if (!read_token(gaps[i], extras, &gap) || gap >= c->n - k)
            return false;
        k += (size_t)gap;
        if (!read_token(tokens[i], extras, &z))
            return false;
        if (c->low > 0)
            z = z << c->low | low_bits(c->stream[LOW], low_size, i * c->low, c->low);
        q[k] += signed_number(z + 1, sign);
    }
    return true;
}

// Adds the stored numbers of column c to q, or subtracts them.
static bool add_own(const struct column *c, uint64_t sign, number *q)
{
    struct bytes extras = bytes_of(c->stream[EXTRAS], c->extras);
    bool ok = c->form & FORM_DENSE ? add_dense(c, sign, &extras, q + (order_of(c) == 0 ? 0 : 1))
                                   : add_sparse(c, sign, &extras, q);
    return ok && bytes_left(&extras) == 0;
}

// Adds up q of a column and of all columns that it refers to, directly or indirectly. The number of
// steps is limited, so a circle of references (which no encoder writes) ends, too.
static bool add_all(const struct column *columns, const struct column *c, number *q)
{
    struct {
        const struct column *column;
        uint64_t sign;
    } stack[EXPANSIONS_MAX];
    size_t depth = 0, expansions = 1;
    stack[depth].column = c;
    stack[depth++].sign = 0;
    while (depth > 0) {
        const struct column *now = stack[--depth].column;
        uint64_t sign = stack[depth].sign;
        if (!add_own(now, sign, q))
            return false;
        for (size_t i = 0; i < now->n_refers; i++) {
            const struct column *other = &columns[now->refers[i] >> 1];
            bool fits = (other->id == CODEC_INTEGER || other->id == CODEC_DECIMAL) &&
                        other->n == c->n && order_of(other) == 1;
            if (!fits || ++expansions > EXPANSIONS_MAX)
                return false;
            stack[depth].column = other;
            stack[depth++].sign = now->refers[i] & 1 ? ~sign : sign;
        }
    }
    return true;
}

// A walk over the groups of a series, which converts q to the whole numbers.
struct walk {
    uint64_t sum, delta;
};

static struct walk walk_of(const struct column *c)
{
    // The first number of a series has no change before it. So subtract the amount that every step
    // adds.
    return (struct walk){order_of(c) == 1 ? c->first - c->centre : c->first, 0 - c->centre};
}

static void next_group(const struct column *c, struct walk *w, const number *q, size_t count,
                       uint64_t group[GROUP])
{
    const struct codec_kernels *k = codec_kernels();
    size_t rounded = (count + LANES - 1) / LANES * LANES;
    memcpy(group, q, count * sizeof group[0]);
    memset(group + count, 0, (rounded - count) * sizeof group[0]);
    for (size_t i = 0; i < count && c->factor != 1; i++)
        group[i] *= c->factor;
    switch (order_of(c)) {
    case 0:
        for (size_t i = 0; i < rounded; i++)
            group[i] += c->centre;
        break;
    case 1:
        k->prefix64(group, rounded, false, c->centre, &w->sum);
        break;
    default:
        k->prefix64(group, rounded, false, c->centre, &w->delta);
        k->prefix64(group, rounded, false, 0, &w->sum);
    }
}

static int decode_times(const struct column *columns, const struct column *c, number *x)
{
    memset(x, 0, c->n * sizeof x[0]);
    if (!add_all(columns, c, x))
        return -EBADMSG;
    struct walk walk = walk_of(c);
    for (size_t at = 0; at < c->n; at += GROUP) {
        uint64_t group[GROUP];
        size_t count = c->n - at < GROUP ? c->n - at : GROUP;
        next_group(c, &walk, x + at, count, group);
        memcpy(x + at, group, count * sizeof group[0]);
    }
    return 0;
}

static int decode_whole(const struct column *columns, const struct column *c, double *out)
{
    number *q = (number *)out;
    struct codec_scale scale;
    memset(q, 0, c->n * sizeof q[0]);
    if (!add_all(columns, c, q) || !codec_scale_of(c->scale, &scale))
        return -EBADMSG;
    struct walk walk = walk_of(c);
    for (size_t at = 0; at < c->n; at += GROUP) {
        uint64_t group[GROUP];
        size_t count = c->n - at < GROUP ? c->n - at : GROUP;
        next_group(c, &walk, q + at, count, group);
        codec_kernels()->values64((const int64_t *)group, count, &scale, out + at);
    }
    const uint8_t *positions = c->stream[RAW], *values = positions + c->misses * (size_t)2;
    for (size_t i = 0; i < c->misses; i++) {
        size_t position = load_u16(positions + i * 2);
        if (position >= c->n)
            return -EBADMSG;
        memcpy(&out[position], values + i * 8, 8);
    }
    return 0;
}

// ---- Bit patterns

static int decode_runs(const struct column *c, double *out)
{
    struct bytes extras = bytes_of(c->stream[EXTRAS], c->extras);
    const uint8_t *values = c->stream[RAW];
    number *pattern = (number *)out;
    size_t k = 0;
    for (size_t run = 0; run <= c->count; run++) {
        uint64_t value = load_u64(values + run * 8), gap = 0;
        // The gap before a change at k + 1 is 0.
        if (run < c->count &&
            (!read_token(c->stream[GAPS][run], &extras, &gap) || gap + 1 >= c->n - k))
            return -EBADMSG;
        for (size_t end = run < c->count ? k + (size_t)gap + 1 : c->n; k < end; k++)
            pattern[k] = value;
    }
    return bytes_left(&extras) == 0 ? 0 : -EBADMSG;
}

static void add_plane(const uint8_t *restrict bytes, size_t n, unsigned shift,
                      number *restrict pattern)
{
    for (size_t i = 0; i < n; i++)
        pattern[i] |= (uint64_t)bytes[i] << shift;
}

// Plane 0 contains the highest byte of each pattern.
static void decode_bits(const struct column *c, double *out)
{
    number *pattern = (number *)out;
    const uint8_t *raw = c->stream[RAW], *low = c->stream[LOW];
    memset(pattern, 0, c->n * sizeof pattern[0]);
    for (unsigned plane = 0; plane < 8; plane++) {
        const uint8_t **from = c->apart >> plane & 1 ? &low : &raw;
        add_plane(*from, c->n, 56 - 8 * plane, pattern);
        *from += c->n;
    }
    if (c->form == BITS_XOR)
        for (size_t i = 1; i < c->n; i++)
            pattern[i] ^= pattern[i - 1];
    if (c->form == BITS_DELTA)
        for (size_t i = 1; i < c->n; i++)
            pattern[i] = pattern[i - 1] + (uint64_t)unzigzag(pattern[i]);
}

// ---- Columns

static int decode_column(const struct column *columns, const struct column *c, void *out)
{
    number *patterns = out;
    switch (c->id) {
    case CODEC_CONSTANT:
        for (size_t i = 0; i < c->n; i++)
            patterns[i] = c->value;
        return 0;
    case CODEC_PLAIN:
        memcpy(out, c->stream[RAW], c->n * sizeof patterns[0]);
        return 0;
    case CODEC_RUNS:
        return decode_runs(c, out);
    case CODEC_BITS:
        decode_bits(c, out);
        return 0;
    default:
        return c->times ? decode_times(columns, c, out) : decode_whole(columns, c, out);
    }
}

int codec_table_values(const struct codec_table *table, size_t column, double *out)
{
    const struct column *c = &table->columns[column];
    return column < table->n_columns && !c->times ? decode_column(table->columns, c, out)
                                                  : -EBADMSG;
}

int codec_table_times(const struct codec_table *table, size_t column, int64_t *out)
{
    const struct column *c = &table->columns[column];
    return column < table->n_columns && c->times ? decode_column(table->columns, c, out) : -EBADMSG;
}

static int open_only(const uint8_t *in, size_t size, struct column *c)
{
    struct layout layout;
    if (open_layout(in, size, &layout) != 0 || layout.n_columns != 1)
        return -EBADMSG;
    return open_columns(&layout, c);
}

int codec_table_only(const uint8_t *in, size_t size, size_t n, double *out)
{
    struct column c;
    if (open_only(in, size, &c) != 0 || c.n != n || c.times)
        return -EBADMSG;
    return decode_column(&c, &c, out);
}

int codec_table_only_times(const uint8_t *in, size_t size, size_t n, int64_t *out)
{
    struct column c;
    if (open_only(in, size, &c) != 0 || c.n != n || !c.times)
        return -EBADMSG;
    return decode_column(&c, &c, out);
}

enum codec_id codec_table_first(const uint8_t *table, size_t size)
{
    struct column c;
    return open_only(table, size, &c) == 0 ? (enum codec_id)c.id : CODEC_COUNT;
}
