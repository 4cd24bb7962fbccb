// terminal.h - controls the terminal for a full-screen program, and restores it however the program
// ends.
//
// terminal_take switches to the alternate screen, hides the cursor, and reads keys one by one
// without echo. terminal_give_back undoes this. It also runs at exit, before SIGINT, SIGTERM,
// SIGHUP, SIGQUIT or a fault ends the process, and around a stop (Ctrl-Z).
//
// Signals are blocked except during terminal_wait, so nothing else is interrupted.
#ifndef SONDE_CLI_TERMINAL_H
#define SONDE_CLI_TERMINAL_H

#include "base/str.h"

enum {
    KEY_NONE = 0, // no key: timeout, or the size has changed
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
    KEY_CLICK, // a click of the mouse, on the row of terminal_mouse_row
    KEY_WHEEL_UP,
    KEY_WHEEL_DOWN,
    KEY_GONE, // the terminal is closed
};

// true if standard input and output are a terminal that understands escape sequences
bool terminal_is_one(void);
bool terminal_is_utf8(void);
// stores the terminal's size; without a terminal, COLUMNS and LINES, or 80×24
void terminal_size(int *columns, int *rows);

int terminal_take(void); // returns 0 or a negative errno
void terminal_give_back(void);

// Switches mouse input on or off. While it is on, clicks and the wheel are keys, and the terminal
// selects text only with Shift. So it is off at first.
void terminal_mouse(bool on);
int terminal_mouse_row(void); // row of the last KEY_CLICK, from 0

// Waits for a key. A character beyond ASCII is returned one byte per call. If a signal ends the
// process, it ends here, after the terminal is restored.
int terminal_wait(int timeout_ms);
// True if a key can be read at once. Handles pending signals, too.
bool terminal_has_key(void);
// True if, since the last call, the size has changed, or another program may have written to the
// terminal (because this process was stopped and continued).
bool terminal_changed(void);

// Writes the whole text. Returns false if the terminal is closed.
bool terminal_write(struct str text);

#endif
