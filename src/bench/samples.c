/* The timer's signal carries the samples' address (sigval), so that nothing of the process is
 * global but the signal's handler; SIGEV_THREAD_ID sends it to the thread that is asked. */
#include "bench/samples.h"

#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/err.h"

/* Words of the stack that are looked through for who called a function outside the program: those
 * of libc that copy and compare push nothing. */
#define STACK_WORDS 32u
#define SIGNAL SIGPROF

struct samples {
    uint64_t bias, text, text_end; /* of the program: what it was moved by, and its instructions */
    timer_t timer;
    volatile uint64_t node;
    volatile uint32_t n;
    struct sample at[];
};

struct place {
    uint64_t at, stack, link; /* link: a register that may hold the caller */
};

static bool place_of(const ucontext_t *u, struct place *place_out)
{
#if defined(__x86_64__)
    *place_out = (struct place){.at = (uint64_t)u->uc_mcontext.gregs[REG_RIP],
                                .stack = (uint64_t)u->uc_mcontext.gregs[REG_RSP]};
    return true;
#elif defined(__aarch64__)
    *place_out = (struct place){
        .at = u->uc_mcontext.pc, .stack = u->uc_mcontext.sp, .link = u->uc_mcontext.regs[30]};
    return true;
#else
    (void)u;
    *place_out = (struct place){.at = 0};
    return false;
#endif
}

static bool in_program(const struct samples *s, uint64_t at)
{
    return at >= s->text && at < s->text_end;
}

/* Other functions' stack, which the address sanitizer guards. */
__attribute__((no_sanitize("address"))) static uint64_t caller_of(const struct samples *s,
                                                                  const struct place *p)
{
    const uint64_t *stack = (const uint64_t *)(uintptr_t)p->stack;
    if (in_program(s, p->link)) {
        return p->link - s->bias;
    }
    for (uint32_t i = 0; i < STACK_WORDS; i++) {
        if (in_program(s, stack[i])) {
            return stack[i] - s->bias;
        }
    }
    return 0;
}

static void on_timer(int number, siginfo_t *info, void *context)
{
    struct samples *s = info->si_value.sival_ptr;
    struct place place;
    (void)number;
    if (info->si_code != SI_TIMER || !place_of(context, &place) || s->n == SAMPLES_MAX) {
        return;
    }
    struct sample *sample = &s->at[s->n];
    sample->node = s->node;
    sample->at = in_program(s, place.at) ? place.at - s->bias : 0;
    sample->caller = sample->at != 0 ? 0 : caller_of(s, &place);
    s->n++;
}

/* Of the first object, which is the program. */
static int find_text(struct dl_phdr_info *info, size_t n, void *context)
{
    struct samples *s = context;
    (void)n;
    s->bias = info->dlpi_addr;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0) {
            s->text = s->bias + p->p_vaddr;
            s->text_end = s->text + p->p_memsz;
        }
    }
    return 1;
}

int samples_create(struct samples **samples_out)
{
    /* Pages that nothing is noted in are not there. */
    struct samples *s = calloc(1, sizeof *s + SAMPLES_MAX * sizeof s->at[0]);
    if (s == NULL) {
        return HK_ERR_NOMEM;
    }
    s->node = SAMPLES_NOBODY;
    (void)dl_iterate_phdr(find_text, s);
    *samples_out = s;
    return HK_OK;
}

void samples_destroy(struct samples *samples)
{
    free(samples);
}

int samples_start(struct samples *s)
{
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    const struct timespec period = {.tv_nsec = SAMPLES_PERIOD_NS};
    const struct itimerspec every = {.it_interval = period, .it_value = period};
    ucontext_t here;
    struct place place;
    event._sigev_un._tid = gettid();
    event.sigev_value.sival_ptr = s;
    if (getcontext(&here) != 0 || !place_of(&here, &place) ||
        sigaction(SIGNAL, &action, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &s->timer) != 0) {
        return HK_ERR_IO;
    }
    if (timer_settime(s->timer, 0, &every, NULL) != 0) {
        (void)timer_delete(s->timer);
        return HK_ERR_IO;
    }
    return HK_OK;
}

/* A signal that is under way is taken before its memory can go. */
void samples_stop(struct samples *s)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)timer_delete(s->timer);
    (void)sigaction(SIGNAL, &ignore, NULL); /* discards what is pending */
}

void samples_turn(struct samples *s, uint64_t node)
{
    s->node = node;
}

const struct sample *samples_all(const struct samples *s, uint32_t *n_out)
{
    *n_out = s->n;
    return s->at;
}
