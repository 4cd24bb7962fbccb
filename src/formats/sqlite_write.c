#include "formats/sqlite_write.h"

#include <errno.h>
#include <stdlib.h>

enum {
    PAGE = SQLITE_PAGE_BYTES,
    LEVELS_MAX = 10, // 400^9 pages are more than a file can have
    LEAF_HEAD = 8,
    INTERIOR_HEAD = 12,
    POINTER = 2, // size of a cell's pointer, at the beginning of its page
    CHILD = 4,
    VARINT_MAX = 9,
    PAGES_AT_ONCE = 16,
    FILE_HEAD = 100,
    LEAF_ROWS = 0x0d, // kinds of pages
    LEAF_ORDERED = 0x0a,
    INTERIOR_ROWS = 0x05,
    INTERIOR_ORDERED = 0x02,
    OVERFLOW_ROOM = PAGE - 4,
    LOCAL_LEAST = (PAGE - 12) * 32 / 255 - 23,
    CELL_MAX = PAGE / 4,
    LOCK_PAGE = (1 << 30) / PAGE + 1,
};

// A page that fills up: cells from its end downwards, pointers from its head upwards.
struct page {
    uint8_t bytes[PAGE];
    size_t cells, begin; // begin: index of the lowest cell
};

struct tree {
    const char *name, *sql;
    bool ordered, view;
    int64_t rows;
    uint32_t root;
    struct page *levels[LEVELS_MAX]; // leaf first
    size_t level_count;
};

struct sqlite_writer {
    struct sqlite_output out;
    struct tree trees[SQLITE_TABLES_MAX];
    size_t tree_count;
    uint32_t pages; // the number of the last page in use
    uint8_t gathered[PAGES_AT_ONCE * PAGE];
    size_t gathered_count; // pages up to the last one that are not written yet
    struct buf payload;
};

