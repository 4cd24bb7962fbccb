// question_internal.h - the rows of the table of questions, for question.c.
#ifndef SONDE_ASK_QUESTION_INTERNAL_H
#define SONDE_ASK_QUESTION_INTERNAL_H

#include "ask/question.h"

extern const struct ask_question_row ask_query_row, ask_names_row, ask_series_row, ask_events_row,
    ask_status_row, ask_copy_row, ask_recent_row;

#endif
