// named_answers.h - a question to all nodes whose answers are the nodes' names.
#ifndef SONDE_TEST_WIRE_NAMED_ANSWERS_H
#define SONDE_TEST_WIRE_NAMED_ANSWERS_H

#include "proxy.h"
#include "unit/wire/net.h"
#include "wire/tree.h"

struct asked_names {
    size_t records;
    const struct wire_missing *missing;
    size_t missing_count;
    struct arena arena;
    int code;
};

// Asks a question that every node answers with one record, because it does not know the metric.
struct asked_names ask_with(struct hub *h, int64_t patience_ns, const struct str *hosts,
                            size_t host_count, const atomic_bool *cancel);

size_t answers(struct hub *h);

void expect_missing(const struct asked_names *a, size_t i, const char *host,
                    enum wire_reason reason);

#endif
