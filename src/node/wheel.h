/* Timers of one worker: a wheel of WHEEL_SLOTS ticks of about a millisecond. Arming and disarming
 * take constant time; a timer fires at the first tick that is not before its due time. Timers that
 * lie further ahead than the wheel reaches are looked at once a turn. */
#ifndef HORKOS_NODE_WHEEL_H
#define HORKOS_NODE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define WHEEL_SLOTS 1024u
#define WHEEL_TICK_BITS 10u /* a tick is 1024 us */

struct timer {
    struct list_link link;
    uint64_t due_us;
    uint32_t place; /* slot of the wheel, or one of the two below */
    uint8_t kind;   /* the owner's */
};
#define TIMER_IDLE UINT32_MAX         /* not armed */
#define TIMER_FIRED (UINT32_MAX - 1u) /* due, waits in the list of the fired */

struct wheel {
    uint64_t tick; /* all slots up to this tick have fired */
    struct list_link fired;
    uint64_t used[WHEEL_SLOTS / 64]; /* bit i: slot i may hold timers */
    struct list_link slots[WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, uint64_t now_us);
void timer_init(struct timer *t, uint8_t kind);
/* (Re)arms the timer. */
void wheel_arm(struct wheel *w, struct timer *t, uint64_t due_us);
void wheel_disarm(struct wheel *w, struct timer *t);
/* Moves what is due at now_us to the list of the fired. */
void wheel_advance(struct wheel *w, uint64_t now_us);
/* Takes one fired timer, NULL when there is none. It may be armed again at once. */
struct timer *wheel_take(struct wheel *w);
/* The time of the next tick at which something may fire; UINT64_MAX: nothing is armed. */
uint64_t wheel_deadline(const struct wheel *w);

#endif
