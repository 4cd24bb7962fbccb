// Parses SONDE_TAGS and a launcher's rank, which follows the first newline of the input. The tags
// are valid and within the limits, no key repeats, and left-out tags are counted.
#include "emit/tags.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned pieces(const char *text)
{
    struct str rest = str_of(text);
    unsigned n = 0;
    while (rest.data)
        n += str_cut(&rest, ',').size > 0;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sonde_tag tags[SEGMENT_TAGS_MAX];
    static struct emit_tag_store store;
    unsigned refused = 0, ranks = 0;
    char *text = strndup((const char *)data, size), *rank = strchr(text, '\n');
    uint64_t number;
    if (rank)
        *rank++ = 0;
    setenv("SONDE_TAGS", text, 1);
    setenv("PMIX_RANK", rank ? rank : "", 1);
    unsigned count = emit_tags_of_process(tags, &store, &refused);
    if (count >= SEGMENT_TAGS_MAX)
        abort();
    for (unsigned i = 0; i < count; i++) {
        if (!emit_tag_valid(&tags[i]) || !*tags[i].value)
            abort();
        for (unsigned k = 0; k < i; k++)
            if (strcmp(tags[i].key, tags[k].key) == 0)
                abort();
        ranks += strcmp(tags[i].key, "rank") == 0;
    }
    bool numbered = rank && strlen(rank) <= 20 && str_to_u64(str_of(rank), &number),
         too_long = strlen(text) >= EMIT_TAG_TEXT_MAX;
    if (numbered && !ranks)
        abort();
    // The tag of the launcher's rank is not a part of the text.
    unsigned given = too_long ? 1 : pieces(text);
    if (count + refused != given && count + refused != given + numbered)
        abort();
    free(text);
    return 0;
}