static void put_u16(uint8_t *at, size_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static void put_u32(uint8_t *at, uint32_t v)
{
    put_u16(at, v >> 16);
    put_u16(at + 2, v & 0xffff);
}

// Writes seven bits per byte, the highest first; a ninth byte has eight bits.
static size_t put_varint(uint8_t *at, uint64_t v)
{
    uint8_t digits[VARINT_MAX + 1];
    size_t n = 0;
    if (v >> 56) {
        at[8] = (uint8_t)v;
        v >>= 8;
        for (int i = 7; i >= 0; i--, v >>= 7)
            at[i] = (uint8_t)(v | 0x80);
        return VARINT_MAX;
    }
    do {
        digits[n++] = (uint8_t)(v & 0x7f);
        v >>= 7;
    } while (v);
    for (size_t i = 0; i < n; i++)
        at[i] = (uint8_t)(digits[n - 1 - i] | (i + 1 < n ? 0x80 : 0));
    return n;
}

// ---------------------------------------------------------------- pages

static int write_gathered(struct sqlite_writer *w)
{
    if (!w->gathered_count)
        return 0;
    uint64_t first = w->pages - w->gathered_count; // page 1 lies at 0
    int rc = w->out.write(w->out.user, first * PAGE,
                          (struct str){(const char *)w->gathered, w->gathered_count * PAGE});
    w->gathered_count = 0;
    return rc;
}

static uint32_t page_after(const struct sqlite_writer *w, uint32_t number)
{
    return number + 1 == w->out.lock_page ? number + 2 : number + 1;
}

static int gather(struct sqlite_writer *w, const uint8_t bytes[PAGE])
{
    memcpy(w->gathered + w->gathered_count++ * PAGE, bytes, PAGE);
    w->pages++;
    return w->gathered_count == PAGES_AT_ONCE ? write_gathered(w) : 0;
}

// Writes the page under the number page_after(w, w->pages).
static int add_page(struct sqlite_writer *w, const uint8_t bytes[PAGE], uint32_t *number)
{
    static const uint8_t unused[PAGE];
    int rc = 0;
    if (w->pages >= UINT32_MAX - 2)
        return -EFBIG;
    if (w->pages + 1 == w->out.lock_page)
        rc = gather(w, unused);
    if (!rc)
        rc = gather(w, bytes);
    *number = w->pages;
    return rc;
}

static size_t head_of(size_t level)
{
    return level ? INTERIOR_HEAD : LEAF_HEAD;
}

static void clear(struct page *p)
{
    p->cells = 0;
    p->begin = PAGE;
}

static bool fits(const struct page *p, size_t level, size_t size)
{
    return head_of(level) + (p->cells + 1) * POINTER + size <= p->begin;
}

static void add_cell(struct page *p, size_t level, const uint8_t *cell, size_t size)
{
    p->begin -= size;
    memcpy(p->bytes + p->begin, cell, size);
    put_u16(p->bytes + head_of(level) + p->cells++ * POINTER, p->begin);
}

// Fills in the page's head. `right`: the last child of an interior page.
static void close_page(struct page *p, size_t level, bool ordered, uint32_t right)
{
    static const uint8_t kinds[2][2] = {{LEAF_ROWS, LEAF_ORDERED},
                                        {INTERIOR_ROWS, INTERIOR_ORDERED}};
    uint8_t *head = p->bytes;
    size_t pointers = head_of(level) + p->cells * POINTER;
    memset(p->bytes + pointers, 0, p->begin - pointers);
    head[0] = kinds[level > 0][ordered];
    put_u16(head + 1, 0);
    put_u16(head + 3, p->cells);
    put_u16(head + 5, p->begin);
    head[7] = 0;
    if (level)
        put_u32(head + 8, right);
}

// ---------------------------------------------------------------- trees

static struct page *level_of(struct tree *t, size_t level)
{
    if (level == t->level_count) {
        if (level == LEVELS_MAX)
            return NULL;
        t->levels[level] = malloc(sizeof *t->levels[level]);
        if (!t->levels[level])
            return NULL;
        clear(t->levels[level]);
        t->level_count++;
    }
    return t->levels[level];
}

static int add_separator(struct sqlite_writer *w, struct tree *t, size_t level, uint32_t child,
                         const uint8_t *key, size_t size);

// Writes a full page. `right`: the last child of an interior page. The cell `key` separates the
// page from the next one.
static int end_page(struct sqlite_writer *w, struct tree *t, size_t level, uint32_t right,
                    const uint8_t *key, size_t size)
{
    struct page *p = t->levels[level];
    uint32_t number;
    close_page(p, level, t->ordered, right);
    int rc = add_page(w, p->bytes, &number);
    if (!rc)
        rc = add_separator(w, t, level + 1, number, key, size);
    clear(p);
    return rc;
}

// Removes the last cell from a page with several cells, and returns its size. The cell lay at
// p->begin.
static size_t drop_last(struct page *p, size_t level)
{
    const uint8_t *pointer = p->bytes + head_of(level) + (p->cells - 2) * POINTER;
    size_t before = (size_t)pointer[0] << 8 | pointer[1], size = before - p->begin;
    p->cells--;
    p->begin = before;
    return size;
}

// Adds the full page `child` to its parent, with the cell that separates it from the next page: in
// a table its largest rowid, in an ordered tree its last row, which moves up. A full interior page
// gives its last cell away in the same manner, so that no page is ever empty.
static int add_separator(struct sqlite_writer *w, struct tree *t, size_t level, uint32_t child,
                         const uint8_t *key, size_t size)
{
    uint8_t cell[CHILD + CELL_MAX];
    struct page *p = level_of(t, level);
    if (!p)
        return -ENOMEM;
    put_u32(cell, child);
    memcpy(cell + CHILD, key, size);
    if (!fits(p, level, CHILD + size)) {
        size_t last = drop_last(p, level);
        uint8_t up[CHILD + CELL_MAX];
        memcpy(up, p->bytes + p->begin - last, last);
        uint32_t right =
            (uint32_t)up[0] << 24 | (uint32_t)up[1] << 16 | (uint32_t)up[2] << 8 | up[3];
        int rc = end_page(w, t, level, right, up + CHILD, last - CHILD);
        if (rc)
            return rc;
    }
    add_cell(p, level, cell, CHILD + size);
    return 0;
}

static int add_leaf_cell(struct sqlite_writer *w, struct tree *t, const uint8_t *cell, size_t size)
{
    uint8_t key[CELL_MAX];
    struct page *p = level_of(t, 0);
    int rc = 0;
    if (!p)
        return -ENOMEM;
    if (!fits(p, 0, size) && t->ordered) {
        size_t last = drop_last(p, 0);
        memcpy(key, p->bytes + p->begin - last, last);
        rc = end_page(w, t, 0, 0, key, last);
    } else if (!fits(p, 0, size)) {
        rc = end_page(w, t, 0, 0, key, put_varint(key, (uint64_t)t->rows));
    }
    if (!rc)
        add_cell(p, 0, cell, size);
    return rc;
}

// Writes the pages that are not full yet, from the leaf upwards; the last one is the root.
static int end_tree(struct sqlite_writer *w, struct tree *t)
{
    uint32_t child = 0;
    if (!level_of(t, 0))
        return -ENOMEM;
    for (size_t i = 0; i < t->level_count; i++) {
        close_page(t->levels[i], i, t->ordered, child);
        int rc = add_page(w, t->levels[i]->bytes, &child);
        if (rc)
            return rc;
    }
    t->root = child;
    return 0;
}

// ---------------------------------------------------------------- rows

static size_t integer_type(int64_t v, size_t *size)
{
    static const size_t sizes[] = {1, 2, 3, 4, 6, 8};
    if (v == 0 || v == 1) {
        *size = 0;
        return v ? 9 : 8;
    }
    size_t type = 0;
    while (type < 5 &&
           (v < -(INT64_C(1) << (8 * sizes[type] - 1)) || v >= INT64_C(1) << (8 * sizes[type] - 1)))
        type++;
    *size = sizes[type];
    return type + 1;
}

static void put_big_endian(uint8_t *at, uint64_t v, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(v >> 8 * (size - 1 - i));
}

static bool add_payload(struct buf *out, const struct sqlite_value *values, size_t count)
{
    uint8_t head[SQLITE_COLUMNS_MAX * VARINT_MAX];
    size_t types = 0, body = 0, sizes[SQLITE_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        const struct sqlite_value *v = &values[i];
        uint64_t type = 0;
        if (v->kind == SQLITE_VALUE_INTEGER)
            type = integer_type(v->integer, &sizes[i]);
        else if (v->kind == SQLITE_VALUE_REAL)
            type = 7;
        else if (v->kind == SQLITE_VALUE_TEXT)
            type = 13 + 2 * (uint64_t)v->text.size;
        if (v->kind == SQLITE_VALUE_REAL || v->kind == SQLITE_VALUE_TEXT)
            sizes[i] = v->kind == SQLITE_VALUE_REAL ? sizeof v->real : v->text.size;
        types += put_varint(head + types, type);
        body += sizes[i];
    }
    // The header's size includes itself.
    size_t own = types + 1 < 0x80 ? 1 : 2;
    if (!buf_reserve(out, own + types + body))
        return false;
    uint8_t *at = (uint8_t *)out->data + out->size;
    at += put_varint(at, own + types);
    memcpy(at, head, types);
    at += types;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = (uint64_t)values[i].integer;
        if (values[i].kind == SQLITE_VALUE_REAL)
            memcpy(&bits, &values[i].real, sizeof bits);
        if (values[i].kind == SQLITE_VALUE_TEXT)
            memcpy(at, values[i].text.data, sizes[i]);
        else
            put_big_endian(at, bits, sizes[i]);
        at += sizes[i];
    }
    out->size += own + types + body;
    return true;
}
_Static_assert(SQLITE_COLUMNS_MAX *VARINT_MAX < 1 << 14, "the size of a head has two bytes");

