// json_body.h - converts a small JSON body to parameters, so that handlers need not distinguish GET
// and POST.
#ifndef SONDE_HTTP_JSON_BODY_H
#define SONDE_HTTP_JSON_BODY_H

#include "http/request.h"

// Adds the members of a POST's JSON object to the parameters of the address. Texts and whole
// numbers are added unchanged. The list "tags":[{"key":k,"value":v},…] becomes one parameter "tag"
// each, "k=v". Any other list of texts becomes one parameter, "a,b". Other members are ignored.
// Without a body it does nothing. Returns 0, -EINVAL (not a JSON object) or -E2BIG (larger than
// JSON_BODY_MAX, or too many members).
enum { JSON_BODY_MAX = 1 << 20 };
int json_body_take(struct request *r, struct error *e);

// Does the same for the body of /api/query/last. "queries":[{"metric":m,"tags":{k:v}} or
// {"tsuids":[…]}] become parameters "timeseries" ("m{k=v,…}") and "tsuids"; "resolveNames":true
// becomes "resolve", "backScan" becomes "back_scan".
int json_body_take_last(struct request *r, struct error *e);

#endif
