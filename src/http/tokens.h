// tokens.h - the tokens of a job. A file contains the control token, from which the other two are
// derived.
//
//   control   the text in the file: allows everything
//   write     HMAC-SHA-256(control, "sonde write token") in hexadecimal: reads and puts
//   view      HMAC-SHA-256(control, "sonde view token") in hexadecimal: reads
//
// A derived token reveals nothing about the control token unless an attacker can guess the control
// token. So a token in a file has at least TOKEN_FILE_MIN characters. If all jobs use the same
// file, they have the same view token, which a Grafana data source can keep.
#ifndef SONDE_HTTP_TOKENS_H
#define SONDE_HTTP_TOKENS_H

#include "base/error.h"
#include "base/str.h"

// The permissions of a request; each role includes the previous ones.
enum role { ROLE_NOBODY, ROLE_VIEW, ROLE_WRITE, ROLE_CONTROL, ROLE_COUNT };

enum {
    TOKEN_MAX = 255,     // characters
    TOKEN_FILE_MIN = 32, // characters of a token in a file
    // characters of tokens that sonde makes: 256 bits in hexadecimal
    TOKEN_MADE = 64,
    TOKEN_TEXT_MAX = TOKEN_MAX + 1, // bytes with the NUL
};

// True if a token has only characters that need no escape in headers, cookies and addresses: A-Z
// a-z 0-9 - . _ ~
bool token_valid(struct str token);

// Makes a new token.
int token_make(char out[TOKEN_TEXT_MAX], struct error *e);

// Reads the first line of a private file (secrets.h, SECRETS_NO_LINK). With `make`, creates a
// missing file (mode 0600) with a new token. Returns 0, or -EPERM, -EINVAL, -ELOOP, …; the message
// says what to do.
int token_read(const char *path, bool make, char out[TOKEN_TEXT_MAX], struct error *e);

// Derives the token of `role` (VIEW, WRITE or CONTROL) from a control token.
void token_of_role(struct str control, enum role role, char out[TOKEN_TEXT_MAX]);

#endif
