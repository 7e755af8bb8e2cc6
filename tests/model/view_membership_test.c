/* The view protocol at work: forming, losing, dropping and admitting nodes, leaving, changing the
 * configured set, recovering; how quickly, and that nothing changes without a cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/view_cluster.h"
#include "view/steps.h"

static struct view_cluster cluster;

/* Started, not yet formed. */
static struct view_cluster *started(uint32_t n, uint64_t seed)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, n, seed);
    for (uint8_t i = 0; i < n; i++) {
        (void)view_cluster_start(c, i);
    }
    return c;
}

static void run_ms(struct view_cluster *c, uint64_t ms)
{
    view_cluster_run(c, c->now + ms * 1000);
    if (c->violation != NULL) {
        fail_msg("%s", c->violation);
    }
}

static struct view_cluster *formed(uint32_t n, uint64_t seed)
{
    struct view_cluster *c = started(n, seed);
    run_ms(c, 100);
    assert_true(view_cluster_settled(c));
    assert_int_equal(c->decided_n, 1);
    return c;
}

static const struct view *last(const struct view_cluster *c)
{
    return &c->decided[c->decided_n - 1];
}

static void crash(struct view_cluster *c, uint8_t node)
{
    view_cluster_crash(c, c->node[node].current);
    c->node[node].started = false;
}

static void event(struct view_cluster *c, uint8_t node, struct view_event e)
{
    view_cluster_event(c, c->node[node].current, e);
}

static enum view_status status(struct view_cluster *c, uint8_t node)
{
    return view_status(view_cluster_machine(c, node), view_cluster_clock(c, node));
}

static void forms_when_all_are_there(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 7; n++) {
        struct view_cluster *c = started(n, n);
        run_ms(c, 100);
        assert_true(view_cluster_settled(c));
        assert_int_equal(c->decided_n, 1);
        assert_int_equal(last(c)->operational, ((nodeset)1 << n) - 1);
        assert_int_equal(status(c, 0), VIEW_STATUS_SERVING);
    }
}

static void waits_for_a_node_that_is_missing(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 1);
    (void)view_cluster_start(c, 0);
    (void)view_cluster_start(c, 2);
    run_ms(c, 1000);
    assert_int_equal(c->decided_n, 0);
    assert_int_equal(status(c, 0), VIEW_STATUS_FORMING);
    (void)view_cluster_start(c, 1);
    run_ms(c, 100);
    assert_true(view_cluster_settled(c));
}

static void waits_while_configurations_differ(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 1);
    (void)view_cluster_start(c, 0);
    (void)view_cluster_start(c, 1);
    c->config.configured = 0x0f;
    (void)view_cluster_start(c, 2);
    run_ms(c, 1000);
    assert_int_equal(c->decided_n, 0);
}

/* After a cut of all power the operator says --bootstrap on one node, which is enough. */
/* The proposer of the first view keeps it as decided and dies before anybody hears of that. Its
 * successor, which kept state, must help the others to decide the same view again. */
static void a_first_view_survives_who_decided_it(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 5; n += 2) {
        struct view_cluster *c = started(n, n);
        while (c->decided_n == 0 || c->node[0].kept_epoch == 0) {
            view_cluster_run(c, c->now + 10);
            assert_true(c->now < 10000000);
        }
        view_cluster_by_hand(c); /* what is on its way is lost */
        c->manual = false;
        for (uint8_t i = 1; i < n; i++) {
            assert_int_equal(view_current(view_cluster_machine(c, i))->epoch, 0);
        }
        crash(c, 0);
        (void)view_cluster_start(c, 0);
        run_ms(c, 5000);
        assert_true(view_cluster_settled(c));
        assert_int_equal(c->decided[0].generation, last(c)->generation);
    }
}

