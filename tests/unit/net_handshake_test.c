#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <sodium.h>

#include "base/nodeset.h"
#include "net/handshake.h"

/* Offsets as docs/NET.md gives them. */
enum {
    AT_TYPE = 4,
    AT_WORKERS = 5,
    AT_SOURCE = 6,
    AT_TARGET = 7,
    AT_SOURCE_WORKER = 8,
    AT_TARGET_WORKER = 9,
    AT_VERSION_MIN = 10,
    AT_VERSION_MAX = 12,
    AT_WISHES = 14,
    AT_RESERVED = 15,
    AT_CLUSTER = 16,
    AT_RESERVED_MORE = 24,
    AT_TAG = 64,
    HELLO_BYTES = 96,
    ANSWER_BYTES = 96,
    PROOF_BYTES = 48,
};

#define CLUSTER 0x1122334455667788u
#define CALLER 3
#define CALLED 5
#define NODES (nodeset_of(CALLER) | nodeset_of(CALLED) | nodeset_of(9))

static struct handshake_self self_of(uint8_t node, uint8_t workers)
{
    struct handshake_self self = {.cluster = CLUSTER, .node = node, .workers = workers};

    memset(self.key, 0x42, sizeof(self.key));
    return self;
}

/* Both ends and what was last said; messages stand in blocks of exactly their length, so that the
 * address sanitizer sees who reads past one. */
struct talk {
    struct handshake caller, called;
    uint8_t hello[HELLO_BYTES], answer[HANDSHAKE_MESSAGE_MAX], proof[HANDSHAKE_MESSAGE_MAX];
};

static uint32_t input(struct handshake *h, const uint8_t *message, uint8_t *out)
{
    uint32_t n = handshake_wants(h);
    uint8_t *exact = malloc(n);

    assert_non_null(exact);
    memcpy(exact, message, n);
    uint32_t answered = handshake_input(h, exact, out);
    free(exact);
    return answered;
}

static void talk_begin_wishing(struct talk *talk, uint8_t seed, bool caller_shm, bool called_shm)
{
    struct handshake_self caller = self_of(CALLER, 4);
    struct handshake_self called = self_of(CALLED, 2);
    uint8_t nonces[2][HANDSHAKE_NONCE_BYTES];
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    caller.shm = caller_shm;
    called.shm = called_shm;
    memset(nonces[0], seed, sizeof(nonces[0]));
    memset(nonces[1], seed + 100, sizeof(nonces[1]));
    assert_int_equal(handshake_call(&talk->caller, &caller, nonces[0], CALLED, 1, 3, out),
                     HELLO_BYTES);
    memcpy(talk->hello, out, HELLO_BYTES);
    handshake_listen(&talk->called, &called, nonces[1], NODES);
}

static void talk_begin(struct talk *talk, uint8_t seed)
{
    talk_begin_wishing(talk, seed, false, false);
}

static void talk_to_answer(struct talk *talk, uint8_t seed)
{
    talk_begin(talk, seed);
    assert_int_equal(handshake_wants(&talk->called), HELLO_BYTES);
    assert_int_equal(input(&talk->called, talk->hello, talk->answer), ANSWER_BYTES);
    assert_int_equal(talk->called.state, HANDSHAKE_RUNNING);
}

static void talk_to_proof(struct talk *talk, uint8_t seed)
{
    talk_to_answer(talk, seed);
    assert_int_equal(handshake_wants(&talk->caller), ANSWER_BYTES);
    assert_int_equal(input(&talk->caller, talk->answer, talk->proof), PROOF_BYTES);
    assert_int_equal(talk->caller.state, HANDSHAKE_DONE);
}

static void assert_refused(const struct handshake *h, enum handshake_refusal refusal)
{
    assert_int_equal(h->state, HANDSHAKE_REFUSED);
    assert_int_equal(h->refusal, refusal);
    assert_int_equal(handshake_wants(h), 0);
}

