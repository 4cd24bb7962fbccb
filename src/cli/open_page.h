// open_page.h - shows a page in the user's browser.
#ifndef SONDE_CLI_OPEN_PAGE_H
#define SONDE_CLI_OPEN_PAGE_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>

enum { OPEN_PAGE_PATH_MAX = 4096 };

// Opens `url`, which holds a token, in the browser of this screen: $BROWSER, else xdg-open if there
// is a display.
//
// Every user can read command lines. So the browser gets the path of a file in `folder` (mode
// 0700), which redirects to the URL. `file` gets this path; the caller removes the file. Returns
// true if a browser was started. Returns false if there is none (`file` is empty), or if it could
// not be started (with a warning).
bool open_page(const char *url, const char *folder, char file[OPEN_PAGE_PATH_MAX]);

#endif
