#include "server/config_table.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

const struct config_section_info config_sections[SECTIONS] = {
    [SECTION_NODE] = {"node", "node", "This process.", false},
    [SECTION_CLUSTER] = {"cluster", "cluster", "What all nodes of a cluster must have in common.",
                         false},
    [SECTION_PEERS] = {"peers", "peers",
                       "Every configured node, this one included, the same on all nodes. A single "
                       "node needs no such section.",
                       false},
    [SECTION_CLIENTS] = {"clients", "clients", "The side that speaks the Redis protocol.", false},
    [SECTION_USER] = {"user", "user NAME",
                      "One section for each user, whose name has at most 44 bytes. AUTH without a "
                      "name means user `default`.",
                      true},
    [SECTION_SPACE] = {"space", "space N",
                       "One section for each space, 0 to 15 (Redis's databases). Without any there "
                       "is space 0 with the defaults.",
                       true},
};

static const char *const io_names[] = {"auto", "io_uring", "epoll"};
static const char *const transport_names[] = {"tcp", "shm"};
const char *const config_role_names[] = {"both", "compute", "memory"};
static const char *const engine_names[] = {"hermes", "galene", "craq", "zab", "zeus", "lotus"};
static const char *const mode_names[] = {"cache", "base", "base-erew"};

_Static_assert(LOOP_AUTO == 0 && LOOP_URING == 1 && LOOP_EPOLL == 2, "io_names has their order");
_Static_assert(CONFIG_TCP == 0 && CONFIG_SHM == 1, "transport_names has their order");
_Static_assert(NODE_ROLE_BOTH == 0 && NODE_ROLE_COMPUTE == 1 && NODE_ROLE_MEMORY == 2,
               "config_role_names has their order");
_Static_assert(sizeof(enum node_role) == 4, "CONFIG_CHOICE");
_Static_assert(CONFIG_CACHE == 0 && CONFIG_BASE == 1 && CONFIG_BASE_EREW == 2,
               "mode_names has their order");
_Static_assert(sizeof(enum config_transport) == 4 && sizeof(enum config_mode) == 4,
               "CONFIG_CHOICE");
_Static_assert(sizeof(enum lock_policy) == 4, "CONFIG_CHOICE");
_Static_assert(sizeof(enum loop_kind) == 4 && sizeof(enum log_level) == 4, "CONFIG_CHOICE");

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

#define AT(member)                                                                                 \
    .offset = offsetof(struct config, member), .bytes = sizeof((struct config *)0)->member
#define SPACE_AT(member)                                                                           \
    .offset = offsetof(struct config_space, member),                                               \
    .bytes = sizeof((struct config_space *)0)->member

