#include "resp/host.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "resp/conn.h"

#define US_PER_S UINT64_C(1000000)

struct bytes resp_slow_word(struct bytes head, uint32_t n, char text[RESP_SLOW_WORD_MAX])
{
    uint32_t kept = head.n < RESP_SLOW_ARGUMENT_BYTES ? head.n : RESP_SLOW_ARGUMENT_BYTES;
    if (kept == n) {
        return head;
    }
    if (kept > 0) {
        memcpy(text, head.at, kept);
    }
    int more =
        snprintf(text + kept, RESP_SLOW_WORD_MAX - kept, "... (%" PRIu32 " more bytes)", n - kept);
    return bytes_of(text, kept + (uint32_t)more);
}

/* Redis shows at most RESP_SLOW_ARGUMENTS, the last of which says how many are missing. */
void resp_slow_write(const struct resp_slow *slow, struct resp_out *out)
{
    bool cut = slow->arguments > slow->args_n;
    uint32_t shown = slow->args_n;
    if (cut && shown >= RESP_SLOW_ARGUMENTS) {
        shown = RESP_SLOW_ARGUMENTS - 1;
    }
    resp_out_array(out, 6);
    resp_out_number(out, (int64_t)slow->id);
    resp_out_number(out, (int64_t)slow->started_s);
    resp_out_number(out, (int64_t)slow->took_us);
    resp_out_array(out, shown + (cut ? 1 : 0));
    for (uint32_t i = 0; i < shown; i++) {
        resp_out_bulk(out, slow->args[i]);
    }
    if (cut) {
        char more[48];
        snprintf(more, sizeof more, "... (%" PRIu32 " more arguments)", slow->arguments - shown);
        resp_out_text(out, more);
    }
    resp_out_text(out, slow->address != NULL ? slow->address : "");
    resp_out_text(out, slow->name != NULL ? slow->name : "");
}

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

static uint64_t seconds_since(uint64_t then_us, uint64_t now_us)
{
    return now_us > then_us ? (now_us - then_us) / US_PER_S : 0;
}

static void put(struct resp_out *text, const char *name, const char *value)
{
    resp_out_raw(text, bytes_of(name, (uint32_t)strlen(name)));
    resp_out_raw(text, bytes_of(value, (uint32_t)strlen(value)));
}

static void put_number(struct resp_out *text, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    put(text, name, digits);
}

/* Exactly the fields of Redis 7.2, in its order: some client libraries fail on one that is missing,
 * others on one that they do not know. What there is nothing of is 0. None of the texts can hold a
 * blank or a line break: names are checked, addresses come from the operating system. */
void resp_client_line(const struct resp_conn_info *info, uint64_t now_us, struct resp_out *text)
{
    put_number(text, "id=", info->id);
    put(text, " addr=", text_of(info->address));
    put(text, " laddr=", text_of(info->local));
    put(text, " fd=-1 name=", text_of(info->name));
    put_number(text, " age=", seconds_since(info->created_us, now_us));
    put_number(text, " idle=", seconds_since(info->last_us, now_us));
    put(text, " flags=", info->no_evict || info->no_touch || info->queued >= 0 ? "" : "N");
    put(text, "", info->queued >= 0 ? "x" : "");
    put(text, "", info->no_evict ? "e" : "");
    put(text, "", info->no_touch ? "T" : "");
    put_number(text, " db=", info->space);
    put(text, " sub=0 psub=0 ssub=0", info->queued < 0 ? " multi=-1" : "");
    if (info->queued >= 0) {
        put_number(text, " multi=", (uint64_t)info->queued);
    }
    put_number(text, " qbuf=", info->input_bytes);
    put_number(text, " qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=",
               info->output_bytes);
    put_number(text, " tot-mem=", info->input_bytes + info->output_bytes);
    put(text, " events=r cmd=", info->command != NULL ? info->command : "NULL");
    put(text, " user=", text_of(info->user));
    put_number(text, " redir=-1 resp=", info->resp);
    put(text, " lib-name=", text_of(info->library));
    put(text, " lib-ver=", text_of(info->library_version));
    put(text, "", "\n");
}

bool resp_client_matches(const struct resp_client_filter *filter, const struct resp_conn_info *info,
                         uint64_t now_us)
{
    bool listed = filter->ids_n == 0;
    for (uint32_t i = 0; i < filter->ids_n && !listed; i++) {
        listed = filter->ids[i] == info->id;
    }
    return listed && (filter->skip == 0 || info->id != filter->skip) &&
           (filter->address == NULL || strcmp(filter->address, text_of(info->address)) == 0) &&
           (filter->local == NULL || strcmp(filter->local, text_of(info->local)) == 0) &&
           (filter->user == NULL || strcmp(filter->user, text_of(info->user)) == 0) &&
           seconds_since(info->created_us, now_us) >= filter->maxage_s;
}
