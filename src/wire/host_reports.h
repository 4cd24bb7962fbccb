// host_reports.h - a link's side of HOSTS. The link reports the hosts whose series are in our own
// store, or in the stores of the nodes behind us, as soon as it knows them.
//
// The link checks our own store after the agent has reported a change (wire_link_look), at each
// ping of the parent, and before each answer. So the parent knows a host before it gets the first
// answer with this host's points, at the latest a heartbeat after the store got the host. Reports
// are sent in order, before all later frames.
//
// All calls happen in the loop's thread.
#ifndef SONDE_WIRE_HOST_REPORTS_H
#define SONDE_WIRE_HOST_REPORTS_H

#include "wire/host_index.h"
#include "wire/session.h"

struct wire_host_reports {
    struct str host; // our own name
    const struct wire_questions *questions;
    const struct wire_source *source; // our store
    struct hub *children;             // NULL: none
    struct wire_session *session;     // NULL: not connected
    struct wire_host_set own;
    // identity of the view that was checked last; a view with the same identity has no new hosts
    uint64_t seen;
    struct buf out; // the current frame
};

void wire_host_reports_begin(struct wire_host_reports *t, struct str host,
                             const struct wire_questions *questions,
                             const struct wire_source *source, struct hub *children);
void wire_host_reports_end(struct wire_host_reports *t);

// The first is called when the parent has accepted us on a connection that supports HOSTS, the
// second when this connection has ended.
void wire_host_reports_connected(struct wire_host_reports *t, struct wire_session *session);
void wire_host_reports_disconnected(struct wire_host_reports *t);

// Checks the store, and reports new hosts. If the store cannot be opened, it is checked again
// later; questions then get the reason.
void wire_host_reports_look(struct wire_host_reports *t);
void wire_host_reports_look_at(struct wire_host_reports *t, const struct wire_view *view);

#endif