const struct config_option config_options[] = {
    {SECTION_NODE, "id", CONFIG_NUMBER, AT(id), .max = NODES_MAX - 1,
     .standard_doc = "none: must be given", .help = "The number of this node among `[peers]`."},
    {SECTION_NODE, "workers", CONFIG_NUMBER, AT(workers), .standard = "1", .min = 1,
     .max = WORKERS_MAX, .unit = "threads",
     .help = "Threads that serve clients and peers. Nodes of one cluster may differ."},
    {SECTION_NODE, "state_file", CONFIG_PATH, AT(state_file),
     .standard_doc = "`horkos-<id>.state` beside this file",
     .help = "The one thing that a node keeps on disk: which cluster it was a member of, so that "
             "nodes that lost everything do not start empty in silence."},
    {SECTION_NODE, "role", CONFIG_CHOICE, AT(role), .standard = "both", .names = config_role_names,
     .names_n = sizeof config_role_names / sizeof config_role_names[0],
     .help =
         "Of spaces of engine lotus: `memory` keeps rows and runs no transactions of clients, "
         "`compute` runs transactions and keeps no rows, `both` does both. Nodes of one cluster "
         "may differ; one of them has to keep rows. Other engines know no roles."},
    {SECTION_NODE, "log_file", CONFIG_PATH, AT(log_file), .standard_doc = "standard error",
     .help = "Where the log goes. SIGHUP opens it anew."},
    {SECTION_NODE, "log_level", CONFIG_CHOICE, AT(log_level), .standard = "info",
     .names = log_level_names, .names_n = LOG_LEVELS, .runtime = true, .alias = "loglevel",
     .help = "The least level that is logged."},
    {SECTION_NODE, "io", CONFIG_CHOICE, AT(io), .standard = "auto", .names = io_names,
     .names_n = sizeof io_names / sizeof io_names[0],
     .help = "How sockets are driven; `auto` takes io_uring where this system has what is needed."},
    {SECTION_NODE, "spin_us", CONFIG_NUMBER, AT(spin_us), .standard = "0", .max = 1000000,
     .unit = "microseconds", .runtime = true,
     .help = "How long an idle worker polls before it sleeps. Costs a processor, saves a wake-up."},
    {SECTION_NODE, "leave_ms", CONFIG_NUMBER, AT(leave_ms), .standard = "5000", .max = 3600000,
     .unit = "milliseconds", .runtime = true,
     .help =
         "After SIGTERM: how long to wait for a graceful leave before the process ends anyway."},
    {SECTION_NODE, "handover_ms", CONFIG_NUMBER, AT(handover_ms), .standard = "60000",
     .max = 86400000, .unit = "milliseconds", .runtime = true,
     .help =
         "After SIGTERM, before it leaves: how long the node serves on while the keys whose home "
         "it is (engine galene) move to other nodes, or its objects get replicas there (engine "
         "zeus). What is left then is lost."},
    {SECTION_NODE, "peer_listen", CONFIG_ADDRESS, AT(peer_listen),
     .standard_doc = "this node's entry in `[peers]`",
     .help = "Where to listen for peers, if that is not the address by which they know this node."},
    {SECTION_NODE, "peer_transport", CONFIG_CHOICE, AT(peer_transport), .standard = "tcp",
     .names = transport_names, .names_n = sizeof transport_names / sizeof transport_names[0],
     .help = "`shm`: speak through shared memory with nodes of this host that want it, too; with "
             "others, and where it cannot be had, over TCP. Nodes older than this option refuse "
             "those that ask for it."},
    {SECTION_NODE, "peer_window", CONFIG_SIZE, AT(peer_window), .standard = "4mb", .min = 512 * KIB,
     .max = GIB, .help = "Bytes under way to one worker of a peer that it has not taken yet."},
    {SECTION_NODE, "peer_queue_max", CONFIG_SIZE, AT(peer_queue_max), .standard = "256mb",
     .min = 128 * MIB, .max = TIB,
     .help = "Bytes that may wait for one worker of a peer; what comes beyond is dropped, and sent "
             "again later."},

    {SECTION_CLUSTER, "name", CONFIG_WORD, AT(cluster), .standard = "horkos",
     .help = "Nodes of another name are refused."},
    {SECTION_CLUSTER, "key_file", CONFIG_PATH, AT(key_file),
     .standard_doc = "none: must be given if there are other nodes",
     .help = "A file that holds the cluster's key as 64 hexadecimal digits, readable by its owner "
             "alone. Nodes prove to each other that they know it."},
    {SECTION_CLUSTER, "lease_ms", CONFIG_NUMBER, AT(lease_ms), .standard = "500", .min = 50,
     .max = 60000, .unit = "milliseconds",
     .help = "How long a node may serve without hearing from a majority, and so how long writes "
             "wait at most after a node died. To lower it, stop the whole cluster."},
    {SECTION_CLUSTER, "drift_ppm", CONFIG_NUMBER, AT(drift_ppm), .standard = "10000", .max = 250000,
     .unit = "millionths",
     .help = "By how much the rates of two nodes' clocks may differ. Leases end that much earlier "
             "for their holder."},

    {SECTION_PEERS, "ID", CONFIG_PEER, 0, .standard_doc = "none",
     .help = "`0 = host:port`: the node's number, and where its peers reach it."},

    {SECTION_CLIENTS, "listen", CONFIG_LISTEN, AT(listens), .standard = "127.0.0.1:6379",
     .help = "Where to listen for clients; may be repeated, up to 8 times."},
    {SECTION_CLIENTS, "protected", CONFIG_SWITCH, AT(guarded), .standard = "yes",
     .help = "Refuses to start if clients of other machines could connect while user `default` has "
             "no password."},
    {SECTION_CLIENTS, "requirepass", CONFIG_REQUIREPASS, 0, .standard_doc = "none", .runtime = true,
     .alias = "requirepass",
     .help = "The password of user `default`, instead of a section `[user default]`. In clear, or "
             "as `blake2b:` and 64 hexadecimal digits."},
    {SECTION_CLIENTS, "clients_max", CONFIG_NUMBER, AT(clients_max), .standard = "10000", .min = 1,
     .max = 1000000, .unit = "clients", .runtime = true, .alias = "maxclients",
     .help =
         "Clients of this node at one time; who comes beyond gets an error and is closed. While "
         "the node runs it cannot be raised above what it was at the start."},
    {SECTION_CLIENTS, "clients_memory_max", CONFIG_SIZE, AT(clients_memory_max), .standard = "1gb",
     .min = MIB, .max = 64 * TIB, .runtime = true, .alias = "maxmemory-clients",
     .help = "Buffers of all clients together; past it the largest clients are closed."},
    {SECTION_CLIENTS, "timeout_s", CONFIG_NUMBER, AT(timeout_s), .standard = "0", .max = 31536000,
     .unit = "seconds", .runtime = true, .alias = "timeout",
     .help = "Clients that say nothing for so long are closed; 0: never."},
    {SECTION_CLIENTS, "bulk_bytes_max", CONFIG_SIZE, AT(bulk_bytes_max), .standard = "64mb",
     .min = KIB, .max = 64 * MIB, .runtime = true, .alias = "proto-max-bulk-len",
     .help = "One argument of a command."},
    {SECTION_CLIENTS, "arguments_max", CONFIG_NUMBER, AT(arguments_max), .standard = "1048576",
     .min = 16, .max = 1048576, .unit = "arguments", .runtime = true,
     .help = "Arguments of one command."},
    {SECTION_CLIENTS, "query_bytes_max", CONFIG_SIZE, AT(query_bytes_max), .standard = "128mb",
     .min = 64 * KIB, .max = GIB, .runtime = true, .alias = "client-query-buffer-limit",
     .help = "One whole command. At least `bulk_bytes_max`."},
    {SECTION_CLIENTS, "output_bytes_max", CONFIG_SIZE, AT(output_bytes_max), .standard = "256mb",
     .min = 64 * KIB, .max = 2 * GIB, .runtime = true,
     .help = "Replies that one client has not read yet; past it the client is closed."},
    {SECTION_CLIENTS, "slowlog_us", CONFIG_SIGNED, AT(slowlog_us), .standard = "10000",
     .min = (uint64_t)-1, .max = INT64_MAX, .unit = "microseconds", .runtime = true,
     .alias = "slowlog-log-slower-than",
     .help = "Commands that take longer are kept for SLOWLOG; 0: all, -1: none."},
    {SECTION_CLIENTS, "slowlog_max", CONFIG_NUMBER, AT(slowlog_max), .standard = "128",
     .max = 16384, .unit = "entries", .runtime = true, .alias = "slowlog-max-len",
     .help = "How many of them are kept."},

    {SECTION_USER, "password", CONFIG_PASSWORD, 0, .standard_doc = "none: must be given",
     .help =
         "A password of this user, up to 8 lines. In clear, or as `blake2b:` and 64 hexadecimal "
         "digits."},

    {SECTION_SPACE, "engine", CONFIG_WORD, SPACE_AT(engine), .standard = "hermes",
     .names = engine_names, .names_n = sizeof engine_names / sizeof engine_names[0],
     .help = "How the space is kept. The same on all nodes."},
    {SECTION_SPACE, "async_reads", CONFIG_SWITCH, SPACE_AT(async_reads), .standard = "no",
     .help = "Reads are confirmed by a majority, for machines whose clocks cannot be trusted."},
    {SECTION_SPACE, "ack_all", CONFIG_SWITCH, SPACE_AT(ack_all), .standard = "no",
     .help = "Acknowledgements go to all replicas: readers wait a little less, the network carries "
             "more."},
    {SECTION_SPACE, "memory_max", CONFIG_SIZE, SPACE_AT(memory_max), .standard = "0",
     .max = 64 * TIB, .alias = "maxmemory",
     .help = "Memory for keys, values and index; writes beyond are refused. 0: no limit. Redis's "
             "name means space 0."},
    {SECTION_SPACE, "keys_expected", CONFIG_NUMBER, SPACE_AT(keys_expected), .standard = "0",
     .max = UINT64_C(1) << 36, .unit = "keys",
     .help = "Makes the first index large enough for so many keys; it grows by itself, too."},
    {SECTION_SPACE, "mode", CONFIG_CHOICE, SPACE_AT(mode), .standard = "cache", .names = mode_names,
     .names_n = sizeof mode_names / sizeof mode_names[0], .engine = "galene",
     .help = "`cache`: the hottest keys are cached on all nodes. `base`: none are, every key is "
             "read and written at its home. `base-erew`: the same, and one worker of the home "
             "alone touches a key. The two are for comparison. The same on all nodes."},
    {SECTION_SPACE, "cache_keys", CONFIG_NUMBER, SPACE_AT(cache_keys), .standard = "0",
     .max = 1u << 20, .unit = "keys", .engine = "galene",
     .help = "How many keys are cached on all nodes at most; 0: a thousandth of all keys, at "
             "least 64. The same on all nodes."},
    {SECTION_SPACE, "hot_epoch_ms", CONFIG_NUMBER, SPACE_AT(hot_epoch_ms), .standard = "1000",
     .min = 10, .max = 3600000, .unit = "milliseconds",
     .help = "What was longer ago than this counts half for `HOTKEYS`, and so on; with `engine = "
             "galene` also: how often it is decided anew which keys are hot. The same on all "
             "nodes."},
    {SECTION_SPACE, "hot_sample", CONFIG_NUMBER, SPACE_AT(hot_sample), .standard = "16", .min = 1,
     .max = 65536, .unit = "operations",
     .help = "One operation in so many is counted when hot keys are looked for, by `HOTKEYS` or "
             "for the cache of `engine = galene`."},
    {SECTION_SPACE, "misses_max", CONFIG_NUMBER, SPACE_AT(misses_max), .standard = "256", .min = 1,
     .max = 65536, .unit = "operations", .engine = "galene",
     .help = "Operations of one worker that may be unanswered at one other node; more wait."},
    {SECTION_SPACE, "degree", CONFIG_NUMBER, SPACE_AT(degree), .standard = "0", .max = NODES_MAX,
     .unit = "nodes", .engine = "zeus",
     .help = "How many nodes keep each key's value; 0: 3, or more if a minority of the nodes and "
             "one is more. Fewer than that lose keys when as many nodes die at once. The same on "
             "all nodes."},
    {SECTION_SPACE, "quantum_us", CONFIG_NUMBER, SPACE_AT(quantum_us), .standard = "200", .min = 1,
     .max = 1000000, .unit = "microseconds", .engine = "zeus",
     .help = "So long a node keeps a key that has come to it, whatever others want."},
    {SECTION_SPACE, "quantum_most_us", CONFIG_NUMBER, SPACE_AT(quantum_most_us), .standard = "3200",
     .min = 1, .max = 1000000, .unit = "microseconds", .engine = "zeus",
     .help = "The same for a key that goes to and fro, at the most. At least `quantum_us`."},
    {SECTION_SPACE, "pingpong_us", CONFIG_NUMBER, SPACE_AT(pingpong_us), .standard = "20000",
     .min = 1, .max = 10000000, .unit = "microseconds", .engine = "zeus",
     .help = "A key that comes back this soon goes to and fro."},
    {SECTION_SPACE, "backoff_us", CONFIG_NUMBER, SPACE_AT(backoff_us), .standard = "0",
     .max = 1000000, .unit = "microseconds", .engine = "zeus",
     .help =
         "The first pause after a node had no room for a request for a key; each that follows is "
         "longer. 0: 500."},
    {SECTION_SPACE, "forget_ms", CONFIG_NUMBER, SPACE_AT(forget_ms), .standard = "10000", .min = 1,
     .max = 86400000, .unit = "milliseconds", .engine = "zeus", .also = "lotus",
     .help = "A key that was deleted, and of which nobody asked anything, is forgotten so much "
             "later; until then it takes memory."},
    {SECTION_SPACE, "repair_ms", CONFIG_NUMBER, SPACE_AT(repair_ms), .standard = "1000", .min = 10,
     .max = 3600000, .unit = "milliseconds", .engine = "zeus",
     .help = "How long one pass over all keys takes, which gives keys the replicas that they lack "
             "and forgets what was deleted."},
    {SECTION_SPACE, "moving_max", CONFIG_NUMBER, SPACE_AT(moving_max), .standard = "8192",
     .min = 64, .max = 1u << 20, .unit = "keys", .engine = "zeus",
     .help = "Keys of one worker that may be on their way to another owner or reader; more wait."},
    {SECTION_SPACE, "cc", CONFIG_CHOICE, SPACE_AT(cc), .standard = "wound_wait",
     .names = lock_policy_names, .names_n = LOCK_POLICIES, .engine = "lotus",
     .help = "What happens when transactions want the same lock. `wound_wait`: the younger waits, "
             "and gives way to the older. `wait_die`: the older waits, the younger begins again. "
             "`no_wait`: who comes second begins again; nobody waits, and who is refused often may "
             "never end. The same on all nodes."},
    {SECTION_SPACE, "txn_lease_ms", CONFIG_NUMBER, SPACE_AT(txn_lease_ms), .standard = "5000",
     .min = 100, .max = 3600000, .unit = "milliseconds", .engine = "lotus",
     .help = "So long a transaction that has said nothing, and does not wait, keeps its locks, "
             "unless it is prepared: then it keeps them until its outcome is known."},
    {SECTION_SPACE, "one_trip", CONFIG_SWITCH, SPACE_AT(one_trip), .standard = "yes",
     .engine = "lotus",
     .help = "A request whose keys are all on one memory server is carried out there, in one round "
             "trip. `no` is for comparison."},
    {SECTION_SPACE, "batch_inside", CONFIG_SWITCH, SPACE_AT(batch_inside), .standard = "yes",
     .engine = "lotus",
     .help = "What a transaction asks of one memory server goes as one message. `no`, one after "
             "the other, is for comparison."},
    {SECTION_SPACE, "batch_across", CONFIG_SWITCH, SPACE_AT(batch_across), .standard = "no",
     .engine = "lotus",
     .help = "Requests of several transactions wait a little for each other, to go as one message: "
             "more transactions a second where messages cost much, and each takes longer."},
    {SECTION_SPACE, "hints_max", CONFIG_NUMBER, SPACE_AT(hints_max), .standard = "65536",
     .max = 1u << 24, .unit = "keys", .engine = "lotus",
     .help = "Keys of which one worker remembers where their memory server has them, which saves "
             "that the way through the index. 0: none."},
    {SECTION_SPACE, "txns_max", CONFIG_NUMBER, SPACE_AT(txns_max), .standard = "4096", .min = 64,
     .max = 1u << 20, .unit = "transactions", .engine = "lotus",
     .help = "Transactions that one worker of a memory server has under way; more are told to try "
             "again."},
    {SECTION_SPACE, "locks_max", CONFIG_NUMBER, SPACE_AT(locks_max), .standard = "1048576",
     .min = 1024, .max = 1u << 28, .unit = "locks", .engine = "lotus",
     .help = "Locks that all transactions together own or wait for at one memory server, each of "
             "104 bytes; who wants more is told to try again."},
    {SECTION_SPACE, "txn_locks_max", CONFIG_NUMBER, SPACE_AT(txn_locks_max), .standard = "65536",
     .min = 64, .max = 1u << 24, .unit = "locks", .engine = "lotus",
     .help = "Locks that one transaction may have at one memory server: one for each key, and two "
             "for each that a range meets. One that wants more is an error."},
    {SECTION_SPACE, "near_max", CONFIG_SIZE, SPACE_AT(near_max), .standard = "0", .max = 64 * TIB,
     .engine = "lotus",
     .help =
         "Not 0: co-partitioned memory. Slots are then at home at nodes that run transactions "
         "(`role` not `memory`), each keeps so many bytes of the values that are used most, and "
         "the others go to nodes that keep memory (`role` not `compute`), until they are asked "
         "for. Keys, and values below 64 bytes, always stay. The same, 0 or not, on all nodes."},
};