static void bootstraps_when_told(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    uint64_t generation = last(c)->generation;
    for (uint8_t i = 0; i < 3; i++) {
        view_cluster_crash(c, c->node[i].current);
    }
    for (uint8_t i = 0; i < 3; i++) {
        assert_int_equal(c->node[i].kept_generation, generation);
        (void)view_cluster_start(c, i);
    }
    run_ms(c, 500);
    assert_int_equal(c->decided_n, 1);
    for (uint8_t i = 0; i < 3; i++) {
        assert_int_equal(status(c, i), VIEW_STATUS_REFUSING);
    }
    view_cluster_crash(c, c->node[1].current);
    c->config.bootstrap = true;
    (void)view_cluster_start(c, 1);
    /* What the cluster checks across generations does not hold for a new start over nothing. */
    c->decided_n = 0;
    run_ms(c, 200);
    assert_true(view_cluster_settled(c));
    assert_int_equal(c->decided_n, 1);
    assert_int_not_equal(last(c)->generation, generation);
}

/* --bootstrap beside living peers is no bootstrap: the node joins. */
static void bootstrap_beside_a_view_joins(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    crash(c, 2);
    run_ms(c, 300);
    assert_int_equal(c->decided_n, 2);
    c->config.bootstrap = true;
    (void)view_cluster_start(c, 2);
    run_ms(c, 300);
    assert_true(view_cluster_settled(c));
    assert_int_equal(last(c)->generation, c->decided[0].generation);
}

/* Whoever crashes, the next view is there when the lease has run out, plus a few message delays. */
static void drops_the_dead_in_a_lease(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct view_cluster *c = formed(seed % 2 == 0 ? 3 : 5, seed);
        uint8_t victim = (uint8_t)(seed % c->nodes);
        run_ms(c, seed);
        uint64_t at = c->now;
        crash(c, victim);
        view_cluster_run(c, at + c->config.lease_us + 6 * c->delay_us_max);
        assert_null(c->violation);
        assert_int_equal(c->decided_n, 2);
        assert_true(view_cluster_settled(c));
        assert_false(nodeset_has(last(c)->live, victim));
        run_ms(c, 500);
        assert_int_equal(c->decided_n, 2);
    }
}

static void drops_two_of_five(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct view_cluster *c = formed(5, seed);
        uint8_t one = (uint8_t)(seed % 5), two = (uint8_t)((seed / 5 + seed + 1) % 5);
        crash(c, one);
        view_cluster_run(c, c->now + seed * 2000);
        uint64_t at = c->now;
        crash(c, two);
        /* The second may die while the view without the first waits for grants. */
        view_cluster_run(c, at + 2 * c->config.lease_us + 10 * c->delay_us_max);
        assert_null(c->violation);
        assert_true(view_cluster_settled(c));
        assert_false(nodeset_has(last(c)->live, one) || nodeset_has(last(c)->live, two));
        run_ms(c, 500);
        assert_true(c->decided_n <= 3);
    }
}

/* A node that is gone and one that remains of three are no majority, and say so. */
static void a_lost_majority_says_so(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 4);
    crash(c, 1);
    crash(c, 2);
    run_ms(c, 1000);
    assert_int_equal(c->decided_n, 1);
    assert_int_equal(status(c, 0), VIEW_STATUS_LOST);
    assert_false(view_cluster_leased(c, c->node[0].current));
}

/* A node restarts at once: its old process is dropped and the new one admitted in one view. */
static void restarts_in_place(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct view_cluster *c = formed(3, seed);
        uint8_t node = (uint8_t)(seed % 3);
        crash(c, node);
        run_ms(c, 1);
        (void)view_cluster_start(c, node);
        run_ms(c, 250);
        assert_true(view_cluster_settled(c));
        assert_int_equal(c->decided_n, 3);
        assert_int_equal(c->decided[1].live, 0x07);
        assert_int_equal(c->decided[1].members[node].role, VIEW_ROLE_SHADOW);
        assert_int_equal(c->decided[2].members[node].admitted, 2);
    }
}

/* Leaving gives the lease up, so nobody waits for it. */
static void leaves_at_once(void **state)
{
    (void)state;
    for (uint8_t node = 0; node < 3; node++) {
        struct view_cluster *c = formed(3, node);
        uint32_t process = c->node[node].current;
        uint64_t at = c->now;
        assert_true(view_cluster_leased(c, process));
        event(c, node, (struct view_event){.kind = VIEW_EVENT_LEAVE});
        assert_false(view_cluster_leased(c, process));
        c->node[node].started = false;
        view_cluster_run(c, at + 6 * c->delay_us_max);
        assert_int_equal(c->decided_n, 2);
        assert_true(c->process[process].left);
        assert_true(view_cluster_settled(c));
        run_ms(c, 500);
        assert_int_equal(c->decided_n, 2);
    }
}