/* Sets the tag of a changed HELLO or ANSWER right, as a peer with the key would. said: what the tag
 * covers before the message. */
static void retag(uint8_t *message, const char label[24], const uint8_t *said, uint32_t said_bytes)
{
    struct handshake_self self = self_of(0, 1);
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, self.key, CLUSTER_KEY_BYTES, 32);
    (void)crypto_generichash_update(&state, (const uint8_t *)label, 24);
    (void)crypto_generichash_update(&state, said, said_bytes);
    (void)crypto_generichash_update(&state, message, AT_TAG);
    (void)crypto_generichash_final(&state, message + AT_TAG, 32);
}

static const char label_hello[24] = "horkos 1 hello";
static const char label_answer[24] = "horkos 1 answer";

static void both_agree(void **state)
{
    (void)state;
    struct talk talk;
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    talk_to_proof(&talk, 1);
    assert_int_equal(handshake_wants(&talk.caller), 0);
    assert_int_equal(handshake_wants(&talk.called), PROOF_BYTES);
    assert_int_equal(input(&talk.called, talk.proof, out), 0);
    assert_int_equal(talk.called.state, HANDSHAKE_DONE);
    assert_int_equal(talk.called.refusal, HANDSHAKE_OK);

    const struct handshake_peer *caller = &talk.caller.peer, *called = &talk.called.peer;

    assert_int_equal(caller->node, CALLED);
    assert_int_equal(caller->workers, 2);
    assert_int_equal(caller->worker, 1);
    assert_int_equal(caller->local_worker, 3);
    assert_int_equal(called->node, CALLER);
    assert_int_equal(called->workers, 4);
    assert_int_equal(called->worker, 3);
    assert_int_equal(called->local_worker, 1);
    assert_int_equal(caller->version, 1);
    assert_int_equal(called->version, 1);
    assert_memory_equal(caller->keys.send, called->keys.receive, SESSION_KEY_BYTES);
    assert_memory_equal(caller->keys.receive, called->keys.send, SESSION_KEY_BYTES);
    assert_memory_not_equal(caller->keys.send, caller->keys.receive, SESSION_KEY_BYTES);
}

static void wishes_meet(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct talk talk;
        uint8_t out[HANDSHAKE_MESSAGE_MAX];

        talk_begin_wishing(&talk, 1, (i & 1) != 0, (i & 2) != 0);
        assert_int_equal(talk.hello[AT_WISHES], i & 1);
        assert_int_equal(input(&talk.called, talk.hello, talk.answer), ANSWER_BYTES);
        assert_int_equal(talk.answer[AT_WISHES], i == 3);
        assert_int_equal(input(&talk.caller, talk.answer, talk.proof), PROOF_BYTES);
        assert_int_equal(input(&talk.called, talk.proof, out), 0);
        assert_int_equal(talk.caller.peer.shm, i == 3);
        assert_int_equal(talk.called.peer.shm, i == 3);
        assert_true(talk.caller.peer.caller && !talk.called.peer.caller);
    }
}

static void keys_differ_by_session(void **state)
{
    (void)state;
    struct talk one, two, same;

    talk_to_proof(&one, 1);
    talk_to_proof(&two, 2);
    talk_to_proof(&same, 1);
    assert_memory_not_equal(one.caller.peer.keys.send, two.caller.peer.keys.send,
                            SESSION_KEY_BYTES);
    assert_memory_equal(&one.caller.peer.keys, &same.caller.peer.keys, sizeof(struct session_keys));
}

/* The key is in nobody's memory longer than needed. */
static void key_is_wiped(void **state)
{
    (void)state;
    struct talk talk;
    static const uint8_t nothing[sizeof(talk.caller.transcript)];

    talk_to_proof(&talk, 1);
    assert_memory_equal(talk.caller.self.key, nothing, CLUSTER_KEY_BYTES);
    assert_memory_equal(talk.caller.transcript, nothing, sizeof(nothing));
    talk.proof[20] ^= 1;
    (void)input(&talk.called, talk.proof, talk.proof);
    assert_refused(&talk.called, HANDSHAKE_PROOF);
    assert_memory_equal(talk.called.self.key, nothing, CLUSTER_KEY_BYTES);
}

