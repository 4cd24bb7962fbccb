// open_page.h - shows a page to the person at the terminal.
#ifndef SONDE_CLI_OPEN_PAGE_H
#define SONDE_CLI_OPEN_PAGE_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>

enum { OPEN_PAGE_PATH_MAX = 4096 };

// Opens `url`, which holds a token, in the browser of this screen: $BROWSER, else xdg-open if there
// is a display.
//
// Every user can read command lines, so the browser gets the path of a file in `folder` (mode 0700)
// that redirects to the URL; `file` receives that path, for the caller to remove. True if a browser
// was started; false if there is none (empty `file`), or if it could not be started (with a
// warning).
bool open_page(const char *url, const char *folder, char file[OPEN_PAGE_PATH_MAX]);

#endif
