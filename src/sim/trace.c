#include "sim/trace.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/meta.h"
#include "engine/hermes/hermes.h"
#include "engine/hermes/messages.h"
#include "engine/zeus/zeus.h"
#include "sim/world.h"
#include "view/message.h"
#include "wire/lane.h"
#include "wire/msg.h"

void trace_init(struct trace *trace, FILE *to)
{
    *trace = (struct trace){.to = to, .hash = 0x686f726b6f73};
    hash_secret_init(&trace->secret, 1);
}

void trace_note(struct trace *trace, uint64_t value)
{
    uint64_t mixed = (trace->hash ^ value) * 0x9e3779b97f4a7c15u;
    trace->hash = mixed ^ (mixed >> 29);
}

void trace_note_bytes(struct trace *trace, struct bytes bytes)
{
    trace_note(trace, hash_bytes(&trace->secret, bytes));
}

static void trace_head(const struct world *world)
{
    fprintf(world->trace.to, "[%7" PRIu64 "] %6" PRIu64 ".%03" PRIu64 " ", world->step,
            world->now_us / 1000, world->now_us % 1000);
}

void trace_line(struct world *world, const char *format, ...)
{
    if (!trace_wanted(&world->trace)) {
        return;
    }
    trace_head(world);
    va_list list;
    va_start(list, format);
    vfprintf(world->trace.to, format, list);
    va_end(list);
    fputc('\n', world->trace.to);
}

static void print_set(FILE *to, const char *name, nodeset set)
{
    fprintf(to, " %s {", name);
    for (nodeset rest = set; rest != 0; rest &= rest - 1) {
        fprintf(to, "%s%u", rest == set ? "" : " ", nodeset_first(rest));
    }
    fprintf(to, "}");
}

static void print_view(FILE *to, const struct view *view)
{
    fprintf(to, " view %" PRIu32 " of %" PRIx64, view->epoch, view->generation);
    print_set(to, "operational", view->operational);
    print_set(to, "shadows", view->live & ~view->operational);
}

static void print_ballot(FILE *to, const char *name, const struct view_ballot *ballot)
{
    fprintf(to, " %s %" PRIu64 ".%u", name, ballot->round, ballot->node);
}

static void print_view_msg(FILE *to, struct bytes body)
{
    struct view_msg m;
    if (view_msg_decode(body, &m) != HK_OK) {
        fprintf(to, " view message that does not decode");
        return;
    }
    fprintf(to, " %s holding epoch %" PRIu32, view_msg_name(m.kind), m.epoch);
    switch (m.kind) {
    case VIEW_MSG_HEARTBEAT:
        fprintf(to, " sent %" PRIu64 " admitted %" PRIu32 " flags %u", m.heartbeat.sent_us,
                m.heartbeat.admitted, m.heartbeat.flags);
        print_set(to, "heard", m.heartbeat.heard);
        break;
    case VIEW_MSG_GRANT:
        fprintf(to, " sent %" PRIu64 " to %" PRIx64, m.grant.sent_us, m.grant.holder);
        break;
    case VIEW_MSG_VIEW:
        print_view(to, &m.view);
        break;
    case VIEW_MSG_PREPARE:
        print_ballot(to, "ballot", &m.prepare.ballot);
        fprintf(to, " instance %" PRIu32, m.prepare.instance);
        print_set(to, "drops", m.prepare.drops);
        break;
    case VIEW_MSG_PROMISE:
        print_ballot(to, "ballot", &m.promise.ballot);
        print_ballot(to, "accepted", &m.promise.accepted);
        print_view(to, &m.promise.view);
        break;
    case VIEW_MSG_ACCEPT:
        print_ballot(to, "ballot", &m.accept.ballot);
        print_view(to, &m.accept.view);
        break;
    case VIEW_MSG_ACCEPTED:
        print_ballot(to, "ballot", &m.accepted.ballot);
        break;
    case VIEW_MSG_REFUSE:
        print_ballot(to, "ballot", &m.refuse.ballot);
        print_ballot(to, "promised", &m.refuse.promised);
        break;
    default:
        break;
    }
}

static const char *owned_name(uint8_t kind)
{
    if (kind >= COMMIT_MSG_INV) {
        return kind < COMMIT_MSG_END ? commit_kind_names[kind - COMMIT_MSG_INV] : "?";
    }
    return kind > 0 && kind < OWN_MSG_END ? own_kind_names[kind] : "?";
}

const char *trace_msg_name(const struct world *world, uint8_t kind)
{
    switch (kind) {
    case MSG_CHUNK_ASK:
        return "CHUNK_ASK";
    case MSG_CHUNK:
        return "CHUNK";
    default:
        if (world->setup.engine == &zeus_ops) {
            return owned_name(kind);
        }
        return world->setup.engine == &hermes_ops && kind > 0 && kind < HERMES_KIND_END
                   ? hermes_kind_names[kind]
                   : "?";
    }
}