/* Bytes of the messages, so that a change of the format shows. */
static void messages_are_as_documented(void **state)
{
    (void)state;
    static const uint8_t hello[] = {
        'H',  'K',  'S',  'H',  1,    4,    CALLER, CALLED, 3, 1, 1, 0, 1, 0, 0, 0, 0x88, 0x77,
        0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0,      0,      0, 0, 0, 0, 0, 0, 7, 7, 7};
    static const uint8_t answer[] = {
        'H',  'K',  'S',  'H',  2,    2,    CALLED, CALLER, 1, 3, 1, 0, 1, 0, 0, 0,   0x88,
        0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,   0,      0, 0, 0, 0, 0, 0, 0, 107, 107};
    static const uint8_t proof[] = {'H', 'K', 'S', 'H', 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct talk talk;

    talk_to_proof(&talk, 7);
    assert_memory_equal(talk.hello, hello, sizeof(hello));
    assert_memory_equal(talk.answer, answer, sizeof(answer));
    assert_memory_equal(talk.proof, proof, sizeof(proof));

    uint8_t expected[HELLO_BYTES];

    memcpy(expected, talk.hello, HELLO_BYTES);
    retag(expected, label_hello, NULL, 0);
    assert_memory_equal(expected, talk.hello, HELLO_BYTES);
    memcpy(expected, talk.answer, ANSWER_BYTES);
    retag(expected, label_answer, talk.hello, HELLO_BYTES);
    assert_memory_equal(expected, talk.answer, ANSWER_BYTES);
}

/* One bit, anywhere, ends it: at whoever gets the message. */
static void every_bit_counts(void **state)
{
    (void)state;
    struct talk talk;
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    for (uint32_t bit = 0; bit < 8 * HELLO_BYTES; bit++) {
        talk_begin(&talk, 1);
        talk.hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(input(&talk.called, talk.hello, out), 0);
        assert_int_equal(talk.called.state, HANDSHAKE_REFUSED);
        assert_int_not_equal(talk.called.refusal, HANDSHAKE_OK);
    }
    for (uint32_t bit = 0; bit < 8 * ANSWER_BYTES; bit++) {
        talk_to_answer(&talk, 1);
        talk.answer[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(input(&talk.caller, talk.answer, out), 0);
        assert_int_equal(talk.caller.state, HANDSHAKE_REFUSED);
    }
    for (uint32_t bit = 0; bit < 8 * PROOF_BYTES; bit++) {
        talk_to_proof(&talk, 1);
        talk.proof[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(input(&talk.called, talk.proof, out), 0);
        assert_int_equal(talk.called.state, HANDSHAKE_REFUSED);
    }
}

/* What a caller says with the key and one field changed, and why it is refused. */
static void hello_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t at, value;
        enum handshake_refusal refusal;
    } cases[] = {
        {0, 'X', HANDSHAKE_MAGIC},
        {AT_TYPE, 2, HANDSHAKE_MAGIC},
        {AT_TYPE, 0, HANDSHAKE_MAGIC},
        {AT_VERSION_MIN, 2, HANDSHAKE_VERSION}, /* above its own highest */
        {AT_VERSION_MAX, 0, HANDSHAKE_VERSION},
        {AT_CLUSTER, 1, HANDSHAKE_CLUSTER},
        {AT_WISHES, 2, HANDSHAKE_MAGIC}, /* unknown */
        {AT_RESERVED, 1, HANDSHAKE_MAGIC},
        {AT_RESERVED_MORE + 7, 1, HANDSHAKE_MAGIC},
        {AT_SOURCE, CALLED, HANDSHAKE_NODE}, /* our own id */
        {AT_SOURCE, 8, HANDSHAKE_NODE},      /* not configured */
        {AT_SOURCE, 64, HANDSHAKE_NODE},     /* no node at all */
        {AT_SOURCE, 255, HANDSHAKE_NODE},
        {AT_TARGET, 9, HANDSHAKE_NODE},
        {AT_TARGET_WORKER, 2, HANDSHAKE_WORKER},
        {AT_SOURCE_WORKER, 4, HANDSHAKE_WORKER},
        {AT_WORKERS, 0, HANDSHAKE_WORKER},
        {AT_WORKERS, 65, HANDSHAKE_WORKER},
    };
    struct talk talk;
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        talk_begin(&talk, 1);
        talk.hello[cases[i].at] = cases[i].value;
        retag(talk.hello, label_hello, NULL, 0);
        assert_int_equal(input(&talk.called, talk.hello, out), 0);
        assert_refused(&talk.called, cases[i].refusal);
    }
}

