// shim.h - calls of sonde.h with a name and tags in one block: NAME\0KEY\0VALUE\0KEY\0VALUE\0…, so
// that a call from Go passes one pointer.
#ifndef SONDE_GO_SHIM_H
#define SONDE_GO_SHIM_H

#include <sonde.h>

// sonde accepts 16 tags and counts any further one as refused; the 17th is passed on so that it is
// counted.
enum { SHIM_TAGS_MAX = 17 };

static inline const char *shim_after(const char *text)
{
    return text + strlen(text) + 1;
}

static inline const struct sonde_tag *shim_tags(const char *text, size_t count,
                                                struct sonde_tag out[SHIM_TAGS_MAX])
{
    for (size_t i = 0; i < count; i++) {
        out[i].key = text = shim_after(text);
        out[i].value = text = shim_after(text);
    }
    return out;
}

// `details` is UNIT\0HELP\0.
static inline sonde_handle shim_define(const char *text, size_t count, const char *details,
                                       int kind, int level)
{
    struct sonde_tag tags[SHIM_TAGS_MAX];
    struct sonde_metric metric = {.name = text,
                                  .unit = details,
                                  .help = shim_after(details),
                                  .kind = (enum sonde_kind)kind,
                                  .level = level,
                                  .tags = shim_tags(text, count, tags),
                                  .tag_count = count};
    return sonde_define(&metric);
}

// A parent whose id is 0 means none.
static inline struct sonde_span shim_span_open(const char *text, size_t count,
                                               struct sonde_span parent)
{
    struct sonde_tag tags[SHIM_TAGS_MAX];
    return sonde_span_open(text, shim_tags(text, count, tags), count, parent.id ? &parent : NULL);
}

static inline void shim_span_close(struct sonde_span span, const char *text, size_t count)
{
    struct sonde_tag tags[SHIM_TAGS_MAX];
    sonde_span_close(&span, text, shim_tags(text, count, tags), count);
}

static inline void shim_span_at(const char *text, size_t count, int64_t start_ns, int64_t end_ns)
{
    struct sonde_tag tags[SHIM_TAGS_MAX];
    sonde_span_at(text, start_ns, end_ns, shim_tags(text, count, tags), count);
}

static inline void shim_annotate(const char *text, size_t count)
{
    struct sonde_tag tags[SHIM_TAGS_MAX];
    sonde_annotate_tags(text, shim_tags(text, count, tags), count);
}

static inline void shim_config(const char *text, size_t count)
{
    struct sonde_tag tags[SHIM_TAGS_MAX];
    sonde_config_tags(shim_tags(text, count, tags), count);
}

#endif