static void the_last_one_leaves_alone(void **state)
{
    (void)state;
    struct view_cluster *c = formed(1, 1);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_LEAVE});
    assert_true(c->process[0].left);
}

/* Two are told to leave while the third, back from a crash, is no member yet: nobody but those who
 * leave can let it in, and only then can one of them go. */
static void those_who_leave_let_others_in(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 4);
    crash(c, 1);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_LEAVE});
    event(c, 2, (struct view_event){.kind = VIEW_EVENT_LEAVE});
    (void)view_cluster_start(c, 1);
    run_ms(c, 3000);
    assert_true(nodeset_has(last(c)->operational, 1));
    assert_int_equal(nodeset_count(last(c)->live), 2);
}

/* A silent member may be alive, and one that is kept may be dead. A view that drops the first and
 * keeps the second has no majority once the first has wiped itself: nobody is kept unheard. */
static void keeps_nobody_unheard(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct view_cluster *c = formed(3, seed);
        c->cut[0] = nodeset_of(1); /* node 1 does not hear node 0 for a while ... */
        run_ms(c, c->config.suspect_us * 3 / 4000);
        crash(c, 2); /* ... and node 2 dies before node 1 has noticed */
        run_ms(c, c->config.suspect_us / 2000);
        c->cut[0] = 0;
        run_ms(c, 2000);
        assert_int_equal(last(c)->live, nodeset_of(0) | nodeset_of(1));
        assert_true(view_cluster_leased(c, c->node[0].current));
        assert_true(view_cluster_leased(c, c->node[1].current));
    }
}

/* Paused for longer than a lease: dropped, told so on its return, wiped, admitted anew. */
static void comes_back_by_itself_after_a_pause(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    uint32_t process = c->node[1].current;
    c->process[process].paused = true;
    run_ms(c, 400);
    assert_int_equal(c->decided_n, 2);
    c->process[process].paused = false;
    c->process[process].tick_at = c->now;
    run_ms(c, 300);
    assert_true(c->process[process].wiped);
    assert_true(view_cluster_settled(c));
    assert_int_equal(c->decided_n, 4);
}

/* Everybody was paused, as on a host that slept: nobody is to blame, nothing changes. */
static void a_pause_of_all_changes_nothing(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    for (uint32_t i = 0; i < 3; i++) {
        c->process[i].paused = true;
    }
    run_ms(c, 5000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(view_cluster_leased(c, i));
        c->process[i].paused = false;
        c->process[i].tick_at = c->now + i * 1000;
    }
    run_ms(c, 500);
    assert_true(view_cluster_settled(c));
    assert_int_equal(c->decided_n, 1);
}

/* The view reaches one node much later than the others: it keeps its lease until that runs out,
 * gets no new one before it knows the view, and then goes on. */
static void learns_late(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    crash(c, 2);
    run_ms(c, c->config.lease_us / 1000 - 25);
    while (c->decided_n == 1) {
        view_cluster_run(c, c->now + 100);
    }
    /* Decided this moment: cut the link before anybody is told. */
    uint8_t late = view_cluster_machine(c, 0)->view.epoch == 2 ? 1 : 0;
    view_cluster_cut(c, 0, 1, true);
    uint32_t process = c->node[late].current;
    view_cluster_run(c, c->now + 3000);
    if (c->process[process].machine.view.epoch == 1) {
        assert_false(view_confirms(&c->process[process].machine, 1));
        assert_true(view_cluster_leased(c, process));
        run_ms(c, c->config.lease_us / 1000);
        assert_false(view_cluster_leased(c, process));
    }
    view_cluster_mend(c);
    run_ms(c, 300);
    assert_true(view_cluster_settled(c));
}

/* A - B - C with A - C cut: one end is dropped, stays out as long as the cut lasts (it could not
 * talk with every member), and returns by itself. */
