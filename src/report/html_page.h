// html_page.h - the frame of a page that sonde writes: one file without a script and without
// references to other files, for light and dark mode, readable on paper.
#ifndef SONDE_REPORT_HTML_PAGE_H
#define SONDE_REPORT_HTML_PAGE_H

#include "base/str.h"

// Writes the beginning of the page, up to the contents of <main>. `kind` ends the title of the
// window: "TITLE - sonde KIND".
void html_begin(struct str title, const char *kind, struct buf *out);

// Writes the end of the page. The caller has closed <main>.
void html_end(struct buf *out);

// Writes an element with `text`, escaped, as its content. `tag` may have attributes.
void html_put(const char *tag, struct str text, struct buf *out);

#endif
