#include "cli/top_keys.h"

#include "cli/terminal.h"
#include "cli/top_model.h"

_Static_assert(TOP_VIEWS == 7, "a digit for each view");

const struct top_key top_keys[] = {
    {{'1', '2', '3'}, TOP_DO_VIEW, "1-7", "views: nodes, GPUs, processes, metrics, events,"},
    {{'4', '5', '6'}, TOP_DO_VIEW, NULL, "ranks, findings (slow members: docs/detect.md)"},
    {{'7'}, TOP_DO_VIEW, NULL, NULL},
    {{KEY_TAB}, TOP_DO_NEXT_VIEW, "Tab", "the next view"},
    {{KEY_UP, 'k'}, TOP_DO_UP, "Up Down k j", "choose a row"},
    {{KEY_DOWN, 'j'}, TOP_DO_DOWN, NULL, NULL},
    {{KEY_PAGE_UP}, TOP_DO_PAGE_UP, "PgUp PgDn", "choose a row a page away"},
    {{KEY_PAGE_DOWN}, TOP_DO_PAGE_DOWN, NULL, NULL},
    {{KEY_ENTER},
     TOP_DO_OPEN,
     "Enter",
     "open the row (node, GPU or rank, metric), or go to an event"},
    {{KEY_ESCAPE, KEY_BACKSPACE}, TOP_DO_BACK, "Esc Backspace", "go back; end the filter"},
    {{'s'}, TOP_DO_SORT_NEXT, "s S", "sort by the next column, by the previous one"},
    {{'S'}, TOP_DO_SORT_BEFORE, NULL, NULL},
    {{'r'}, TOP_DO_REVERSE, "r", "reverse the order"},
    {{'/'}, TOP_DO_FILTER, "/", "filter rows by a part of their text; Enter keeps the filter"},
    {{KEY_LEFT, 'h'}, TOP_DO_EARLIER, "Left Right h l", "move the time by one bar"},
    {{KEY_RIGHT, 'l'}, TOP_DO_LATER, NULL, NULL},
    {{'['}, TOP_DO_WINDOW_EARLIER, "[ ]", "move the time by a window of 60 bars"},
    {{']'}, TOP_DO_WINDOW_LATER, NULL, NULL},
    {{KEY_HOME}, TOP_DO_FIRST, "Home End", "move to the beginning, to the newest values"},
    {{KEY_END}, TOP_DO_NEWEST, NULL, NULL},
    {{' '}, TOP_DO_PAUSE, "Space", "pause, go on"},
    {{'+', '='}, TOP_DO_SHORTER, "+ -", "shorter or longer bars (1 s to 10 min)"},
    {{'-'}, TOP_DO_LONGER, NULL, NULL},
    {{'m'}, TOP_DO_MOUSE, "m", "mouse on, off: click a row, click it again to open; the wheel"},
    {{'?'}, TOP_DO_HELP, "?", "list the keys; Up and Down scroll the list"},
    {{'q'}, TOP_DO_QUIT, "q", "quit"},
};
const size_t top_key_count = sizeof top_keys / sizeof top_keys[0];

enum top_action top_action_of(int key)
{
    for (size_t i = 0; i < top_key_count; i++)
        for (size_t k = 0; k < TOP_KEY_CODES_MAX && top_keys[i].codes[k]; k++)
            if (top_keys[i].codes[k] == key)
                return top_keys[i].action;
    return TOP_DO_NOTHING;
}
