// json_body.h - turns a small JSON body into parameters, so that handlers need not distinguish GET
// and POST.
#ifndef SONDE_HTTP_JSON_BODY_H
#define SONDE_HTTP_JSON_BODY_H

#include "http/request.h"

// Adds the members of a POST's JSON object to the parameters of the address: texts and whole
// numbers unchanged, the list "tags":[{"key":k,"value":v},…] as one parameter "tag" each, "k=v",
// other lists of texts as one, "a,b". Ignores the rest. Does nothing without a body. -EINVAL: not a
// JSON object. -E2BIG: larger than JSON_BODY_MAX, or too many members.
enum { JSON_BODY_MAX = 1 << 20 };
int json_body_take(struct request *r, struct error *e);

// The same for the body of /api/query/last: "queries":[{"metric":m,"tags":{k:v}} or {"tsuids":[…]}]
// become parameters "timeseries" ("m{k=v,…}") and "tsuids"; "resolveNames":true becomes "resolve",
// "backScan" "back_scan".
int json_body_take_last(struct request *r, struct error *e);

#endif
