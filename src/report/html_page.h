// html_page.h - the frame of a page that sonde writes: one file without a script and without a
// reference to another file, light and dark, readable on paper.
#ifndef SONDE_REPORT_HTML_PAGE_H
#define SONDE_REPORT_HTML_PAGE_H

#include "base/str.h"

// Writes the page until within <main>. `kind` ends the title of the window: "TITLE - sonde KIND".
void html_begin(struct str title, const char *kind, struct buf *out);

// Ends the page, whose writer has closed <main>.
void html_end(struct buf *out);

// Writes `text`, escaped, as the content of an element. `tag` may have attributes.
void html_put(const char *tag, struct str text, struct buf *out);

#endif