const uint32_t config_options_n = sizeof config_options / sizeof config_options[0];
_Static_assert(sizeof config_options / sizeof config_options[0] <= CONFIG_OPTIONS_MAX,
               "one bit each in config.changed");

static size_t skip(const char *text, size_t n, size_t at, bool blanks)
{
    while (at < n && (text[at] == ' ' || text[at] == '\t') == blanks) {
        at++;
    }
    return at;
}

enum config_section config_section_find(const char *name, size_t n, size_t *parameter_out)
{
    size_t word = skip(name, n, 0, false);
    *parameter_out = skip(name, n, word, true);
    for (uint32_t i = 0; i < SECTIONS; i++) {
        const struct config_section_info *info = &config_sections[i];
        if (strlen(info->name) == word && memcmp(name, info->name, word) == 0 &&
            (info->parameter || *parameter_out == n)) {
            return (enum config_section)i;
        }
    }
    return SECTIONS;
}

const struct config_option *config_option_find(enum config_section section, const char *name)
{
    for (uint32_t i = 0; i < config_options_n; i++) {
        const struct config_option *option = &config_options[i];
        if (option->section == section &&
            (section == SECTION_PEERS || strcmp(option->name, name) == 0)) {
            return option;
        }
    }
    return NULL;
}

bool config_option_fits(const struct config_option *option, const char *engine)
{
    return option->engine == NULL || strcmp(option->engine, engine) == 0 ||
           (option->also != NULL && strcmp(option->also, engine) == 0);
}

uint32_t config_option_index(const struct config_option *option)
{
    return (uint32_t)(option - config_options);
}

static void set_standard(const struct config_option *option, void *base)
{
    char why[CONFIG_ERROR_MAX] = "";
    const struct config_complaint complaint = {why, sizeof why};
    if (option->standard == NULL) {
        return;
    }
    HK_ASSERT(config_value_set(option, base, option->standard, &complaint));
}

void config_space_defaults(struct config_space *space)
{
    memset(space, 0, sizeof *space);
    space->exists = true;
    for (uint32_t i = 0; i < config_options_n; i++) {
        if (config_options[i].section == SECTION_SPACE) {
            set_standard(&config_options[i], space);
        }
    }
}

void config_defaults(struct config *config)
{
    memset(config, 0, sizeof *config);
    for (uint32_t i = 0; i < config_options_n; i++) {
        const struct config_option *option = &config_options[i];
        /* The default of `listen` counts only where no line gives one: config_consistent's caller
         * adds it. */
        if (option->section != SECTION_SPACE && option->type < CONFIG_LISTEN) {
            set_standard(option, config);
        }
    }
}
