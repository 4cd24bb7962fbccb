#include "query/labels.h"

int query_labels_compare(const struct store_label *a, size_t a_count, const struct store_label *b,
                         size_t b_count)
{
    for (size_t i = 0; i < a_count && i < b_count; i++) {
        int order = str_compare(a[i].key, b[i].key);
        if (order == 0)
            order = str_compare(a[i].value, b[i].value);
        if (order)
            return order;
    }
    return (a_count > b_count) - (a_count < b_count);
}

const struct str *query_labels_get(const struct store_series_info *s, struct str key)
{
    for (size_t i = 0; i < s->label_count; i++)
        if (str_eq(s->labels[i].key, key))
            return &s->labels[i].value;
    return NULL;
}

bool query_labels_lack(const struct store_series_info *s, const struct store_label *more)
{
    return more && more->key.size && !query_labels_get(s, more->key);
}

void query_labels_add(struct store_series_info *s, const struct store_label *more,
                      struct store_label *room)
{
    size_t at = 0;
    while (at < s->label_count && str_compare(s->labels[at].key, more->key) < 0)
        at++;
    for (size_t i = 0; i <= s->label_count; i++)
        room[i] = i < at ? s->labels[i] : i == at ? *more : s->labels[i - 1];
    s->labels = room;
    s->label_count++;
}

bool query_labels_carry(const struct store_series_info *s, const struct store_label *tags,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct str *value = query_labels_get(s, tags[i].key);
        if (!value || (!str_eq(tags[i].value, STR("*")) && !str_eq(*value, tags[i].value)))
            return false;
    }
    return true;
}

bool query_labels_narrow(const struct store_snapshot *store, const struct store_label *tags,
                         size_t count, const struct store_label *more, size_t among,
                         const uint32_t **ids, size_t *id_count)
{
    bool found = false;
    size_t most = among / QUERY_INDEX_GAIN;
    for (size_t i = 0; i < count; i++) {
        if (str_eq(tags[i].value, STR("*")) || (more && str_eq(more->key, tags[i].key)))
            continue;
        size_t n;
        const uint32_t *list = store_label_series(store, tags[i].key, tags[i].value, &n);
        if (n > most)
            continue;
        found = true;
        most = n;
        *ids = list;
        *id_count = n;
    }
    return found;
}