static void a_bridge_does_not_flap(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct view_cluster *c = formed(3, seed);
        view_cluster_cut(c, (uint8_t)(seed % 3), (uint8_t)((seed + 1) % 3), true);
        run_ms(c, 4000);
        assert_int_equal(c->decided_n, 2);
        assert_int_equal(nodeset_count(last(c)->live), 2);
        view_cluster_mend(c);
        run_ms(c, 400);
        assert_true(view_cluster_settled(c));
        assert_int_equal(c->decided_n, 4);
    }
}

/* A node that sends but hears nobody has no lease and acknowledges nothing: it is dropped. */
static void drops_the_deaf(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    c->cut[1] = nodeset_of(0);
    c->cut[2] = nodeset_of(0);
    run_ms(c, 600);
    assert_int_equal(c->decided_n, 2);
    assert_int_equal(last(c)->live, 0x06);
    view_cluster_mend(c);
    run_ms(c, 400);
    assert_true(view_cluster_settled(c));
}

/* Heartbeats go on, but INVs are not acknowledged: the engine's word is enough. */
static void drops_whom_the_engine_suspects(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    event(c, 1, (struct view_event){.kind = VIEW_EVENT_SUSPECT, .node = 2});
    run_ms(c, 200);
    assert_false(view_has(&c->decided[1], 2, c->process[2].machine.config.nonce));
    run_ms(c, 300);
    assert_true(view_cluster_settled(c));
}

/* 2 is dead, 0 and 1 were cut off from each other, so nobody could be dropped. What waited for 1
 * meanwhile is old when they meet again: that speaks against nobody, until a lease has passed in
 * which it could be answered. Otherwise 1 is dropped as soon as 2 is back, as a shadow that may
 * die. */
static void a_partition_that_ends_costs_nobody(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    struct view_event suspect = {.kind = VIEW_EVENT_SUSPECT, .node = 1};
    crash(c, 2);
    run_ms(c, 300);
    assert_int_equal(c->decided_n, 2);
    view_cluster_cut(c, 0, 1, true);
    run_ms(c, 1000);
    view_cluster_mend(c);
    (void)view_cluster_start(c, 2);
    for (uint32_t ms = 0; ms < 60; ms++) {
        event(c, 0, suspect);
        run_ms(c, 1);
    }
    run_ms(c, 1000);
    assert_int_equal(nodeset_count(last(c)->live), 3);
    uint32_t decided = c->decided_n;
    for (uint32_t i = 1; i < decided; i++) {
        assert_true(view_has(&c->decided[i], 1, c->process[1].machine.config.nonce));
    }
    event(c, 0, suspect);
    run_ms(c, 600);
    assert_false(view_has(&c->decided[decided], 1, c->process[1].machine.config.nonce));
}

/* A second process that claims a node's id while the first lives stays outside. */
static void an_impostor_stays_outside(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    uint32_t impostor = view_cluster_start(c, 1);
    run_ms(c, 2000);
    assert_int_equal(c->decided_n, 1);
    assert_true(view_cluster_leased(c, 1));
    assert_false(view_self_member(&c->process[impostor].machine));
}

static void quiet_clusters_change_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct view_cluster *c = formed(seed % 2 == 0 ? 3 : 5, seed);
        c->loss_ppm = 20000;
        c->twice_ppm = 20000;
        c->slow_ppm = 20000;
        c->slow_us_max = 20000;
        run_ms(c, 5000);
        assert_int_equal(c->decided_n, 1);
        assert_true(view_cluster_settled(c));
    }
}

static void grows_and_shrinks(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 5, 1);
    c->config.configured = 0x07;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    run_ms(c, 100);
    assert_true(view_cluster_settled(c));
    c->config.configured = 0x1f;
    (void)view_cluster_start(c, 3);
    (void)view_cluster_start(c, 4);
    run_ms(c, 200);
    assert_int_equal(c->decided_n, 1);
    event(c, 1, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x1f});
    run_ms(c, 400);
    assert_true(view_cluster_settled(c));
    assert_int_equal(last(c)->configured, 0x1f);
    assert_int_equal(last(c)->configured_old, 0);
    assert_int_equal(last(c)->operational, 0x1f);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(c->process[i].alive);
    }

    event(c, 4, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x1c});
    run_ms(c, 400);
    c->node[0].started = c->node[1].started = false;
    assert_int_equal(last(c)->configured, 0x1c);
    assert_int_equal(last(c)->configured_old, 0);
    assert_int_equal(last(c)->operational, 0x1c);
    assert_true(view_cluster_settled(c));
    assert_false(view_cluster_leased(c, c->node[0].current));
    assert_int_equal(status(c, 0), VIEW_STATUS_JOINING);
    uint32_t views = c->decided_n;
    run_ms(c, 1000);
    assert_int_equal(c->decided_n, views);
}

