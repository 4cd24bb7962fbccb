// top_keys.h - the keys of `sonde top`: one table for the command and for its help.
#ifndef SONDE_CLI_TOP_KEYS_H
#define SONDE_CLI_TOP_KEYS_H

#include <stddef.h>

enum top_action {
    TOP_DO_NOTHING,
    TOP_DO_QUIT,
    TOP_DO_HELP,
    TOP_DO_VIEW, // the key's digit selects it
    TOP_DO_NEXT_VIEW,
    TOP_DO_UP,
    TOP_DO_DOWN,
    TOP_DO_PAGE_UP,
    TOP_DO_PAGE_DOWN,
    TOP_DO_OPEN,
    TOP_DO_BACK,
    TOP_DO_SORT_NEXT,
    TOP_DO_SORT_BEFORE,
    TOP_DO_REVERSE,
    TOP_DO_FILTER,
    TOP_DO_EARLIER,
    TOP_DO_LATER,
    TOP_DO_WINDOW_EARLIER,
    TOP_DO_WINDOW_LATER,
    TOP_DO_FIRST,
    TOP_DO_NEWEST,
    TOP_DO_PAUSE,
    TOP_DO_SHORTER,
    TOP_DO_LONGER,
    TOP_DO_MOUSE,
};

enum { TOP_KEY_CODES_MAX = 3 };

struct top_key {
    int codes[TOP_KEY_CODES_MAX]; // codes of terminal.h; 0 ends the list
    enum top_action action;
    // Texts of the help. A row without `label` continues the row above it.
    const char *label, *does;
};

extern const struct top_key top_keys[];
extern const size_t top_key_count;

enum top_action top_action_of(int key);

#endif
