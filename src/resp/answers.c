#include "resp/answers.h"

void answer_value(struct resp_conn *conn, struct resp_flight *flight, const struct answer *answer)
{
    (void)flight;
    if (answer->kind == ANSWER_VALUE) {
        resp_out_bulk(&conn->out, answer->value);
    } else {
        resp_out_null(&conn->out);
    }
}

void answer_number(struct resp_conn *conn, struct resp_flight *flight, const struct answer *answer)
{
    (void)flight;
    resp_out_number(&conn->out, answer->number);
}

void answer_set(struct resp_conn *conn, struct resp_flight *flight, const struct answer *answer)
{
    if (answer->kind == ANSWER_OK) {
        resp_out_simple(&conn->out, "OK");
    } else {
        answer_value(conn, flight, answer);
    }
}

void answer_setnx(struct resp_conn *conn, struct resp_flight *flight, const struct answer *answer)
{
    (void)flight;
    resp_out_number(&conn->out, answer->kind == ANSWER_OK ? 1 : 0);
}

void answer_ok(struct resp_conn *conn, struct resp_flight *flight, const struct answer *answer)
{
    (void)answer;
    if (flight->left == 0) {
        resp_out_simple(&conn->out, "OK");
    }
}

void answer_sum(struct resp_conn *conn, struct resp_flight *flight, const struct answer *answer)
{
    flight->a += answer->number;
    if (flight->left == 0) {
        resp_out_number(&conn->out, flight->a);
    }
}

void answer_each(struct resp_conn *conn, struct resp_flight *flight, const struct answer *answer)
{
    if (flight->left == flight->all - 1) {
        resp_out_array(&conn->out, flight->all);
    }
    answer_value(conn, flight, answer);
}