/* All three nodes are replaced by three others, with data carried over by the shadows. */
static void moves_to_other_nodes(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 6, 1);
    c->config.configured = 0x07;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    run_ms(c, 100);
    c->config.configured = 0x3f;
    for (uint8_t i = 3; i < 6; i++) {
        (void)view_cluster_start(c, i);
    }
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x38});
    run_ms(c, 600);
    for (uint8_t i = 0; i < 3; i++) {
        c->node[i].started = false;
    }
    assert_int_equal(last(c)->configured, 0x38);
    assert_int_equal(last(c)->configured_old, 0);
    assert_true(view_cluster_settled(c));
}

/* The operator changes his mind before an order could be carried out: once another set is
 * configured, the first order is void, though the node that heard it has not heard the second. */
static void later_order_counts(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 5, 1);
    c->config.configured = 0x07;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    run_ms(c, 100);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x19});
    run_ms(c, 200);
    assert_int_equal(c->decided_n, 1); /* two of the three are not there */
    c->config.configured = 0x1f;
    (void)view_cluster_start(c, 3);
    event(c, 1, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x0f});
    run_ms(c, 400);
    assert_int_equal(last(c)->configured, 0x0f);
    assert_int_equal(last(c)->configured_old, 0);
    (void)view_cluster_start(c, 4);
    run_ms(c, 600);
    assert_int_equal(last(c)->configured, 0x0f);
}

/* The old configured set needs node 2, a shadow, for its majority, so that it cannot be dropped;
 * and as it leaves it will never be operational. It holds nobody up. */
static void a_shadow_that_leaves_holds_no_change_up(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 4, 1);
    c->config.configured = 0x07;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    run_ms(c, 100);
    crash(c, 2);
    run_ms(c, 600);
    assert_int_equal(last(c)->live, 0x03);
    c->copy_us_max = 0;
    c->config.configured = 0x0f;
    uint32_t shadow = view_cluster_start(c, 2);
    c->process[shadow].stuck = true; /* and so no shadow for long */
    uint32_t newcomer = view_cluster_start(c, 3);
    c->process[newcomer].stuck = true;
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x0d});
    run_ms(c, 100);
    assert_int_equal(last(c)->configured_old, 0x07);
    assert_int_equal(last(c)->live, 0x0f);
    assert_int_equal(last(c)->operational, 0x03);

    event(c, 1, (struct view_event){.kind = VIEW_EVENT_LEAVE});
    run_ms(c, 100);
    event(c, 2, (struct view_event){.kind = VIEW_EVENT_LEAVE});
    run_ms(c, 100);
    assert_int_equal(last(c)->live, 0x0d);
    c->process[newcomer].stuck = false;
    event(c, 3, (struct view_event){.kind = VIEW_EVENT_ADOPTED, .epoch = last(c)->epoch});
    event(c, 3, (struct view_event){.kind = VIEW_EVENT_COPIED});
    run_ms(c, 500);
    assert_int_equal(last(c)->configured, 0x0d);
    assert_int_equal(last(c)->configured_old, 0);
    assert_int_equal(last(c)->live, 0x09);
    assert_int_equal(last(c)->operational, 0x09);
    assert_true(c->process[shadow].left);
}

/* Two of three are lost for good; the operator says so; the old processes, should they come back,
 * learn that they were left behind; and the cluster can grow again. */
