#include "launch/node_tree.h"

#include "wire/tree.h"

#include <errno.h>
#include <stdlib.h>

// Limits the lookups for our own address: if the name service is down, each takes seconds.
enum { ADDRESS_TRIES_MAX = 2 };

enum { NOT_TOLD = -2, ROOT = -1 }; // ROOT is the aggregator

struct node_branch {
    // the relay behind which the aggregator expects the node, or ROOT; NOT_TOLD: the aggregator
    // does not expect the node
    ptrdiff_t expected;
    int port;
    bool gone;
};

int node_tree_init(struct node_tree *t, const struct allocation *allocation,
                   const struct restart *restart, int fanout, const char *own_name, struct error *e)
{
    *t = (struct node_tree){.allocation = allocation,
                            .restart = restart,
                            .fanout = fanout ? (size_t)fanout : WIRE_FANOUT_DEFAULT,
                            .own_name = own_name};
    t->branches = calloc(restart->count, sizeof *t->branches);
    if (!t->branches)
        return error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < restart->count; i++)
        t->branches[i].expected = NOT_TOLD;
    return 0;
}

void node_tree_free(struct node_tree *t)
{
    free(t->branches);
    buf_free(&t->line);
}

static const char *name_of(const struct node_tree *t, size_t node)
{
    return allocation_name(t->allocation, node, t->own_name);
}

void node_tree_find_address(struct node_tree *t)
{
    for (size_t i = 0; i < t->restart->count && i < ADDRESS_TRIES_MAX; i++)
        if (!allocation_is_own(t->allocation, i) && source_address(name_of(t, i), t->address))
            return;
    t->address[0] = 0;
}

// Returns the member number of a node. If this machine is node 0, it is the root; otherwise the
// root comes before all nodes.
static size_t member_of(const struct node_tree *t, size_t node)
{
    return t->allocation->here ? node : node + 1;
}

static ptrdiff_t node_of(const struct node_tree *t, size_t member)
{
    return member == 0 ? ROOT : (ptrdiff_t)(t->allocation->here ? member : member - 1);
}

static bool has_children(const struct node_tree *t, size_t node)
{
    return wire_tree_is_relay(member_of(t, node), member_of(t, t->restart->count), t->fanout);
}

// Whether the node takes part or is leaving. A leaving node is reached through others, but no node
// is reached through it.
static bool is_member(const struct node_tree *t, size_t node)
{
    return restart_takes_part(t->restart, node) ||
           (t->gather && gather_is_leaving(t->gather, node));
}

// Returns the nearest member above the node that runs or may still start.
static ptrdiff_t parent_of(const struct node_tree *t, size_t node)
{
    size_t member = member_of(t, node);
    for (;;) {
        member = wire_tree_parent(member, t->fanout);
        ptrdiff_t parent = node_of(t, member);
        if (parent == ROOT ||
            (restart_takes_part(t->restart, (size_t)parent) && !t->branches[parent].gone))
            return parent;
    }
}

// Tells a node its parent's relay, and the aggregator as the substitute. If that relay has not
// started yet, the node waits.
static void tell_parents(struct node_tree *t, size_t node)
{
    ptrdiff_t parent = parent_of(t, node);
    if (!t->port || (parent != ROOT && !t->branches[parent].port))
        return;
    t->line.size = 0;
    if (parent != ROOT)
        buf_printf(&t->line, "%s %d ", name_of(t, (size_t)parent), t->branches[parent].port);
    buf_printf(&t->line, "%s %d", t->address[0] ? t->address : t->own_name, t->port);
    if (!t->line.failed)
        placement_tell_parents(t->placement, node, buf_cstr(&t->line));
}

static void tell_children(struct node_tree *t, size_t node)
{
    size_t first = member_of(t, node) * t->fanout + 1, members = member_of(t, t->restart->count);
    t->line.size = 0;
    for (size_t m = first; m < first + t->fanout && m < members; m++) {
        size_t child = (size_t)node_of(t, m);
        if (is_member(t, child))
            buf_printf(&t->line, "%s%s", t->line.size ? "," : "", name_of(t, child));
    }
    if (!t->line.failed)
        placement_tell_children(t->placement, node, buf_cstr(&t->line));
}

void node_tree_tell(struct node_tree *t)
{
    t->changed = true;
    for (size_t i = 0; t->placement && i < t->restart->count; i++) {
        if (allocation_is_own(t->allocation, i) || !is_member(t, i))
            continue;
        if (has_children(t, i))
            tell_children(t, i);
        tell_parents(t, i);
    }
}

void node_tree_relay(struct node_tree *t, size_t node, int port, bool gone)
{
    t->branches[node].port = port;
    t->branches[node].gone = gone;
    if (has_children(t, node))
        node_tree_tell(t);
}

void node_tree_tell_aggregator(struct node_tree *t, bool anew,
                               void (*tell)(void *user, const char *verb, const char *host),
                               void *user)
{
    if (!anew && !t->changed)
        return;
    t->changed = false;
    if (anew && t->gather)
        gather_ask_anew(t->gather);
    for (size_t i = 0; i < t->restart->count; i++) {
        bool part = !allocation_is_own(t->allocation, i) && is_member(t, i);
        ptrdiff_t parent = part ? parent_of(t, i) : NOT_TOLD;
        if (part && (anew || t->branches[i].expected != parent)) {
            t->line.size = 0;
            buf_printf(&t->line, "%s%s", parent == ROOT ? "expect" : "behind ",
                       parent == ROOT ? "" : name_of(t, (size_t)parent));
            tell(user, buf_cstr(&t->line), name_of(t, i));
        } else if (!part && !anew && t->branches[i].expected != NOT_TOLD) {
            tell(user, "exclude", name_of(t, i));
        }
        t->branches[i].expected = parent;
    }
}

int node_tree_relay_port(const struct node_tree *t, size_t node)
{
    return t->branches[node].port;
}
