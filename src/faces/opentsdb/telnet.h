// telnet.h - OpenTSDB's telnet protocol: lines in, answers and lines for the agent out. No sockets.
//
//   put metric time value tag=value …   silent when it is taken; else "put: illegal argument: …"
//   auth TOKEN                          has to come before put, where the server has a token: the write or the control token
//   version · stats · help · exit
#ifndef SONDE_FACES_OPENTSDB_TELNET_H
#define SONDE_FACES_OPENTSDB_TELNET_H

#include "faces/service.h"
#include "http/line_protocol.h"

enum {
    TELNET_LINE_MAX = 65000,     // bytes; a longer one ends the session
    TELNET_LINE_OPEN_MAX = 1024, // before a token
};

struct telnet {
    struct service *service;
    struct buf line; // that is not whole yet
    bool admitted;
    bool ended; // exit, or a line that was too long: nothing more is read
};

void telnet_begin(struct telnet *t, struct service *service);
void telnet_free(struct telnet *t);

// Takes any piece of what the client sends. Answers go to *reply, points to *points, one line each.
// At the end of input `piece` is empty: the last line may lack its newline.
void telnet_feed(struct telnet *t, struct str piece, struct buf *reply, struct buf *points);

// What the agent said ("line 3: words"), as the client is told it. *rest holds what is no whole
// line yet.
void telnet_agent_said(struct str piece, struct buf *rest, struct buf *reply);

// The same for the acceptor. `service` outlives it.
struct line_protocol telnet_protocol(struct service *service);

#endif