/* Keys of the simulator are text; others show only their length. */
static void print_key(FILE *to, struct bytes key)
{
    uint32_t n = 0;
    while (n < key.n && key.at[n] > ' ' && key.at[n] < 0x7f && key.at[n] != '.') {
        n++;
    }
    fprintf(to, " key %.*s/%" PRIu32, (int)n, n > 0 ? (const char *)key.at : "", key.n);
}

/* What a message of ownership says beside its key. */
static void print_owned(FILE *to, const struct msg *m)
{
    static const char *const types[OWN_TYPES] = {"-",    "OWNER",  "READER",
                                                 "TRIM", "DEGREE", "DESTROY"};
    struct own_body b;
    own_body_decode(m, &b);
    fprintf(to, " %s by %u.%" PRIu32 " seq %" PRIu32 ".%" PRIu32, types[b.request.type],
            b.request.requester, b.request.admitted, b.request.seq, b.request.retry);
    if (b.request.type == OWN_TRIM) {
        fprintf(to, " of %u", b.request.target);
    }
    fprintf(to, "%s%s vector %u", b.request.has_data ? " has data" : "",
            b.request.create ? " creates" : "", b.vector.owner);
    print_set(to, "+", b.vector.readers);
    fprintf(to, " of %" PRIu32, b.vector.epoch);
    if (b.version != 0) {
        fprintf(to, " version %" PRIu64 ".%" PRIu32 "%s", stamp_version(b.version),
                stamp_cid(b.version), b.value ? " with value" : "");
    }
    fprintf(to, "%s%s", b.replay ? " replay" : "", b.owner ? " from the owner" : "");
    if (b.nack != 0) {
        fprintf(to, " because %u", b.nack);
    }
}

static void print_batch(struct world *world, struct bytes body)
{
    FILE *to = world->trace.to;
    while (body.n > 0) {
        struct msg m;
        uint32_t used = 0;
        if (msg_decode(body, &m, &used) != HK_OK) {
            fprintf(to, "\n          message that does not decode");
            return;
        }
        body = bytes_of(body.at + used, body.n - used);
        fprintf(to, "\n          %s %u flags %x epoch %" PRIu32 " ts %" PRIu64 ".%" PRIu32,
                trace_msg_name(world, m.kind), m.kind, m.flags, m.epoch, stamp_version(m.ts),
                stamp_cid(m.ts));
        fprintf(to, " slot %" PRIx32 ".%" PRIu32 " arg %" PRIx64, m.slot, m.gen, m.arg);
        if (m.key.n > 0) {
            print_key(to, m.key);
        }
        if (world->setup.engine == &zeus_ops && m.kind > 0 && m.kind < OWN_MSG_RECOVERED &&
            own_msg_invalid(&m) == NULL) {
            print_owned(to, &m);
        } else if (m.value.n > 0 || m.vflags != 0) {
            uint64_t head = 0;
            for (uint32_t i = 0; i < m.value.n && i < 8; i++) {
                head |= (uint64_t)m.value.at[i] << 8 * i;
            }
            fprintf(to, " value %" PRIu64 "/%" PRIu32 " vflags %x", head, m.value.n, m.vflags);
        }
    }
}

static void print_lane(struct world *world, struct bytes body)
{
    FILE *to = world->trace.to;
    struct lane_head head;
    const char *why = lane_head_decode(body, &head);
    if (why != NULL) {
        fprintf(to, " lane: %s", why);
        return;
    }
    fprintf(to, " lane of %" PRIu32 ": %" PRIu64, head.life, head.sequence);
    if (head.acks) {
        fprintf(to, ", lane %u has %" PRIu64 "%s", head.acked_lane, head.acked,
                head.gap ? " and a gap" : "");
    }
    print_batch(world, bytes_of(body.at + LANE_HEAD, body.n - LANE_HEAD));
}

void trace_frame(struct world *world, const char *what, const struct frame *f)
{
    FILE *to = world->trace.to;
    if (to == NULL) {
        return;
    }
    trace_head(world);
    fprintf(to, "frame %u/%u -> %u/%u %s, epoch %" PRIu32 ":", f->source, f->source_worker,
            f->target, f->target_worker, what, f->epoch);
    if (f->kind == FRAME_VIEW) {
        print_view_msg(to, f->body);
    } else if (f->kind == FRAME_LANE) {
        print_lane(world, f->body);
    } else {
        print_batch(world, f->body);
    }
    fputc('\n', to);
}

void trace_view(struct world *world, uint8_t node, const struct view *view)
{
    FILE *to = world->trace.to;
    if (to == NULL) {
        return;
    }
    trace_head(world);
    fprintf(to, "node %u holds", node);
    print_view(to, view);
    fputc('\n', to);
}
