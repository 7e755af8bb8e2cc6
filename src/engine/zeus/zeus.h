/* What the store's metadata of an object means in a Zeus space (base/meta.h).
 * docs/protocols/zeus.md and zeus-commit.md. key_meta.ts is t_version: <version, c_id of the
 * process that wrote it>. */
#ifndef HORKOS_ENGINE_ZEUS_ZEUS_H
#define HORKOS_ENGINE_ZEUS_ZEUS_H

#include "base/meta.h"
#include "engine/engine.h"
#include "engine/zeus/commit.h"
#include "engine/zeus/own.h"

/* key_meta.state */
enum zeus_state {
    ZEUS_VALID,   /* reliably committed */
    ZEUS_WRITE,   /* at the owner: committed locally, or read by such a commit (C12); key_meta.aux
                     names the pipeline, and the last slot of it */
    ZEUS_INVALID, /* at a reader: an R-INV came, its R-VAL did not */
};

/* key_meta.flags. KEY_READABLE is set exactly if the state is VALID and SHUT is not set. An object
 * that exists here without OWNED is a reader's. */
enum {
    ZEUS_OWNED = KEY_ENGINE_0,  /* this node is the owner, and transactions may begin on it */
    ZEUS_WANTED = KEY_ENGINE_1, /* an ACK is owed: whoever frees the data says own_freed */
    ZEUS_SHUT = KEY_ENGINE_2,   /* a reader that is being trimmed */
};
/* key_meta.owner: the transaction that holds the object locally (a reference that node/txn.c gives
 * out); 0: none. */

struct zeus_config {
    struct own_config own;
    struct commit_config commit;
};

extern const struct engine_ops zeus_ops;

#endif
