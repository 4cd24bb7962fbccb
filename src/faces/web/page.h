// page.h - the files of the web page, which are part of the program.
//
// web/embed.py makes page_files from the sources in web/. If the build had no node or no npm
// packages, the array is empty, and `/` says how to get the page. The files are gzipped at build
// time, and unpacked only for clients that do not take gzip.
//
//   GET /            no-cache, ETag: the browser revalidates it at each visit, and gets a 304
//   GET /page.js?v=  a year, immutable: the links in the page contain the hash of the contents
#ifndef SONDE_FACES_WEB_PAGE_H
#define SONDE_FACES_WEB_PAGE_H

#include "http/request.h"
#include "http/respond.h"

struct page_file {
    struct str path;          // of the route: "/", "/page.js", …
    const char *content_type; // with charset
    struct str hash;          // of the contents, in hexadecimal digits, as in `v`
    struct str gzip;          // the contents, gzipped
    size_t size_bytes;        // of the contents
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

enum { PAGE_FILE_MAX = 4 << 20 }; // bytes of the largest file, unpacked

// Answers with the file whose path is r->path; 501 if `files` is empty.
void page_answer(const struct page_file *files, size_t count, struct request *r, struct answer *a);

// Writes a text as HTML for people: browsers show it if the page is not built, or no session is
// open. `details` may be NULL; both texts are escaped.
void page_message(struct answer *a, const char *title, const char *text, const char *details);

// Turns the error in *a into a page_message if a person has opened the address in a browser.
void page_for_people(const struct request *r, struct answer *a);

// The handler of the page's routes.
struct service;
void page_show(struct service *service, struct request *r, struct answer *a);

#endif