static void recovers_when_told(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    uint64_t generation = last(c)->generation;
    c->process[1].paused = true;
    crash(c, 2);
    c->node[1].started = false;
    run_ms(c, 500);
    assert_int_equal(status(c, 0), VIEW_STATUS_LOST);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = 0x01});
    run_ms(c, 300);
    assert_true(view_cluster_settled(c));
    assert_int_equal(last(c)->configured, 0x01);
    assert_int_equal(last(c)->generation_old, generation);
    assert_int_equal(c->node[0].kept_generation, last(c)->generation);
    assert_int_equal(status(c, 0), VIEW_STATUS_SERVING);

    c->process[1].paused = false;
    c->process[1].tick_at = c->now;
    (void)view_cluster_start(c, 2);
    run_ms(c, 300);
    assert_true(c->process[1].wiped);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x07});
    run_ms(c, 400);
    assert_true(view_cluster_settled(c));
    assert_int_equal(last(c)->operational, 0x07);
}

/* Two survivors of five agree; what one of them alone accepted before is not forgotten. */
static void recovers_with_two_of_five(void **state)
{
    (void)state;
    struct view_cluster *c = formed(5, 1);
    for (uint8_t i = 2; i < 5; i++) {
        crash(c, i);
    }
    run_ms(c, 500);
    event(c, 1, (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = 0x07});
    run_ms(c, 500);
    assert_int_equal(c->decided_n, 1);
    event(c, 1, (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = 0x03});
    run_ms(c, 300);
    assert_true(view_cluster_settled(c));
    assert_int_equal(last(c)->configured, 0x03);
    assert_int_equal(last(c)->operational, 0x03);
}

/* A survivor dies in the middle of a recover that the others have accepted: they recover without
 * it, for nobody was served by what it may have decided. */
static void recovers_again_without_a_survivor(void **state)
{
    (void)state;
    struct view_cluster *c = formed(7, 1);
    const uint32_t requests = 1u << VIEW_MSG_PREPARE | 1u << VIEW_MSG_ACCEPT;
    const uint32_t answers = 1u << VIEW_MSG_PROMISE | 1u << VIEW_MSG_ACCEPTED;
    for (uint8_t i = 3; i < 7; i++) {
        crash(c, i);
    }
    run_ms(c, 500);
    view_cluster_by_hand(c);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = 0x07});
    /* Whoever recover leaves out may hold a lease by grants of the dead until these run out. */
    assert_int_equal(view_cluster_deliver(c, 0, 1, requests), 0);
    c->now += c->config.lease_us;
    view_cluster_tick(c, 0);
    for (uint8_t i = 1; i < 3; i++) {
        assert_int_equal(view_cluster_deliver(c, 0, i, requests), 1);
        assert_int_equal(view_cluster_deliver(c, i, 0, answers), 1);
    }
    assert_int_equal(view_cluster_deliver(c, 0, 1, requests), 1);
    assert_int_equal(view_cluster_deliver(c, 1, 0, answers), 1);
    crash(c, 2);
    assert_int_equal(c->decided_n, 1);

    (void)view_cluster_lose(c, CLUSTER_ALL, CLUSTER_ALL, UINT32_MAX);
    c->manual = false;
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = 0x03});
    c->process[1].tick_at = c->now;
    run_ms(c, 1000);
    assert_true(view_cluster_settled(c));
    assert_int_equal(c->decided_n, 2);
    assert_int_equal(last(c)->configured, 0x03);
    assert_int_equal(last(c)->operational, 0x03);
    assert_null(c->violation);
}

/* Nobody with a lease takes part in recover, and an order that cannot be carried out is forgotten:
 * it must not fire when the partition that led to it has mended. */
static void recover_is_refused_or_forgotten(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = 0x01});
    run_ms(c, 200);
    assert_int_equal(c->decided_n, 1);
    assert_int_equal(view_ignored_count(view_cluster_machine(c, 0), VIEW_IGNORED_OPERATOR), 1);

    for (uint8_t i = 0; i < 3; i++) {
        view_cluster_cut(c, i, (uint8_t)((i + 1) % 3), true);
    }
    run_ms(c, 300);
    event(c, 0, (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = 0x03});
    run_ms(c, 21 * c->config.lease_us / 1000);
    view_cluster_mend(c);
    run_ms(c, 500);
    assert_int_equal(c->decided_n, 1);
    assert_true(view_cluster_settled(c));
}

