// list.h - doubly linked lists whose links are part of their elements.
//
//   struct task { struct list_link queued; … };
//   struct list_link queue;
//   list_init(&queue);
//   list_append(&queue, &task->queued);
//   LIST_EACH(link, &queue) {
//       struct task *t = LIST_OF(link, struct task, queued);
//       …
//   }
//
// The list is a ring: its head is a link that belongs to no element. Stacks do not use it: their
// elements are added and removed at one end only, so one pointer in each element is enough.
#ifndef SONDE_BASE_LIST_H
#define SONDE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

// GCC 12 at -O2 reads the head's `next` only once in a loop that moves the first element to the
// end, because it takes the links of an element and of the head for different objects (its pass
// tree-loop-im, by strict aliasing). With may_alias it reads it each time.
struct __attribute__((may_alias)) list_link {
    struct list_link *next, *previous;
};

// Returns the element that has `link` as its member.
#define LIST_OF(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

// Visits each link. The body may remove the current link from the list, but no other.
#define LIST_EACH(link, head)                                                              \
    for (struct list_link *link = (head)->next, *link##_next = link->next; link != (head); \
         link = link##_next, link##_next = link->next)

static inline void list_init(struct list_link *head)
{
    head->next = head->previous = head;
}

static inline bool list_empty(const struct list_link *head)
{
    return head->next == head;
}

// Inserts `link` after `before`, which is the head or a link of the list.
static inline void list_insert(struct list_link *before, struct list_link *link)
{
    link->previous = before;
    link->next = before->next;
    before->next->previous = link;
    before->next = link;
}

static inline void list_prepend(struct list_link *head, struct list_link *link)
{
    list_insert(head, link);
}

static inline void list_append(struct list_link *head, struct list_link *link)
{
    list_insert(head->previous, link);
}

// Removes `link` from its list. It is then a list of its own, so removing it again has no effect.
static inline void list_remove(struct list_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

// Removes the first link of the list and returns it; returns NULL for an empty list.
static inline struct list_link *list_take_first(struct list_link *head)
{
    struct list_link *first = head->next;
    if (first == head)
        return NULL;
    list_remove(first);
    return first;
}

// Moves all elements to the end of `to`.
static inline void list_take_all(struct list_link *from, struct list_link *to)
{
    if (list_empty(from))
        return;
    from->next->previous = to->previous;
    to->previous->next = from->next;
    from->previous->next = to;
    to->previous = from->previous;
    list_init(from);
}

#endif
