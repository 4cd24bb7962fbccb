// request.c - requests the blocks of a range from the disk before the first one is read.
#include "store/cursor.h"

static void request_block(struct store_request *q, struct store_reader *r, struct block_ref *b,
                          const struct time_range *range)
{
    const struct block_header *h = &b->header;
    bool data = (uint64_t)range->last_ns - (uint64_t)range->first_ns >= (uint64_t)q->bucket_ns;
    unsigned state = __atomic_load_n(&b->state, __ATOMIC_RELAXED);
    if (state & (data ? BLOCK_DATA_INTACT : BLOCK_HEAD_INTACT) || b->stripe_count)
        return;
    size_t size = data ? h->size : sizeof *h + h->directory_bytes;
    q->bytes_left -= size < q->bytes_left ? size : q->bytes_left;
    prefetch_bytes(&r->prefetch, r->fd, b->offset, size);
}

static void request_blocks(struct store_request *q, struct store_reader *r,
                           const struct block_list *l)
{
    if (!l->count || l->blocks == q->last)
        return;
    q->last = l->blocks;
    for (size_t i = l->ordered ? block_list_from(l, q->from_ns) : 0; i < l->count && q->bytes_left;
         i++)
        if (l->ranges[i].first_ns <= q->to_ns && l->ranges[i].last_ns >= q->from_ns)
            request_block(q, r, l->blocks[i], &l->ranges[i]);
        else if (l->ordered)
            break;
}

bool store_request_series(struct store_request *q, struct store_snapshot *s, uint32_t series)
{
    struct store_reader *r = s->reader;
    const struct view *v = s->view;
    if (series >= s->series_count)
        return q->bytes_left;
    pthread_mutex_lock(&r->mutex);
    const struct membership *m = r->index.memberships[series];
    pthread_mutex_unlock(&r->mutex);
    for (; m; m = m->next)
        if (m->set < v->set_count)
            request_blocks(q, r, &v->sets[m->set]);
    request_blocks(q, r, &v->points);
    return q->bytes_left;
}