// Writes the chain of pages with the rest of a payload. Each page begins with the number of the
// next one.
static int add_overflow(struct sqlite_writer *w, struct str rest, uint32_t *first)
{
    *first = page_after(w, w->pages);
    while (rest.size) {
        uint8_t bytes[PAGE] = {0};
        uint32_t number;
        size_t n = rest.size < OVERFLOW_ROOM ? rest.size : OVERFLOW_ROOM;
        put_u32(bytes, rest.size > n ? page_after(w, page_after(w, w->pages)) : 0);
        memcpy(bytes + 4, rest.data, n);
        int rc = add_page(w, bytes, &number);
        if (rc)
            return rc;
        rest = str_slice(rest, n, rest.size);
    }
    return 0;
}

// Returns how many bytes of a row's payload lie on its leaf.
static size_t local_size(size_t size)
{
    size_t most = PAGE - 35;
    if (size <= most)
        return size;
    size_t local = LOCAL_LEAST + (size - LOCAL_LEAST) % OVERFLOW_ROOM;
    return local <= most ? local : LOCAL_LEAST;
}

int sqlite_write_row(struct sqlite_writer *w, int table, const struct sqlite_value *values,
                     size_t count)
{
    struct tree *t = &w->trees[table];
    uint8_t cell[2 * VARINT_MAX + PAGE];
    w->payload.size = 0;
    if (count > SQLITE_COLUMNS_MAX || !add_payload(&w->payload, values, count))
        return count > SQLITE_COLUMNS_MAX ? -E2BIG : -ENOMEM;
    struct str payload = buf_str(&w->payload);
    size_t size = put_varint(cell, payload.size), local = local_size(payload.size);
    if (t->ordered && payload.size > CELL_MAX - VARINT_MAX - CHILD)
        return -E2BIG;
    if (!t->ordered)
        size += put_varint(cell + size, (uint64_t)t->rows + 1);
    memcpy(cell + size, payload.data, local);
    size += local;
    if (local < payload.size) {
        uint32_t first;
        int rc = add_overflow(w, str_slice(payload, local, payload.size), &first);
        if (rc)
            return rc;
        put_u32(cell + size, first);
        size += sizeof first;
    }
    int rc = add_leaf_cell(w, t, cell, size);
    t->rows++;
    return rc;
}

