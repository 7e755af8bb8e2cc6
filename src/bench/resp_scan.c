#include "bench/resp_scan.h"

/* Moves bytes to the line up to its end. False: it is not all there, or too long. */
static bool take_line(struct resp_scan *scan, struct bytes *input)
{
    const uint8_t *end = memchr(input->at, '\n', input->n);
    uint32_t n = end == NULL ? input->n : (uint32_t)(end - input->at) + 1;
    if (scan->line_n + n >= RESP_SCAN_LINE_MAX) {
        scan->line_n = RESP_SCAN_LINE_MAX;
        return false;
    }
    memcpy(scan->line + scan->line_n, input->at, n);
    scan->line_n += n;
    *input = bytes_of(input->at + n, input->n - n);
    return end != NULL;
}

/* Behind the sign, up to the line's end. False: no number. */
static bool parse_number(const char *at, int64_t *number_out)
{
    bool negative = *at == '-';
    int64_t number = 0;
    at += negative;
    if (*at == '\0') {
        return false;
    }
    for (; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || number > (INT64_MAX - 9) / 10) {
            return false;
        }
        number = number * 10 + (*at - '0');
    }
    *number_out = negative ? -number : number;
    return true;
}

static enum resp_scan_kind end_line(struct resp_scan *scan)
{
    if (scan->line_n < 3 || scan->line[scan->line_n - 2] != '\r') {
        return RESP_SCAN_WRONG;
    }
    scan->line[scan->line_n - 2] = '\0';
    scan->line_n = 0;
    switch (scan->line[0]) {
    case '+':
        return RESP_SCAN_LINE;
    case '-':
        return RESP_SCAN_ERROR;
    case ':':
        return parse_number(scan->line + 1, &scan->number) ? RESP_SCAN_NUMBER : RESP_SCAN_WRONG;
    case '$':
        if (!parse_number(scan->line + 1, &scan->number) || scan->number < -1) {
            return RESP_SCAN_WRONG;
        }
        scan->skip = scan->number < 0 ? 0 : (uint64_t)scan->number + 2;
        return scan->number < 0 ? RESP_SCAN_NIL : RESP_SCAN_BULK;
    default:
        return RESP_SCAN_WRONG;
    }
}

enum resp_scan_kind resp_scan_next(struct resp_scan *scan, struct bytes *input)
{
    if (scan->skip == 0) {
        if (input->n == 0 || !take_line(scan, input)) {
            return scan->line_n == RESP_SCAN_LINE_MAX ? RESP_SCAN_WRONG : RESP_SCAN_MORE;
        }
        enum resp_scan_kind kind = end_line(scan);
        if (kind != RESP_SCAN_BULK) {
            return kind;
        }
    }
    uint32_t n = scan->skip < input->n ? (uint32_t)scan->skip : input->n;
    scan->skip -= n;
    *input = bytes_of(input->at + n, input->n - n);
    return scan->skip == 0 ? RESP_SCAN_BULK : RESP_SCAN_MORE;
}
