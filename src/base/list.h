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
// The list is a ring: its head is a link that belongs to no element.
#ifndef SONDE_BASE_LIST_H
#define SONDE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_link {
    struct list_link *next, *previous;
};

// The element that has `link` as its member.
#define LIST_OF(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

// Visits each link. The body may take the link that it is given out of the list, and no other one.
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

// Puts `link` behind `before`, which is the head or a link of the list.
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

// Takes `link` out of the list that it is in. It is then a list of its own: taking it out once more
// changes nothing.
static inline void list_remove(struct list_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

// Takes the first link out of the list and returns it. NULL: the list is empty.
static inline struct list_link *list_take_first(struct list_link *head)
{
    struct list_link *first = head->next;
    if (first == head)
        return NULL;
    list_remove(first);
    return first;
}

#endif
