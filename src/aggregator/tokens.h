// tokens.h - the tokens of a job: one file holds the control token, the others follow from it.
//
//   control   in the file: everything
//   write     HMAC-SHA-256(control, "sonde write token"), in hexadecimal: reads, puts points and annotations
//   view      HMAC-SHA-256(control, "sonde view token"), likewise: reads
//
// A derived token says nothing about the control token as long as nobody can guess that one: a file's token has at least TOKEN_FILE_MIN characters.
// A fixed file gives the same view token to every job, which a Grafana data source can keep.
#ifndef SONDE_AGGREGATOR_TOKENS_H
#define SONDE_AGGREGATOR_TOKENS_H

#include "base/error.h"
#include "base/str.h"

// What a request may do; each role includes those before it.
enum role { ROLE_NOBODY, ROLE_VIEW, ROLE_WRITE, ROLE_CONTROL, ROLE_COUNT };

enum {
    TOKEN_MAX = 255,                // characters
    TOKEN_FILE_MIN = 32,            // of a token in a file
    TOKEN_MADE = 64,                // of those that sonde makes: 256 bits in hexadecimal
    TOKEN_TEXT_MAX = TOKEN_MAX + 1, // with the NUL
};

// Tokens consist of what can stand in a header, a cookie and an address as it is: A-Z a-z 0-9 - . _ ~
bool token_valid(struct str token);

// A new one.
int token_make(char out[TOKEN_TEXT_MAX], struct error *e);

// The first line of a file that belongs to us, that nobody else can open, and that is no link: looked at through the descriptor that is then
// read. With `make` a file that is not there is made (mode 0600) with a new token. -EPERM, -EINVAL, -ELOOP, … with what to do.
int token_read(const char *path, bool make, char out[TOKEN_TEXT_MAX], struct error *e);

// The token of `role` (VIEW, WRITE or CONTROL) that goes with a control token.
void token_of_role(struct str control, enum role role, char out[TOKEN_TEXT_MAX]);

#endif
