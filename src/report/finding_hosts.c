#include "report/finding_hosts.h"

#include "base/search.h"
#include "report/findings.h"

void finding_hosts_add(struct report *r, struct finding_hosts *h, struct str host)
{
    size_t at;
    SEARCH_FIRST(at, h->count, str_compare_natural(h->all[at], host) >= 0);
    if ((at < h->count && str_eq(h->all[at], host)) ||
        !arena_room(r->arena, &h->all, &h->capacity, h->count, h->count + 1, sizeof *h->all))
        return;
    memmove(h->all + at + 1, h->all + at, (h->count - at) * sizeof *h->all);
    h->all[at] = host;
    h->count++;
}

static struct str join(struct report *r, const struct finding_hosts *h, const char *separator)
{
    struct buf b = {0};
    for (size_t i = 0; i < h->count; i++)
        buf_printf(&b, "%s%.*s", i ? separator : "", STR_ARG(h->all[i]));
    struct str text = finding_text(r, "%.*s", STR_ARG(buf_str(&b)));
    buf_free(&b);
    return text;
}

struct str finding_names(struct report *r, const struct finding_hosts *h)
{
    struct buf b = {0};
    size_t named = h->count > HOSTS_NAMED_MAX ? HOSTS_NAMED_MAX : h->count;
    for (size_t i = 0; i < named; i++)
        buf_printf(&b, "%s%.*s",
                   i == 0              ? ""
                   : i + 1 == h->count ? " and "
                                       : ", ",
                   STR_ARG(h->all[i]));
    if (named < h->count)
        buf_printf(&b, " and %zu more", h->count - named);
    struct str text = finding_text(r, "%.*s", STR_ARG(buf_str(&b)));
    buf_free(&b);
    return text;
}

struct str finding_hosts_names(struct report *r, const struct finding_hosts *h)
{
    return h->count == r->node_count && h->count > HOSTS_NAMED_MAX
               ? finding_text(r, "all %zu nodes", h->count)
               : finding_names(r, h);
}

struct str finding_hosts_on(struct report *r, const struct finding_hosts *h)
{
    if (r->node_count < 2)
        return (struct str){0};
    return finding_text(r, " on %.*s", STR_ARG(finding_hosts_names(r, h)));
}

struct str finding_hosts_list(struct report *r, const struct finding_hosts *h)
{
    return join(r, h, ",");
}

struct str finding_hosts_filter(struct report *r, const struct finding_hosts *h, struct str more)
{
    if (h->count && h->count <= HOSTS_FILTERED_MAX)
        return finding_text(r, "{host=%.*s%s%.*s}", STR_ARG(join(r, h, "|")), more.size ? "," : "",
                            STR_ARG(more));
    return more.size ? finding_text(r, "{%.*s}", STR_ARG(more)) : (struct str){0};
}
