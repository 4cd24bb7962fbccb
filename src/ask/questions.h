// questions.h - the table of questions in the form that hub and link call (wire/questions.h).
#ifndef SONDE_ASK_QUESTIONS_H
#define SONDE_ASK_QUESTIONS_H

#include "wire/questions.h"

extern const struct wire_questions ask_questions; // for struct wire_settings

#endif
