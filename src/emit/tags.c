// tags.c - the rules for valid tags (the same as the store's), and the tags that all data of this
// process get.
#include "emit/tags.h"

#include "emit/process.h"
#include "emit/rank.h"

#include <stdlib.h>

struct str emit_cut(struct str s, size_t bytes)
{
    if (s.size <= bytes)
        return s;
    while (bytes > 0 && ((unsigned char)s.data[bytes] & 0xc0) == 0x80)
        bytes--;
    return str_slice(s, 0, bytes);
}

unsigned emit_tags_of_process(struct sonde_tag tags[SEGMENT_TAGS_MAX], struct emit_tag_store *store,
                              unsigned *refused)
{
    unsigned count = 0;
    bool has_rank = false;
    const char *given = secure_getenv("SONDE_TAGS");
    size_t size = given ? strlen(given) : 0;
    if (size >= sizeof store->text) {
        emit_say("SONDE_TAGS is longer than %zu bytes and is not used", sizeof store->text - 1);
        (*refused)++;
        size = 0;
    }
    if (given)
        memcpy(store->text, given, size);
    store->text[size] = 0;
    for (char *at = store->text, *next; *at; at = next) {
        next = strchrnul(at, ',');
        if (*next)
            *next++ = 0;
        char *equals = strchr(at, '=');
        if (!equals && !*at)
            continue;
        if (equals)
            *equals = 0;
        struct sonde_tag tag = {at, equals ? equals + 1 : NULL};
        bool good = emit_tag_valid(&tag) && *tag.value && count < SEGMENT_TAGS_MAX - 2;
        for (unsigned i = 0; good && i < count; i++)
            good = strcmp(tags[i].key, tag.key) != 0;
        if (!good) {
            emit_say("the tag \"%.60s\" in SONDE_TAGS is not used: write key=value,key=value, each "
                     "key once, at most %d",
                     at, SEGMENT_TAGS_MAX - 2);
            (*refused)++;
            continue;
        }
        has_rank = has_rank || strcmp(tag.key, "rank") == 0;
        tags[count++] = tag;
    }
    const char *rank = emit_rank();
    if (rank && !has_rank)
        tags[count++] = (struct sonde_tag){"rank", rank};
    return count;
}
