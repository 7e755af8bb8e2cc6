/* Intrusive doubly linked lists: the links live in the element, so nothing is allocated and an
 * element leaves in constant time without a search. A list is a ring through its head; the head
 * is a struct list_link of its own. Not thread-safe. */
#ifndef HORKOS_BASE_LIST_H
#define HORKOS_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_link {
    struct list_link *next;
    struct list_link *prev;
};

/* The struct that holds a link: list_entry(link, struct client, waiting). The link may not be the
 * head, nor NULL. */
#define list_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

/* Visits every link of the list from first to last; the body may not remove the current one. */
#define list_each(link, head)                                                                      \
    for (struct list_link *link = (head)->next; link != (head); link = link->next)

/* As list_each; the body may remove (and free) the current link, and no other. */
#define list_each_safe(link, following, head)                                                      \
    for (struct list_link *link = (head)->next, *following = link->next; link != (head);           \
         link = following, following = link->next)

/* An empty list; also makes a link one that list_remove may be called on. */
static inline void list_init(struct list_link *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool list_empty(const struct list_link *head)
{
    return head->next == head;
}

/* Puts link behind place (a member or the head). link may be in no list. */
static inline void list_insert_after(struct list_link *place, struct list_link *link)
{
    link->prev = place;
    link->next = place->next;
    place->next->prev = link;
    place->next = link;
}

static inline void list_push_front(struct list_link *head, struct list_link *link)
{
    list_insert_after(head, link);
}

static inline void list_push_back(struct list_link *head, struct list_link *link)
{
    list_insert_after(head->prev, link);
}

/* Takes link out of its list; it is then an empty list of its own, so again does no harm. */
static inline void list_remove(struct list_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

/* The first link, taken out; NULL when the list is empty. */
static inline struct list_link *list_pop_front(struct list_link *head)
{
    struct list_link *first = head->next;
    if (first == head) {
        return NULL;
    }
    list_remove(first);
    return first;
}

/* Moves all of source, in order, to the end of target; source is empty afterwards. */
static inline void list_append(struct list_link *target, struct list_link *source)
{
    if (list_empty(source)) {
        return;
    }
    source->next->prev = target->prev;
    target->prev->next = source->next;
    source->prev->next = target;
    target->prev = source->prev;
    list_init(source);
}

#endif
