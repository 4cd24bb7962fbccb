// The answers of http.h, which do not depend on the library that receives them.
#include "client/http.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

// Makes the message from {"error":{"message":…}}, or from the first line of the response.
int http_refused(const struct http_answer *a, const char *who, struct error *e)
{
    static const struct {
        int status, code;
    } codes[] = {{400, -EINVAL}, {401, -EACCES}, {403, -EACCES}, {404, -ENOENT},
                 {408, -ETIME},  {413, -EFBIG},  {503, -EBUSY}};
    int code = -EPROTO;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].status == a->status)
            code = codes[i].code;
    json_t *root = json_loadb(a->body.data ? a->body.data : "", a->body.size, 0, NULL);
    const char *message =
        json_string_value(json_object_get(json_object_get(root, "error"), "message"));
    struct str words = message ? str_of(message) : buf_str(&a->body);
    words = str_trim(str_cut(&words, '\n'));
    const char *what = a->status == 401 ? " (the job's token is missing or wrong)" : "";
    if (words.size == 0 || (!message && *words.data == '<'))
        error_set(e, code, "%s answers with status %d%s", who, a->status, what);
    else
        error_set(e, code, "%.*s%s", STR_ARG(words), what);
    json_decref(root);
    return code;
}

void http_answer_free(struct http_answer *a)
{
    buf_free(&a->body);
    free(a->missing);
    *a = (struct http_answer){0};
}
