// page.h - the page that a browser shows: its files, which are part of the program.
//
// web/embed.py makes page_files of the sources in web/. The array is empty if the build had no node
// or no npm packages; then `/` says how to get the page. The files are gzipped at build time, and
// unpacked only for clients that do not take gzip.
//
//   GET /            no-cache, ETag: asked for again at each visit, answered with 304
//   GET /page.js?v=  a year, immutable: the page names its parts with the hash of their contents
#ifndef SONDE_FACES_WEB_PAGE_H
#define SONDE_FACES_WEB_PAGE_H

#include "http/request.h"
#include "http/respond.h"

struct page_file {
    struct str path;          // of the route: "/", "/page.js", …
    const char *content_type; // with charset
    struct str hash;          // of the contents, as `v` names it: hexadecimal digits
    struct str gzip;          // the contents, compressed
    size_t size_bytes;        // of the contents
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

enum { PAGE_FILE_MAX = 4 << 20 }; // bytes of a file that is unpacked

// Answers with the file of r->path among `files`; 501 if there is none.
void page_answer(const struct page_file *files, size_t count, struct request *r, struct answer *a);

// A text for people, as HTML: what a browser shows if the page is not built, or no session is open.
// `details` may be NULL; both texts are escaped.
void page_message(struct answer *a, const char *title, const char *text, const char *details);

// Turns the error in *a into a page_message if a person opened the address in a browser.
void page_for_people(const struct request *r, struct answer *a);

// The handler of its routes.
struct service;
void page_show(struct service *service, struct request *r, struct answer *a);

#endif