// ---------------------------------------------------------------- the database

struct sqlite_writer *sqlite_write_begin(const struct sqlite_output *o)
{
    struct sqlite_writer *w = calloc(1, sizeof *w);
    if (w) {
        w->out = *o;
        w->out.lock_page = o->lock_page ? o->lock_page : LOCK_PAGE;
        w->pages = 1;
    }
    return w;
}

void sqlite_write_free(struct sqlite_writer *w)
{
    for (size_t i = 0; w && i < w->tree_count; i++)
        for (size_t k = 0; k < w->trees[i].level_count; k++)
            free(w->trees[i].levels[k]);
    if (w)
        buf_free(&w->payload);
    free(w);
}

int sqlite_write_table(struct sqlite_writer *w, const char *name, const char *sql, bool ordered)
{
    if (w->tree_count == SQLITE_TABLES_MAX)
        return -E2BIG;
    w->trees[w->tree_count] = (struct tree){.name = name, .sql = sql, .ordered = ordered};
    return (int)w->tree_count++;
}

int sqlite_write_view(struct sqlite_writer *w, const char *name, const char *sql)
{
    int number = sqlite_write_table(w, name, sql, false);
    if (number >= 0)
        w->trees[number].view = true;
    return number < 0 ? number : 0;
}

// Fills sqlite_master, which has a row for each table: type, name, tbl_name, rootpage, sql.
static int fill_master(struct sqlite_writer *w, struct page *p)
{
    for (size_t i = 0; i < w->tree_count; i++) {
        const struct tree *t = &w->trees[i];
        struct str name = str_of(t->name);
        const struct sqlite_value row[] = {sqlite_text(t->view ? STR("view") : STR("table")),
                                           sqlite_text(name), sqlite_text(name),
                                           sqlite_integer(t->root), sqlite_text(str_of(t->sql))};
        uint8_t cell[2 * VARINT_MAX + PAGE];
        w->payload.size = 0;
        if (!add_payload(&w->payload, row, sizeof row / sizeof *row))
            return -ENOMEM;
        size_t size = put_varint(cell, w->payload.size);
        size += put_varint(cell + size, i + 1);
        if (w->payload.size + size + FILE_HEAD > PAGE ||
            FILE_HEAD + LEAF_HEAD + (i + 1) * POINTER + size + w->payload.size > p->begin)
            return -E2BIG;
        memcpy(cell + size, w->payload.data, w->payload.size);
        add_cell(p, 0, cell, size + w->payload.size);
    }
    return 0;
}

static void fill_head(uint8_t *at, uint32_t pages)
{
    static const uint32_t numbers[][2] = {
        {24, 1},       // change counter
        {40, 1},       // version of the schema (schema cookie)
        {44, 4},       // format of the schema
        {56, 1},       // texts are UTF-8
        {92, 1},       // value of the change counter for which the number of pages is valid
        {96, 3008000}, // the oldest version of SQLite with these features
    };
    memset(at, 0, FILE_HEAD);
    memcpy(at, "SQLite format 3", 16);
    put_u16(at + 16, PAGE);
    at[18] = at[19] = 1; // rollback journal, no WAL
    at[21] = 64;         // payload fractions, fixed by the format
    at[22] = at[23] = 32;
    put_u32(at + 28, pages);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_u32(at + numbers[i][0], numbers[i][1]);
}

int sqlite_write_end(struct sqlite_writer *w)
{
    int rc = 0;
    for (size_t i = 0; i < w->tree_count && !rc; i++)
        if (!w->trees[i].view)
            rc = end_tree(w, &w->trees[i]);
    if (!rc)
        rc = write_gathered(w);
    struct page *p = rc ? NULL : malloc(sizeof *p);
    if (!p)
        return rc ? rc : -ENOMEM;
    clear(p);
    rc = fill_master(w, p);
    if (!rc) {
        // On page 1 the file's head precedes the page's head; the pointers count from the page's
        // begin.
        size_t pointers = p->cells * POINTER;
        close_page(p, 0, false, 0);
        memmove(p->bytes + FILE_HEAD, p->bytes, LEAF_HEAD + pointers);
        fill_head(p->bytes, w->pages);
        rc = w->out.write(w->out.user, 0, (struct str){(const char *)p->bytes, PAGE});
    }
    free(p);
    return rc;
}
