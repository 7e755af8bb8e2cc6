#include "tools/torture_judge.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Histories that may wait: some hundred bytes for each of at most 1500 operations and a few. */
#define WAITING_MAX 1000u
/* About 100 MB of states at most. */
#define STATES_MAX 2000000u

static void judge_one(struct torture_key *key)
{
    struct history history = {.ops = key->ops, .n = key->n};
    struct check_report report = {.states = 0};
    bool simple = key->class == TORTURE_REGISTER && !key->emptied;
    free(key->text);
    key->text = NULL;
    key->verdict = simple ? check_registers(&history, &report)
                          : check_linearizable(&history, STATES_MAX, &report);
    key->states = report.states;
    if (key->verdict != CHECK_ACCEPTED) {
        key->text = strdup(report.text);
    }
}

static void *work(void *context)
{
    struct torture_judge *judge = context;
    pthread_mutex_lock(&judge->lock);
    while (!judge->ends) {
        struct torture_key *key = judge->given;
        if (key == NULL) {
            pthread_cond_wait(&judge->wake, &judge->lock);
            continue;
        }
        judge->given = key->next;
        if (judge->given == NULL) {
            judge->given_last = NULL;
        }
        pthread_mutex_unlock(&judge->lock);
        judge_one(key);
        pthread_mutex_lock(&judge->lock);
        key->next = judge->judged;
        judge->judged = key;
    }
    pthread_mutex_unlock(&judge->lock);
    return NULL;
}

bool torture_judge_start(struct torture_judge *judge)
{
    sigset_t all;
    sigset_t before;
    *judge = (struct torture_judge){.runs = false};
    pthread_mutex_init(&judge->lock, NULL);
    pthread_cond_init(&judge->wake, NULL);
    /* Signals are for the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    judge->runs = pthread_create(&judge->thread, NULL, work, judge) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return judge->runs;
}

void torture_judge_stop(struct torture_judge *judge)
{
    if (!judge->runs) {
        return;
    }
    pthread_mutex_lock(&judge->lock);
    judge->ends = true;
    pthread_cond_signal(&judge->wake);
    pthread_mutex_unlock(&judge->lock);
    pthread_join(judge->thread, NULL);
    pthread_cond_destroy(&judge->wake);
    pthread_mutex_destroy(&judge->lock);
    judge->runs = false;
}

void torture_judge_give(struct torture_judge *judge, struct torture_key *key)
{
    pthread_mutex_lock(&judge->lock);
    key->next = NULL;
    if (judge->given_last == NULL) {
        judge->given = key;
    } else {
        judge->given_last->next = key;
    }
    judge->given_last = key;
    judge->under_way++;
    pthread_cond_signal(&judge->wake);
    pthread_mutex_unlock(&judge->lock);
}

struct torture_key *torture_judge_take(struct torture_judge *judge)
{
    pthread_mutex_lock(&judge->lock);
    struct torture_key *key = judge->judged;
    if (key != NULL) {
        judge->judged = key->next;
        key->next = NULL;
        judge->under_way--;
    }
    pthread_mutex_unlock(&judge->lock);
    return key;
}

bool torture_judge_idle(struct torture_judge *judge)
{
    pthread_mutex_lock(&judge->lock);
    bool idle = judge->under_way == 0;
    pthread_mutex_unlock(&judge->lock);
    return idle;
}

bool torture_judge_behind(struct torture_judge *judge)
{
    pthread_mutex_lock(&judge->lock);
    bool behind = judge->under_way > WAITING_MAX;
    pthread_mutex_unlock(&judge->lock);
    return behind;
}
