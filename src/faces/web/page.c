#include "faces/web/page.h"

#include <stdlib.h>
#include <zlib.h>

// The browser accepts scripts and styles only from files of this server. The page loads nothing
// else, and connects only to this server.
#define POLICY_PAGE                                                                               \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " \
    "'self'; "                                                                                    \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct page_file *find_file(const struct page_file *files, size_t count,
                                         struct str path)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(files[i].path, path))
            return &files[i];
    return NULL;
}

static bool unpack(const struct page_file *file, struct buf *out)
{
    enum { WINDOW_GZIP = 15 + 16 };
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)file->gzip.data,
                  .avail_in = (unsigned)file->gzip.size};
    if (file->size_bytes > PAGE_FILE_MAX || !buf_reserve(out, file->size_bytes) ||
        inflateInit2(&z, WINDOW_GZIP) != Z_OK)
        return false;
    z.next_out = (unsigned char *)out->data;
    z.avail_out = (unsigned)file->size_bytes;
    bool whole = inflate(&z, Z_FINISH) == Z_STREAM_END;
    out->size = file->size_bytes - z.avail_out;
    inflateEnd(&z);
    return whole && out->size == file->size_bytes;
}

// Whether the header, a list of tags or "*", has this hash. A W/ prefix makes no difference for
// GET.
static bool has_tag(struct str header, struct str hash)
{
    while (header.data) {
        struct str tag = str_trim(str_cut(&header, ','));
        if (str_starts(tag, STR("W/")))
            tag = str_slice(tag, 2, tag.size);
        if (str_eq(tag, STR("*")) || (tag.size == hash.size + 2 && tag.data[0] == '"' &&
                                      str_eq(str_slice(tag, 1, tag.size - 1), hash)))
            return true;
    }
    return false;
}

void page_answer(const struct page_file *files, size_t count, struct request *r, struct answer *a)
{
    const struct page_file *file = find_file(files, count, r->path);
    if (!file) {
        answer_error(a, 501, "this sonde was built without the page",
                     "The start page says how to build it.");
        return;
    }
    struct str version;
    bool named = request_parameter(r, "v", &version) && str_eq(version, file->hash);
    a->cache = named ? "private, max-age=31536000, immutable" : "private, no-cache";
    a->policy = POLICY_PAGE;
    answer_header(a, "ETag", arena_printf(&r->arena, "\"%.*s\"", STR_ARG(file->hash)));
    static char vary[] = "Accept-Encoding", gzip[] = "gzip";
    answer_header(a, "Vary", vary);
    if (has_tag(r->headers[HEADER_IF_NONE_MATCH], file->hash)) {
        a->status = 304;
        a->content_type = NULL;
        return;
    }
    a->content_type = file->content_type;
    if (request_accepts(r->headers[HEADER_ACCEPT_ENCODING], STR("gzip"), true)) {
        answer_header(a, "Content-Encoding", gzip);
        buf_add_str(&a->body, file->gzip);
    } else if (!unpack(file, &a->body)) {
        answer_error(a, 500, "no memory for the page", NULL);
    }
}

void page_message(struct answer *a, const char *title, const char *text, const char *details)
{
    a->content_type = "text/html; charset=UTF-8";
    a->body.size = 0;
    buf_add_str(
        &a->body,
        STR("<!doctype html><html lang=\"en\"><meta name=\"viewport\" "
            "content=\"width=device-width\">"
            "<meta name=\"color-scheme\" content=\"light dark\"><title>sonde</title><main><h1>"));
    answer_add_html(&a->body, title);
    buf_add_str(&a->body, STR("</h1><p>"));
    answer_add_html(&a->body, text);
    if (details) {
        buf_add_str(&a->body, STR("</p><p>"));
        answer_add_html(&a->body, details);
    }
    buf_add_str(&a->body, STR("</p></main></html>\n"));
}

void page_for_people(const struct request *r, struct answer *a)
{
    struct str accept = r->headers[HEADER_ACCEPT];
    if (a->status != 401 || r->method != METHOD_GET ||
        !request_accepts(accept, STR("text/html"), false))
        return;
    page_message(a, "This address needs its token",
                 "Open the address that sonde run printed, with ?token= at its end; sonde status "
                 "prints it again. A "
                 "session in a browser ends with its job, or after a day without a visit.",
                 "After the job, sonde open shows its recording.");
}

void page_show(struct service *service, struct request *r, struct answer *a)
{
    (void)service;
    if (page_file_count || !str_eq(r->path, STR("/"))) {
        page_answer(page_files, page_file_count, r, a);
        return;
    }
    page_message(a, "sonde",
                 "This sonde was built without the page, as node or npm was missing. Install "
                 "nodejs (18 or newer) and "
                 "npm, and run make again.",
                 "The data are here all the same: sonde query, Grafana's OpenTSDB data source at "
                 "this address, or the "
                 "routes that /sonde/v1/openapi.json lists.");
}
