// line_protocol.h - a protocol of lines on the port of the HTTP server: the acceptor owns its
// sockets, and the protocol takes and gives text. What comes out of it goes on to a local socket.
#ifndef SONDE_HTTP_LINE_PROTOCOL_H
#define SONDE_HTTP_LINE_PROTOCOL_H

#include "base/str.h"

struct line_protocol {
    const char *socket;         // where the lines that clients send go on to
    void *user;                 // for begin
    void *(*begin)(void *user); // a session; NULL: no memory
    void (*end)(void *session);
    // Takes any piece of what the client sends; empty at the end of input. Appends answers to
    // *reply, and lines to *onward.
    void (*feed)(void *session, struct str piece, struct buf *reply, struct buf *onward);
    // What the other end of `socket` said, as the client is told it. *rest holds what is no whole
    // line yet.
    void (*answered)(struct str piece, struct buf *rest, struct buf *reply);
    bool (*is_admitted)(const void *session); // it has shown a token, or needs none
    bool (*has_ended)(const void *session);   // nothing more is read
};

#endif
