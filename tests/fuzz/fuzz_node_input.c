// Parses the launcher's orders to a node. The result has a limited size and is the same wherever
// the bytes are divided, and every error has a message.
#include "launch/node_input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
    struct node_input input;
    struct error e;
    int status;
    size_t news, bytes;
};

static void on_news(void *user, enum node_input_news news, struct str value)
{
    struct heard *h = user;
    if (memchr(value.data, '\n', value.size) || value.size > NODE_INPUT_LINE_MAX)
        abort();
    h->news = h->news * 7 + (size_t)news + 1;
    h->bytes += value.size;
}

static void hear(struct heard *h, struct str all, size_t piece)
{
    *h = (struct heard){0};
    node_input_init(&h->input);
    for (size_t at = 0; at < all.size && h->status == 0; at += piece)
        h->status = node_input_take(&h->input, str_slice(all, at, at + piece), on_news, h, &h->e);
    if (h->status != 0 && !h->e.text[0])
        abort();
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct heard whole, cut; // static, because they are large
    if (size < 1)
        return 0;
    struct str all = {(const char *)data + 1, size - 1};
    hear(&whole, all, all.size + 1);
    hear(&cut, all, 1 + data[0] % 64);
    const struct node_input *a = &whole.input, *b = &cut.input;
    if (whole.status != cut.status || whole.news != cut.news || whole.bytes != cut.bytes ||
        a->whole != b->whole || !same_text(a->command, b->command) ||
        !same_text(a->hosts, b->hosts) || !same_text(a->children, b->children) ||
        !same_text(a->folder, b->folder) || !same_text(a->parents, b->parents) ||
        a->argument_count != b->argument_count || a->beat_ms != b->beat_ms)
        abort();
    if (a->argument_count > NODE_INPUT_ARGUMENTS_MAX || a->beat_ms <= 0 || a->orphan_ms <= 0 ||
        a->stop_ms <= 0 || strlen(a->folder) >= sizeof a->folder ||
        strlen(a->parents) >= sizeof a->parents)
        abort();
    node_input_free(&whole.input);
    node_input_free(&cut.input);
    return 0;
}
