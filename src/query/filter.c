#include "query/filter.h"

#include <errno.h>
#include <stdlib.h>

static bool in_list(const struct query_matcher *m, struct str value);
static bool not_in_list(const struct query_matcher *m, struct str value);
static bool like(const struct query_matcher *m, struct str value);
static bool matches_regexp(const struct query_matcher *m, struct str value);
static bool equals(const struct query_matcher *m, struct str value);
static bool never(const struct query_matcher *m, struct str value);

static const struct {
    const char *name;
    bool (*test)(const struct query_matcher *m, struct str value);
    bool any_case;
} kinds[QUERY_FILTER_COUNT] = {
    [QUERY_LITERAL_OR] = {"literal_or", in_list, false},
    [QUERY_ILITERAL_OR] = {"iliteral_or", in_list, true},
    [QUERY_NOT_LITERAL_OR] = {"not_literal_or", not_in_list, false},
    [QUERY_NOT_ILITERAL_OR] = {"not_iliteral_or", not_in_list, true},
    [QUERY_WILDCARD] = {"wildcard", like, false},
    [QUERY_IWILDCARD] = {"iwildcard", like, true},
    [QUERY_REGEXP] = {"regexp", matches_regexp, false},
    [QUERY_NOT_KEY] = {"not_key", never, false},
    [QUERY_EQUAL_OR_ABSENT] = {"equal_or_absent", equals, false},
};

// ---- tests of a value ----

