/* Nodes: open, look, close. */
#include "embed/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

_Static_assert(HK_KEY_BYTES == CLUSTER_KEY_BYTES && HK_NODES_MAX == NODES_MAX, "public names");
_Static_assert(HK_KEY_MAX == STORE_KEY_MAX && HK_VALUE_MAX + 64u == STORE_VALUE_MAX,
               "public names");
_Static_assert(HK_SESSIONS_MAX == LOCAL_SESSIONS_MAX && HK_IN_FLIGHT_MAX + 1 == LOCAL_SLOTS_MAX,
               "public names");
_Static_assert(sizeof HK_VERSION == sizeof HORKOS_VERSION, "one version");

const char *hk_version(void)
{
    return HORKOS_VERSION;
}

static int open_node(const struct hk_config *from, struct hk_node *node, char *error, uint32_t size)
{
    struct config *config = malloc(sizeof *config);
    if (config == NULL) {
        return HK_ERR_NOMEM;
    }
    int err = HK_ERR_IO;
    if (sodium_init() < 0) {
        (void)snprintf(error, size, "cannot start libsodium: no source of random numbers");
    } else {
        err = embed_config(from, config, error, size);
    }
    if (err == HK_OK) {
        struct server_options options = {.bootstrap = from->bootstrap,
                                         .ready_fd = -1,
                                         .locals = true,
                                         .error = error,
                                         .error_bytes = size};
        node->id = config->id;
        err = server_open(config, &options, &node->server);
        sodium_memzero(config, sizeof *config);
    }
    free(config);
    return err;
}

int hk_open(const struct hk_config *config, struct hk_node **node_out)
{
    char error[CONFIG_ERROR_MAX] = "";
    if (config == NULL || node_out == NULL) {
        return HK_ERR_INVALID;
    }
    struct hk_node *node = calloc(1, sizeof *node);
    int err = node != NULL ? open_node(config, node, error, sizeof error) : HK_ERR_NOMEM;
    if (config->error != NULL && config->error_bytes > 0) {
        const char *text = err == HK_OK || error[0] != '\0' ? error : hk_err_text(err);
        (void)snprintf(config->error, config->error_bytes, "%s", text);
    }
    if (err != HK_OK) {
        free(node);
        return err;
    }
    *node_out = node;
    return HK_OK;
}

static void close_node(struct hk_node *node, bool now)
{
    if (node != NULL) {
        server_close(node->server, now);
        free(node);
    }
}

void hk_close(struct hk_node *node)
{
    close_node(node, false);
}

void hk_close_now(struct hk_node *node)
{
    close_node(node, true);
}

int hk_wait_serving(struct hk_node *node, uint32_t timeout_ms)
{
    return node == NULL ? HK_ERR_INVALID
                        : server_wait_serving(node->server, (uint64_t)timeout_ms * 1000u);
}

/* ---- Status ---- */

static enum hk_state state_of(const struct server_look *look)
{
    if (look->stopped) {
        return HK_STATE_STOPPED;
    }
    if (look->away) {
        return HK_STATE_JOINING;
    }
    switch (look->status.status) {
    case VIEW_STATUS_FORMING:
        return HK_STATE_FORMING;
    case VIEW_STATUS_REFUSING:
        return HK_STATE_REFUSING;
    case VIEW_STATUS_JOINING:
        return HK_STATE_JOINING;
    case VIEW_STATUS_SERVING:
        return HK_STATE_SERVING;
    case VIEW_STATUS_NO_LEASE:
        return HK_STATE_NO_LEASE;
    case VIEW_STATUS_LEAVING:
        return HK_STATE_LEAVING;
    case VIEW_STATUS_LOST:
        return HK_STATE_LOST;
    }
    return HK_STATE_STOPPED;
}

const char *hk_state_name(enum hk_state state)
{
    static const char *const names[] = {
        [HK_STATE_FORMING] = "forming", [HK_STATE_JOINING] = "joining",
        [HK_STATE_SERVING] = "serving", [HK_STATE_NO_LEASE] = "no-lease",
        [HK_STATE_LOST] = "lost",       [HK_STATE_REFUSING] = "refusing",
        [HK_STATE_LEAVING] = "leaving", [HK_STATE_STOPPED] = "stopped",
    };
    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : "?";
}

void hk_status(struct hk_node *node, struct hk_status *status_out)
{
    struct server_look look;
    if (node == NULL || status_out == NULL) {
        return;
    }
    server_look(node->server, &look);
    const struct view *view = &look.status.view;
    *status_out = (struct hk_status){
        .state = state_of(&look),
        .id = node->id,
        .epoch = view->epoch,
        .generation = view->generation,
        .members = view->live,
        .configured = view->configured,
        .member = nodeset_has(view->live, (uint8_t)node->id),
        .operational = nodeset_has(view->operational, (uint8_t)node->id),
        .keys = look.keys,
        .bytes = look.bytes,
        .sessions = look.sessions,
        .version = HORKOS_VERSION,
    };
    if (look.status.lease_until_us > look.now_us) {
        status_out->lease_left_us = look.status.lease_until_us - look.now_us;
    }
}