/* c_ids are never handed out twice; when none are left, nobody is admitted any more. */
static void runs_out_of_cids(void **state)
{
    (void)state;
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 1);
    c->config.cids_per_member = 65535;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    run_ms(c, 100);
    for (uint32_t i = 0; i < 14; i++) {
        crash(c, 2);
        (void)view_cluster_start(c, 2);
        run_ms(c, 400);
    }
    assert_true(last(c)->next_cid <= VIEW_CIDS_MAX);
    assert_int_equal(last(c)->live, 0x03);
    assert_int_equal(status(c, 2), VIEW_STATUS_JOINING);
    for (uint32_t i = 1; i < c->decided_n; i++) {
        const struct view *before = &c->decided[i - 1], *after = &c->decided[i];
        assert_true(after->next_cid >= before->next_cid);
        for (nodeset rest = after->live; rest != 0; rest &= rest - 1) {
            const struct view_member *member = &after->members[nodeset_first(rest)];
            assert_true(member->admitted != after->epoch || member->cid_first >= before->next_cid);
        }
    }
}

/* The machine is plain memory: a copy behaves as the original does, and equal is equal bytes. */
static void copies_as_memory(void **state)
{
    (void)state;
    struct view_cluster *c = formed(3, 1);
    static struct view_machine copy;
    static struct view_effects one, two;
    crash(c, 2);
    for (uint32_t i = 0; i < 20; i++) {
        run_ms(c, 10);
        struct view_machine *m = view_cluster_machine(c, 1);
        struct view_event tick = {
            .kind = VIEW_EVENT_TICK, .now_us = view_cluster_clock(c, 1), .healthy = true};
        memcpy(&copy, m, sizeof copy);
        one.n = two.n = 0;
        view_step(m, &tick, &one);
        view_step(&copy, &tick, &two);
        assert_int_equal(one.n, two.n);
        for (uint32_t j = 0; j < one.n; j++) {
            assert_int_equal(one.e[j].kind, two.e[j].kind);
            assert_memory_equal(&one.e[j].msg, &two.e[j].msg, sizeof one.e[j].msg);
        }
        assert_memory_equal(m, &copy, sizeof copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_when_all_are_there),
        cmocka_unit_test(waits_for_a_node_that_is_missing),
        cmocka_unit_test(waits_while_configurations_differ),
        cmocka_unit_test(a_first_view_survives_who_decided_it),
        cmocka_unit_test(bootstraps_when_told),
        cmocka_unit_test(bootstrap_beside_a_view_joins),
        cmocka_unit_test(drops_the_dead_in_a_lease),
        cmocka_unit_test(drops_two_of_five),
        cmocka_unit_test(a_lost_majority_says_so),
        cmocka_unit_test(restarts_in_place),
        cmocka_unit_test(leaves_at_once),
        cmocka_unit_test(the_last_one_leaves_alone),
        cmocka_unit_test(those_who_leave_let_others_in),
        cmocka_unit_test(keeps_nobody_unheard),
        cmocka_unit_test(comes_back_by_itself_after_a_pause),
        cmocka_unit_test(a_pause_of_all_changes_nothing),
        cmocka_unit_test(learns_late),
        cmocka_unit_test(a_bridge_does_not_flap),
        cmocka_unit_test(drops_the_deaf),
        cmocka_unit_test(drops_whom_the_engine_suspects),
        cmocka_unit_test(a_partition_that_ends_costs_nobody),
        cmocka_unit_test(an_impostor_stays_outside),
        cmocka_unit_test(quiet_clusters_change_nothing),
        cmocka_unit_test(grows_and_shrinks),
        cmocka_unit_test(moves_to_other_nodes),
        cmocka_unit_test(later_order_counts),
        cmocka_unit_test(a_shadow_that_leaves_holds_no_change_up),
        cmocka_unit_test(recovers_when_told),
        cmocka_unit_test(recovers_with_two_of_five),
        cmocka_unit_test(recovers_again_without_a_survivor),
        cmocka_unit_test(recover_is_refused_or_forgotten),
        cmocka_unit_test(runs_out_of_cids),
        cmocka_unit_test(copies_as_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
