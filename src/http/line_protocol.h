// line_protocol.h - a protocol of lines on the port of the HTTP server. The acceptor owns its
// sockets; the protocol converts text to text. The acceptor forwards its output to a local socket.
#ifndef SONDE_HTTP_LINE_PROTOCOL_H
#define SONDE_HTTP_LINE_PROTOCOL_H

#include "base/str.h"

struct line_protocol {
    const char *socket;         // socket to which the lines of clients go
    void *user;                 // the argument of begin
    void *(*begin)(void *user); // begins a session; NULL: out of memory
    void (*end)(void *session);
    // Handles a piece of the client's input; an empty piece is the end of input. Appends answers to
    // *reply, and lines for `socket` to *onward.
    void (*feed)(void *session, struct str piece, struct buf *reply, struct buf *onward);
    // Converts a piece that has arrived from `socket` to answers for the client. *rest keeps an
    // incomplete line.
    void (*answered)(struct str piece, struct buf *rest, struct buf *reply);
    bool (*is_admitted)(const void *session); // the client has shown a token, or needs none
    bool (*has_ended)(const void *session);   // no more input is read
};

#endif
