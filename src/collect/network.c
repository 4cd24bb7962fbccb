// network.c - /proc/net/dev: bytes, packets, errors and drops of each interface, both directions.
//
//   Inter-|   Receive                                      |  Transmit
//    face |bytes    packets errs … compressed multicast|bytes    packets errs drop …
//     eth0: 132523858    2756    0 …          0         0   135489    1671    0    0 …
//
// Columns are found by their names in the second line. An interface without any traffic so far (for
// example an inactive one) is left out. Interfaces of containers come and go; their series are
// removed some samples later.
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 32 };

static const struct {
    struct str name;
    enum metric_symbol receive, transmit;
} columns[] = {
    {{"bytes", 5}, METRIC_NETWORK_RECEIVE_BYTES, METRIC_NETWORK_TRANSMIT_BYTES},
    {{"packets", 7}, METRIC_NETWORK_RECEIVE_PACKETS, METRIC_NETWORK_TRANSMIT_PACKETS},
    {{"errs", 4}, METRIC_NETWORK_RECEIVE_ERRORS, METRIC_NETWORK_TRANSMIT_ERRORS},
    {{"drop", 4}, METRIC_NETWORK_RECEIVE_DROPS, METRIC_NETWORK_TRANSMIT_DROPS},
};

enum { WANTED = sizeof columns / sizeof *columns };

struct network {
    struct procfile file;
    // for each number after the name; METRIC_COUNT = unused
    enum metric_symbol rows[COLUMNS_MAX];
    size_t row_count;
};

static void read_titles(struct network *n, struct str line)
{
    n->row_count = 0;
    str_cut(&line, '|');
    for (int direction = 0; line.data && direction < 2; direction++) {
        struct str part = str_cut(&line, '|');
        for (struct str title = str_word(&part); title.size && n->row_count < COLUMNS_MAX;
             title = str_word(&part)) {
            enum metric_symbol row = METRIC_COUNT;
            for (int i = 0; i < WANTED; i++)
                if (str_eq(title, columns[i].name))
                    row = direction == 0 ? columns[i].receive : columns[i].transmit;
            n->rows[n->row_count++] = row;
        }
    }
}

static bool put_interface(struct source *s, double *values, struct str line, ptrdiff_t colon)
{
    struct network *n = s->state;
    uint64_t numbers[COLUMNS_MAX], any = 0;
    struct str name = str_trim(str_slice(line, 0, (size_t)colon)),
               rest = str_slice(line, (size_t)colon + 1, line.size);
    size_t count = 0;
    while (count < n->row_count && scan_u64(&rest, &numbers[count]))
        any |= numbers[count++];
    ptrdiff_t instance = any ? source_instance(s, name, STR("")) : source_find(s, name, STR(""));
    if (instance < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (n->rows[i] != METRIC_COUNT)
            source_put_at(s, values, instance, n->rows[i], (double)numbers[i]);
    return true;
}

static int network_sample(struct source *s, double *values)
{
    struct network *n = s->state;
    struct str text, line;
    int failed = procfile_read(&n->file, s, &text);
    if (failed)
        return failed;
    size_t interfaces = 0;
    n->row_count = 0;
    while (scan_line(&text, &line)) {
        ptrdiff_t colon = n->row_count ? str_find_char(line, ':') : -1;
        if (colon > 0)
            interfaces += put_interface(s, values, line, colon);
        else if (str_find_char(line, '|') > 0)
            read_titles(n, line); // the second of the two lines with titles is used
    }
    if (n->row_count == 0)
        return source_fail(s, -EBADMSG, "/proc/net/dev does not hold titles of columns");
    source_put(s, values, METRIC_NETWORK_INTERFACES, (double)interfaces);
    source_forget_unseen(s);
    return 0;
}

static int network_open(struct source *s)
{
    struct network *n = calloc(1, sizeof *n);
    if (!n)
        return source_fail(s, -ENOMEM, "no memory");
    // "net" is a link to "self/net": the network namespace of this process.
    int failed = procfile_open(&n->file, s, "/proc/net/dev");
    if (failed) {
        free(n);
        return failed;
    }
    s->state = n;
    double unused[METRIC_COUNT];
    network_sample(s, unused);
    return 0;
}

static void network_close(struct source *s)
{
    struct network *n = s->state;
    procfile_close(&n->file);
    free(n);
}

const struct source_kind source_network = {
    .name = {"network", 7},
    .open = network_open,
    .sample = network_sample,
    .close = network_close,
    .keys = {"interface"},
    .tagged_from = METRIC_NETWORK_RECEIVE_BYTES,
    .tagged_to = METRIC_NETWORK_TRANSMIT_DROPS,
};