static void answer_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t at, value;
        enum handshake_refusal refusal;
    } cases[] = {
        {0, 'X', HANDSHAKE_MAGIC},
        {AT_TYPE, 1, HANDSHAKE_MAGIC},
        {AT_VERSION_MIN, 2, HANDSHAKE_VERSION},
        {AT_VERSION_MIN, 0, HANDSHAKE_VERSION}, /* a range where a choice is due */
        {AT_CLUSTER, 1, HANDSHAKE_CLUSTER},
        {AT_WISHES, 2, HANDSHAKE_MAGIC}, /* unknown */
        {AT_RESERVED, 1, HANDSHAKE_MAGIC},
        {AT_SOURCE, 9, HANDSHAKE_NODE}, /* another node than the one that was called */
        {AT_SOURCE, CALLER, HANDSHAKE_NODE},
        {AT_TARGET, 9, HANDSHAKE_NODE},
        {AT_SOURCE_WORKER, 0, HANDSHAKE_WORKER},
        {AT_TARGET_WORKER, 0, HANDSHAKE_WORKER},
        {AT_WORKERS, 1, HANDSHAKE_WORKER}, /* fewer than the worker that answers */
        {AT_WORKERS, 65, HANDSHAKE_WORKER},
    };
    struct talk talk;
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        talk_to_answer(&talk, 1);
        talk.answer[cases[i].at] = cases[i].value;
        retag(talk.answer, label_answer, talk.hello, HELLO_BYTES);
        assert_int_equal(input(&talk.caller, talk.answer, out), 0);
        assert_refused(&talk.caller, cases[i].refusal);
    }
}

/* A later version that still speaks ours is met at ours; one that does not is refused. */
static void highest_common_version(void **state)
{
    (void)state;
    struct talk talk;
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    talk_begin(&talk, 1);
    put_u16(talk.hello + AT_VERSION_MAX, 7);
    retag(talk.hello, label_hello, NULL, 0);
    assert_int_equal(input(&talk.called, talk.hello, out), ANSWER_BYTES);
    assert_int_equal(get_u16(out + AT_VERSION_MIN), 1);
    assert_int_equal(get_u16(out + AT_VERSION_MAX), 1);

    talk_begin(&talk, 1);
    put_u16(talk.hello + AT_VERSION_MIN, 2);
    put_u16(talk.hello + AT_VERSION_MAX, 7);
    retag(talk.hello, label_hello, NULL, 0);
    assert_int_equal(input(&talk.called, talk.hello, out), 0);
    assert_refused(&talk.called, HANDSHAKE_VERSION);
}

/* Somebody without the key is told nothing at all, and the operator of two nodes with different
 * keys sees "proof" on the node that was called. */
