// terminal.h - the terminal while a full-screen program has it, and what it gets back at any end.
//
// terminal_take: the alternate screen, no cursor, keys one by one without echo. terminal_give_back
// undoes it; it also happens at exit, and before SIGINT, SIGTERM, SIGHUP, SIGQUIT or a fault end
// the process, and around a stop (Ctrl-Z).
//
// Signals are blocked but while terminal_wait waits, so nothing else is interrupted.
#ifndef SONDE_CLI_TERMINAL_H
#define SONDE_CLI_TERMINAL_H

#include "base/str.h"

enum {
    KEY_NONE = 0, // no key: the time is over, or the size has changed
    KEY_UP = 256,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_ESCAPE,
    KEY_ENTER,
    KEY_BACKSPACE,
    KEY_TAB,
    KEY_GONE, // the terminal has gone
};

bool terminal_is_one(void); // standard input and output are a terminal that obeys escapes
bool terminal_is_utf8(void);
// COLUMNS and LINES, or 80×24, where there is no terminal
void terminal_size(int *columns, int *rows);

int terminal_take(void); // 0 or a negative errno
void terminal_give_back(void);

// Waits for a key. A character beyond ASCII comes as its bytes, one a call. A signal that ends the
// process ends it here, with the terminal given back.
int terminal_wait(int timeout_ms);
// A key can be read at once. Takes signals, too.
bool terminal_has_key(void);
// Since the last call: the size has changed, or the terminal was somebody else's (stopped and
// continued).
bool terminal_changed(void);

// All of it. False: the terminal has gone.
bool terminal_write(struct str text);

#endif