static char fold_case(char c, bool any_case)
{
    return any_case && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool in_map(const struct query_matcher *m, struct str value)
{
    char text[STORE_VALUE_MAX];
    if (value.size > sizeof text)
        return false; // longer than any stored value
    for (size_t i = 0; i < value.size; i++)
        text[i] = fold_case(value.data[i], kinds[m->filter->kind].any_case);
    return value.size && map_get(&m->list, (struct str){text, value.size});
}

static bool in_list(const struct query_matcher *m, struct str value)
{
    if (m->has_list)
        return in_map(m, value);
    bool any_case = kinds[m->filter->kind].any_case;
    struct str rest = m->filter->text;
    while (rest.data) {
        struct str one = str_cut(&rest, '|');
        if (one.size && (any_case ? str_eq_nocase(one, value) : str_eq(one, value)))
            return true;
    }
    return false;
}

static bool not_in_list(const struct query_matcher *m, struct str value)
{
    return !in_list(m, value);
}

static bool like(const struct query_matcher *m, struct str value)
{
    // After a mismatch behind an asterisk, that asterisk takes one more byte; earlier asterisks
    // keep theirs.
    bool any_case = kinds[m->filter->kind].any_case;
    struct str pattern = m->filter->text;
    size_t p = 0, v = 0, star = SIZE_MAX, star_v = 0;
    while (v < value.size) {
        if (p < pattern.size && pattern.data[p] == '*') {
            star = p++;
            star_v = v;
        } else if (p < pattern.size &&
                   fold_case(pattern.data[p], any_case) == fold_case(value.data[v], any_case)) {
            p++;
            v++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            v = ++star_v;
        } else {
            return false;
        }
    }
    while (p < pattern.size && pattern.data[p] == '*')
        p++;
    return p == pattern.size;
}

static bool matches_regexp(const struct query_matcher *m, struct str value)
{
    char text[STORE_VALUE_MAX + 1]; // regexec needs a terminating NUL
    size_t size = value.size < STORE_VALUE_MAX ? value.size : STORE_VALUE_MAX;
    if (size)
        memcpy(text, value.data, size);
    text[size] = 0;
    return regexec(&m->regex, text, 0, NULL, 0) == 0;
}

static bool equals(const struct query_matcher *m, struct str value)
{
    return str_eq(m->filter->text, value);
}

static bool never(const struct query_matcher *m, struct str value)
{
    (void)m;
    (void)value;
    return false; // this test runs only on series that have the key
}

bool query_matcher_test(const struct query_matcher *m, struct str value)
{
    return kinds[m->filter->kind].test(m, value);
}

// ---- names ----

enum query_filter_kind query_filter_of(struct str name)
{
    unsigned k = 0;
    while (k < QUERY_FILTER_COUNT && !str_eq_nocase(name, str_of(kinds[k].name)))
        k++;
    return (enum query_filter_kind)k;
}

struct str query_filter_name(enum query_filter_kind kind)
{
    return (unsigned)kind < QUERY_FILTER_COUNT ? str_of(kinds[kind].name) : STR("");
}

// ---- what a regular expression costs ----
//
// Patterns come from clients, and the C library is not made for hostile ones. It unrolls them: x{9}
// becomes nine copies of x, x+ becomes xx*. If repeats and alternatives stand inside a repeat, each
// of them doubles the number of paths that it follows. So the checks count atoms after unrolling,
// and the branches inside a repeat. POSIX has no repeat of a repeat (x++).

struct regexp_cost {
    // of the current group: atoms before its last atom, and in its last atom
    uint64_t before, last;
    // repeats and alternatives in the current group, and in its last atom
    unsigned branches, last_branches;
    bool repeated; // the last atom already has its repeat
};

static uint64_t times_at_most(uint64_t atoms, uint64_t factor)
{
    // cannot overflow: the code below bounds both factors
    uint64_t product = atoms * (factor < 1 ? 1 : factor);
    return product > QUERY_REGEXP_NODES_MAX ? QUERY_REGEXP_NODES_MAX + 1 : product;
}

static void add_atom(struct regexp_cost *c, uint64_t atoms)
{
    c->before += c->last;
    if (c->before > QUERY_REGEXP_NODES_MAX)
        c->before = QUERY_REGEXP_NODES_MAX + 1;
    c->last = atoms;
    c->last_branches = 0;
    c->repeated = false;
}

// After a repeat, '?' and '+' mean "lazy" and "possessive" in other languages. They do not change
// whether a text matches, so write_pattern drops them.
static bool drops(char c, bool repeated)
{
    return repeated && (c == '?' || c == '+');
}

// Returns false if the atom already has a repeat or holds too many branches.
static bool add_repeat(struct regexp_cost *c, char repeat, uint64_t factor)
{
    if (c->repeated || (repeat != '?' && c->last_branches > QUERY_REGEXP_BRANCHES_MAX))
        return false;
    c->last = times_at_most(c->last, factor);
    c->repeated = true;
    c->last_branches++;
    c->branches++;
    return true;
}

// Returns the index behind the bracket expression that opens at `i`. "[]x]", "[^]x]" and
// "[[:alpha:]]" contain a ']' that does not close the expression.
static size_t behind_bracket(struct str p, size_t i)
{
    i++;
    i += i < p.size && p.data[i] == '^';
    i += i < p.size && p.data[i] == ']';
    while (i < p.size && p.data[i] != ']') {
        if (p.data[i] == '[' && i + 1 < p.size && strchr(":.=", p.data[i + 1])) {
            char kind = p.data[i + 1];
            for (i += 2; i + 1 < p.size && !(p.data[i] == kind && p.data[i + 1] == ']'); i++)
                ;
            i += 2;
        } else {
            i++;
        }
    }
    return i + 1;
}

// Returns the largest number of the interval that opens at *i, and moves *i to the interval's end.
static uint64_t largest_repeat(struct str p, size_t *i)
{
    uint64_t n = 0, most = 0;
    while (++*i < p.size && p.data[*i] != '}') {
        unsigned digit = (unsigned)(p.data[*i] - '0');
        n = digit <= 9 ? n * 10 + digit : 0;
        n = n > QUERY_REGEXP_NODES_MAX ? QUERY_REGEXP_NODES_MAX + 1 : n;
        most = n > most ? n : most;
    }
    return most;
}

static int check_regexp(struct str p, struct error *e)
{
    if (p.size > QUERY_REGEXP_MAX)
        return error_set(e, -EINVAL, "The regexp of a filter may have %d bytes, not %zu",
                         QUERY_REGEXP_MAX, p.size);
    if (memchr(p.data, 0, p.size))
        return error_set(e, -EINVAL, "The regexp of a filter holds a NUL");
    struct regexp_cost groups[QUERY_REGEXP_MAX + 1] = {{0}};
    size_t depth = 0;
    bool dropped = false;
    for (size_t i = 0; i < p.size; i++) {
        struct regexp_cost *c = &groups[depth];
        if (p.data[i] == '\\' && i + 1 < p.size) {
            i++;
            if (p.data[i] >= '1' && p.data[i] <= '9')
                return error_set(
                    e, -EINVAL,
                    "The regexp of a filter has a back reference; these are not supported");
            add_atom(c, 1);
        } else if (p.data[i] == '[') {
            i = behind_bracket(p, i) - 1;
            add_atom(c, 1);
        } else if (p.data[i] == '(') {
            groups[++depth] = (struct regexp_cost){0};
        } else if (p.data[i] == ')' && depth > 0) {
            struct regexp_cost *around = &groups[--depth];
            add_atom(around, c->before + c->last + 1);
            around->last_branches = c->branches;
            around->branches += c->branches;
        } else if (strchr("*+?{", p.data[i])) {
            char repeat = p.data[i];
            if (drops(repeat, c->repeated) && !dropped) {
                dropped = true;
                continue;
            }
            uint64_t factor = repeat == '{' ? largest_repeat(p, &i) : repeat == '+' ? 2 : 1;
            if (!add_repeat(c, repeat, factor))
                return error_set(
                    e, -EINVAL,
                    "The regexp of a filter repeats a repeat, or more than %d of them at once",
                    QUERY_REGEXP_BRANCHES_MAX);
        } else {
            c->branches += p.data[i] == '|';
            add_atom(c, 1);
        }
        dropped = false;
    }
    uint64_t atoms = 0;
    for (size_t d = 0; d <= depth; d++)
        atoms += groups[d].before + groups[d].last;
    if (atoms > QUERY_REGEXP_NODES_MAX)
        return error_set(
            e, -EINVAL,
            "The regexp of a filter comes to more than %d atoms when its repeats are unrolled",
            QUERY_REGEXP_NODES_MAX);
    return 0;
}

// ---- checks ----

int query_filter_check(const struct query_filter *f, struct error *e)
{
    if ((unsigned)f->kind >= QUERY_FILTER_COUNT)
        return error_set(e, -EINVAL, "Unknown kind of filter");
    struct str name = query_filter_name(f->kind);
    if (f->key.size == 0)
        return error_set(e, -EINVAL, "Missing tag key of a %.*s filter", STR_ARG(name));
    if (f->key.size > STORE_KEY_MAX)
        return error_set(e, -EINVAL, "The tag key of a filter may have %d bytes, not %zu",
                         STORE_KEY_MAX, f->key.size);
    if (f->text.size > QUERY_FILTER_TEXT_MAX)
        return error_set(e, -EINVAL, "A filter may have %d bytes, not %zu", QUERY_FILTER_TEXT_MAX,
                         f->text.size);
    if (f->kind == QUERY_NOT_KEY)
        return f->text.size == 0 ? 0
                                 : error_set(e, -EINVAL, "The filter of a not_key must be empty");
    if (f->text.size == 0)
        return error_set(e, -EINVAL, "The %.*s filter of '%.*s' is empty", STR_ARG(name),
                         STR_ARG(f->key));
    if (kinds[f->kind].test == like && str_find_char(f->text, '*') < 0)
        return error_set(e, -EINVAL, "A %.*s filter must contain an asterisk: '%.*s'",
                         STR_ARG(name), STR_ARG(str_slice(f->text, 0, 200)));
    return f->kind == QUERY_REGEXP ? check_regexp(f->text, e) : 0;
}

int query_filter_old_style(struct str key, struct str text, bool group_by, struct query_filter *out,
                           struct error *e)
{
    *out = (struct query_filter){
        .kind = QUERY_LITERAL_OR, .key = key, .text = text, .group_by = group_by};
    ptrdiff_t open = str_find_char(text, '(');
    if (open >= 0 && str_ends(text, STR(")"))) {
        struct str name = str_slice(text, 0, (size_t)open);
        out->kind = query_filter_of(name);
        out->text = str_slice(text, (size_t)open + 1, text.size - 1);
        if (out->kind == QUERY_FILTER_COUNT)
            return error_set(e, -EINVAL, "No such filter: '%.*s' (see /api/config/filters)",
                             STR_ARG(str_slice(name, 0, 100)));
    } else if (str_eq(text, STR("*"))) {
        out->kind = QUERY_WILDCARD;
    } else if (str_find_char(text, '*') >= 0) {
        out->kind = QUERY_IWILDCARD;
    }
    return query_filter_check(out, e);
}

// ---- regular expressions ----

// POSIX extended regular expressions lack \d and lazy or possessive repeats, but users write them.
static void write_pattern(char *out, struct str p)
{
    bool repeated = false;
    for (size_t i = 0; i < p.size; i++) {
        char c = p.data[i];
        if (drops(c, repeated)) {
            repeated = false;
            continue;
        }
        repeated = strchr("*+?}", c) != NULL;
        size_t end = i + 1;
        if (c == '\\' && end < p.size) {
            const char *set = p.data[end] == 'd' ? "[0-9]" : p.data[end] == 'D' ? "[^0-9]" : NULL;
            end++;
            if (set) {
                out = stpcpy(out, set);
                i++;
                continue;
            }
        } else if (c == '[') {
            end = behind_bracket(p, i);
        }
        end = end < p.size ? end : p.size;
        memcpy(out, p.data + i, end - i);
        out += end - i;
        i = end - 1;
    }
    *out = 0;
}

static bool is_list(const struct query_filter *f)
{
    return kinds[f->kind].test == in_list || kinds[f->kind].test == not_in_list;
}

// Puts the names of a long list into a map, because the list is tested against many values.
static int make_list(struct query_matcher *m, struct error *e)
{
    struct str rest = m->filter->text;
    bool any_case = kinds[m->filter->kind].any_case;
    m->has_list = true;
    if (any_case) {
        m->folded = malloc(rest.size);
        for (size_t i = 0; m->folded && i < rest.size; i++)
            m->folded[i] = fold_case(rest.data[i], true);
        rest.data = m->folded;
    }
    bool fits = !any_case || m->folded;
    while (fits && rest.data) {
        struct str one = str_cut(&rest, '|');
        fits = one.size == 0 || map_add(&m->list, one, NULL);
    }
    if (fits)
        return 0;
    query_matcher_fini(m);
    return error_set(e, -ENOMEM, "no memory for a filter");
}

int query_matcher_init(struct query_matcher *m, const struct query_filter *f, struct error *e)
{
    *m = (struct query_matcher){.filter = f};
    int r = query_filter_check(f, e);
    if (r)
        return r;
    if (is_list(f) && f->text.size >= QUERY_FILTER_LONG)
        return make_list(m, e);
    if (f->kind != QUERY_REGEXP)
        return 0;
    char pattern[QUERY_REGEXP_MAX * 3 + 1]; // "\D" grows to "[^0-9]"
    write_pattern(pattern, f->text);
    int fault = regcomp(&m->regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (fault == 0) {
        m->has_regex = true;
        return 0;
    }
    char why[100];
    regerror(fault, &m->regex, why, sizeof why);
    return error_set(e, -EINVAL, "The regexp '%.*s' is not valid: %s",
                     STR_ARG(str_slice(f->text, 0, 200)), why);
}

void query_matcher_fini(struct query_matcher *m)
{
    if (m->has_regex)
        regfree(&m->regex);
    map_free(&m->list);
    free(m->folded);
    m->folded = NULL;
    m->has_regex = m->has_list = false;
}
