// telnet.h - OpenTSDB's telnet protocol: converts input lines to answers, and to lines for the
// agent. It knows no sockets.
//
//   put metric time value tag=value …   no answer on success; else "put: illegal argument: …"
//   auth TOKEN                          required before put if the server has a token: the write or
//                                       the control token
//   version · stats · help · exit
#ifndef SONDE_FACES_OPENTSDB_TELNET_H
#define SONDE_FACES_OPENTSDB_TELNET_H

#include "faces/service.h"
#include "http/line_protocol.h"

enum {
    TELNET_LINE_MAX = 65000,     // bytes; a longer one ends the session
    TELNET_LINE_OPEN_MAX = 1024, // limit for a session without a token
};

struct telnet {
    struct service *service;
    struct buf line; // an incomplete line
    bool admitted;
    bool ended; // exit, or a line that was too long: ignore further input
};

void telnet_begin(struct telnet *t, struct service *service);
void telnet_free(struct telnet *t);

// Handles any piece of the client's input. Appends answers to *reply, points to *points, one line
// each. An empty `piece` is the end of input: the last line may lack its newline.
void telnet_feed(struct telnet *t, struct str piece, struct buf *reply, struct buf *points);

// Converts the agent's output ("line 3: text") to answers for the client. *rest keeps an incomplete
// line.
void telnet_agent_answered(struct str piece, struct buf *rest, struct buf *reply);

// The same as a line protocol for the acceptor. `service` must outlive it.
struct line_protocol telnet_protocol(struct service *service);

#endif
