// question_internal.h - the rows of the table of questions, for question.c.
#ifndef SONDE_ASK_QUESTION_INTERNAL_H
#define SONDE_ASK_QUESTION_INTERNAL_H

#include "ask/question.h"

extern const struct wire_question_row wire_query_row, wire_names_row, wire_series_row,
    wire_events_row, wire_status_row, wire_copy_row, wire_recent_row;

#endif