static void another_key_is_refused(void **state)
{
    (void)state;
    struct talk talk;
    struct handshake_self stranger = self_of(CALLER, 4);
    uint8_t nonce[HANDSHAKE_NONCE_BYTES] = {1};
    uint8_t hello[HANDSHAKE_MESSAGE_MAX], out[HANDSHAKE_MESSAGE_MAX];

    stranger.key[31] ^= 0x80;
    talk_begin(&talk, 1);
    (void)handshake_call(&talk.caller, &stranger, nonce, CALLED, 1, 3, hello);
    memset(out, 0xee, sizeof(out));
    assert_int_equal(input(&talk.called, hello, out), 0);
    assert_refused(&talk.called, HANDSHAKE_PROOF);
    for (size_t i = 0; i < sizeof(out); i++)
        assert_int_equal(out[i], 0xee);
}

/* What a node has said is no answer to it. */
static void reflection_is_refused(void **state)
{
    (void)state;
    struct talk talk;
    struct handshake called_too;
    struct handshake_self self = self_of(CALLER, 4);
    uint8_t nonce[HANDSHAKE_NONCE_BYTES] = {9};
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    /* The HELLO as its own answer. */
    talk_begin(&talk, 1);
    assert_int_equal(input(&talk.caller, talk.hello, out), 0);
    assert_refused(&talk.caller, HANDSHAKE_MAGIC);
    /* The HELLO on another connection to the node that said it. */
    handshake_listen(&called_too, &self, nonce, NODES);
    assert_int_equal(input(&called_too, talk.hello, out), 0);
    assert_refused(&called_too, HANDSHAKE_NODE);
    /* The ANSWER's tag as the PROOF's. */
    talk_to_answer(&talk, 1);
    uint8_t proof[PROOF_BYTES] = {'H', 'K', 'S', 'H', 3};
    memcpy(proof + 16, talk.answer + AT_TAG, 32);
    (void)input(&talk.called, proof, out);
    assert_refused(&talk.called, HANDSHAKE_PROOF);
    /* The same with its own HELLO's. */
    talk_to_answer(&talk, 1);
    memcpy(proof + 16, talk.hello + AT_TAG, 32);
    (void)input(&talk.called, proof, out);
    assert_refused(&talk.called, HANDSHAKE_PROOF);
}

/* All that a caller once said, said again: the responder's nonce is another one. */
static void replay_is_refused(void **state)
{
    (void)state;
    struct talk old, now;
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    talk_to_proof(&old, 1);
    talk_begin(&now, 2);
    assert_int_equal(input(&now.called, old.hello, now.answer), ANSWER_BYTES);
    assert_int_equal(input(&now.called, old.proof, out), 0);
    assert_refused(&now.called, HANDSHAKE_PROOF);
    /* And all that a responder once said. */
    talk_begin(&now, 2);
    assert_int_equal(input(&now.caller, old.answer, out), 0);
    assert_refused(&now.caller, HANDSHAKE_PROOF);
}

static void over_is_over(void **state)
{
    (void)state;
    struct talk talk;
    uint8_t out[HANDSHAKE_MESSAGE_MAX];

    talk_to_proof(&talk, 1);
    assert_int_equal(handshake_input(&talk.caller, talk.answer, out), 0);
    assert_int_equal(talk.caller.state, HANDSHAKE_DONE);
    (void)input(&talk.called, talk.hello, out); /* not the message that is due */
    assert_refused(&talk.called, HANDSHAKE_MAGIC);
    assert_int_equal(handshake_input(&talk.called, talk.proof, out), 0);
    assert_refused(&talk.called, HANDSHAKE_MAGIC);
}

static void refusals_have_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HANDSHAKE_REFUSALS; i++)
        assert_non_null(handshake_refusal_names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_agree),
        cmocka_unit_test(wishes_meet),
        cmocka_unit_test(keys_differ_by_session),
        cmocka_unit_test(key_is_wiped),
        cmocka_unit_test(messages_are_as_documented),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(hello_is_refused),
        cmocka_unit_test(answer_is_refused),
        cmocka_unit_test(highest_common_version),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(reflection_is_refused),
        cmocka_unit_test(replay_is_refused),
        cmocka_unit_test(over_is_over),
        cmocka_unit_test(refusals_have_names),
    };

    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
