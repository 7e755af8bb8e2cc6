/* The small client: replies at every byte boundary, hostile ones, and connections to a server of
 * our own that answers, is silent, or closes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "tools/resp_client.h"

static int parse(const char *text, uint32_t n, struct resp_client_reply *reply, uint32_t *used)
{
    /* Memory of exactly that size: the address sanitizer sees what is read past it. */
    uint8_t *copy = malloc(n == 0 ? 1 : n);
    assert_non_null(copy);
    memcpy(copy, text, n);
    int err = resp_client_parse(bytes_of(copy, n), reply, used);
    if (reply->text.n > 0) {
        assert_true(reply->text.at >= copy && reply->text.at + reply->text.n <= copy + n);
        reply->text.at = (const uint8_t *)text + (reply->text.at - copy);
    }
    free(copy);
    return err;
}

struct good {
    const char *text;
    uint32_t n; /* of text; 0: its length */
    enum resp_client_kind kind;
    const char *content;
    int64_t number;
};

static void replies_are_read(void **state)
{
    (void)state;
    static const struct good goods[] = {
        {"+OK\r\n", 0, RESP_CLIENT_LINE, "OK", 0},
        {"+\r\n", 0, RESP_CLIENT_LINE, "", 0},
        {"-ERR no\r\n", 0, RESP_CLIENT_ERROR, "ERR no", 0},
        {":0\r\n", 0, RESP_CLIENT_NUMBER, "", 0},
        {":-9223372036854775808\r\n", 0, RESP_CLIENT_NUMBER, "", INT64_MIN},
        {":9223372036854775807\r\n", 0, RESP_CLIENT_NUMBER, "", INT64_MAX},
        {"$0\r\n\r\n", 0, RESP_CLIENT_BULK, "", 0},
        {"$4\r\na\r\nb\r\n", 0, RESP_CLIENT_BULK, "a\r\nb", 0},
        {"$-1\r\n", 0, RESP_CLIENT_NIL, "", 0},
    };
    for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
        const struct good *good = &goods[i];
        struct resp_client_reply reply;
        uint32_t n = (uint32_t)strlen(good->text);
        uint32_t used = 0;
        for (uint32_t part = 0; part < n; part++) {
            assert_int_equal(parse(good->text, part, &reply, &used), HK_ERR_NOTFOUND);
            assert_int_equal(used, 0);
        }
        assert_int_equal(parse(good->text, n, &reply, &used), HK_OK);
        assert_int_equal(used, n);
        assert_int_equal(reply.kind, good->kind);
        assert_true(reply.number == good->number);
        assert_true(
            bytes_equal(reply.text, bytes_of(good->content, (uint32_t)strlen(good->content))));
        /* What follows does not matter. */
        char more[64];
        int length = snprintf(more, sizeof more, "%s+more\r\n", good->text);
        assert_int_equal(parse(more, (uint32_t)length, &reply, &used), HK_OK);
        assert_int_equal(used, n);
    }
}

static void hostile_replies_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int err;
    } bad[] = {
        {"HTTP/1.1 400 Bad Request\r\n", HK_ERR_CORRUPT},
        {"\r\n", HK_ERR_CORRUPT},
        {"*1\r\n:1\r\n", HK_ERR_TYPE},
        {"%1\r\n", HK_ERR_CORRUPT},
        {"+a\rb\r\n", HK_ERR_CORRUPT},
        {":\r\n", HK_ERR_CORRUPT},
        {":-\r\n", HK_ERR_CORRUPT},
        {":1a\r\n", HK_ERR_CORRUPT},
        {":+1\r\n", HK_ERR_CORRUPT},
        {": 1\r\n", HK_ERR_CORRUPT},
        {":9223372036854775808\r\n", HK_ERR_CORRUPT},
        {":-9223372036854775809\r\n", HK_ERR_CORRUPT},
        {":99999999999999999999999\r\n", HK_ERR_CORRUPT},
        {"$-2\r\n", HK_ERR_CORRUPT},
        {"$1\r\nab\r\n", HK_ERR_CORRUPT},
        {"$16777217\r\n", HK_ERR_TOOBIG},
        {"$4294967296\r\n", HK_ERR_TOOBIG},
        {"$9223372036854775807\r\n", HK_ERR_TOOBIG},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct resp_client_reply reply;
        uint32_t used = 1;
        int err = parse(bad[i].text, (uint32_t)strlen(bad[i].text), &reply, &used);
        if (err != bad[i].err || used != 0) {
            fail_msg("%s: %d, used %u", bad[i].text, err, used);
        }
    }
    /* A line without end: as long as it may be it is waited for, then it is refused. */
    char *endless = malloc(RESP_CLIENT_LINE_MAX + 2);
    struct resp_client_reply reply;
    uint32_t used = 0;
    assert_non_null(endless);
    memset(endless, '+', RESP_CLIENT_LINE_MAX + 2);
    assert_int_equal(parse(endless, RESP_CLIENT_LINE_MAX + 1, &reply, &used), HK_ERR_NOTFOUND);
    assert_int_equal(parse(endless, RESP_CLIENT_LINE_MAX + 2, &reply, &used), HK_ERR_TOOBIG);
    free(endless);
}

/* A server for one client: answers what it gets with `answer`, once it has read `expect`. */
struct server {
    int listener;
    uint16_t port;
    const char *expect;
    const char *answer; /* NULL: never */
    bool piecewise;     /* byte by byte */
    bool closes;        /* then; otherwise waits until the client does */
    pthread_t thread;
    bool as_expected;
};

static void *serve(void *context)
{
    struct server *server = context;
    char got[256] = "";
    size_t n = 0;
    int fd = accept(server->listener, NULL, NULL);
    while (fd >= 0 && n < strlen(server->expect)) {
        ssize_t more = read(fd, got + n, sizeof got - 1 - n);
        if (more <= 0) {
            break;
        }
        n += (size_t)more;
        got[n] = '\0';
    }
    server->as_expected = strcmp(got, server->expect) == 0;
    size_t left = server->answer == NULL ? 0 : strlen(server->answer);
    for (const char *at = server->answer; left > 0;) {
        ssize_t sent = send(fd, at, server->piecewise ? 1 : left, MSG_NOSIGNAL);
        if (sent <= 0) {
            break;
        }
        at += sent;
        left -= (size_t)sent;
    }
    if (!server->closes) {
        while (read(fd, got, sizeof got) > 0) {
        }
    }
    close(fd);
    return NULL;
}

static void start(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, 1), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &n), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct server *server)
{
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    close(server->listener);
}

static int call(struct resp_client *client, uint32_t timeout_ms, struct resp_client_reply *reply)
{
    struct bytes args[] = {bytes_of("GET", 3), bytes_of("k\r\n", 3), bytes_of(NULL, 0)};
    return resp_client_call(client, 3, args, timeout_ms, reply);
}

static const char request[] = "*3\r\n$3\r\nGET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n";

static int talk(struct server *server, uint32_t timeout_ms, struct resp_client *client,
                struct resp_client_reply *reply)
{
    start(server);
    struct resp_client_target target = {.host = "127.0.0.1", .port = server->port};
    resp_client_init(client);
    assert_int_equal(resp_client_connect(client, &target, 5000), HK_OK);
    return call(client, timeout_ms, reply);
}

static void calls_are_answered(void **state)
{
    (void)state;
    for (int piecewise = 0; piecewise < 2; piecewise++) {
        struct server server = {
            .expect = request, .answer = "$5\r\nhello\r\n", .piecewise = piecewise == 1};
        struct resp_client client;
        struct resp_client_reply reply;
        assert_int_equal(talk(&server, 5000, &client, &reply), HK_OK);
        assert_int_equal(reply.kind, RESP_CLIENT_BULK);
        assert_true(bytes_equal(reply.text, bytes_of("hello", 5)));
        resp_client_deinit(&client);
        stop(&server);
        assert_true(server.as_expected);
    }
}

static void failures_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool closes;
        uint32_t timeout_ms;
        int err;
        const char *why;
    } cases[] = {
        {NULL, false, 1, HK_ERR_IO, "does not answer in time"},
        {"$5\r\nhel", false, 1, HK_ERR_IO, "does not answer in time"},
        {"$5\r\nhel", true, 5000, HK_ERR_IO, "closed"},
        {NULL, true, 5000, HK_ERR_IO, "closed"},
        {"HTTP/1.1 400\r\n", false, 5000, HK_ERR_CORRUPT, "Redis protocol"},
        {"+OK\r\n+OK\r\n", false, 5000, HK_ERR_CORRUPT, "Redis protocol"},
        {"*0\r\n", false, 5000, HK_ERR_CORRUPT, "Redis protocol"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server server = {
            .expect = request, .answer = cases[i].answer, .closes = cases[i].closes};
        struct resp_client client;
        struct resp_client_reply reply;
        int err = talk(&server, cases[i].timeout_ms, &client, &reply);
        if (err != cases[i].err || strstr(client.why, cases[i].why) == NULL) {
            fail_msg("case %zu: %d: %s", i, err, client.why);
        }
        /* The connection is closed, and says so. */
        assert_int_equal(client.fd, -1);
        assert_int_equal(call(&client, 1000, &reply), HK_ERR_IO);
        resp_client_deinit(&client);
        stop(&server);
    }
}

static void nobody_listens(void **state)
{
    (void)state;
    struct resp_client client;
    struct resp_client_target target = {.host = "127.0.0.1"};
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof address;
    /* A port that is taken and does not listen. */
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    target.port = ntohs(address.sin_port);
    resp_client_init(&client);
    assert_int_equal(resp_client_connect(&client, &target, 5000), HK_ERR_IO);
    assert_non_null(strstr(client.why, "refused"));
    assert_non_null(strstr(client.why, "127.0.0.1:"));
    close(fd);
    target.host = "no host has this name";
    assert_int_equal(resp_client_connect(&client, &target, 5000), HK_ERR_INVALID);
    target.socket_path = "/nonexistent/socket";
    assert_int_equal(resp_client_connect(&client, &target, 5000), HK_ERR_IO);
    assert_non_null(strstr(client.why, "/nonexistent/socket"));
    char lengthy[200];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    target.socket_path = lengthy;
    assert_int_equal(resp_client_connect(&client, &target, 5000), HK_ERR_INVALID);
    resp_client_deinit(&client);
}

static void unix_sockets_work(void **state)
{
    (void)state;
    char dir[] = "/tmp/tools_resp_client_test.XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct server server = {.expect = request, .answer = ":7\r\n"};
    struct resp_client client;
    struct resp_client_reply reply;
    assert_non_null(mkdtemp(dir));
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", dir);
    server.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(server.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server.listener, 1), 0);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
    struct resp_client_target target = {.socket_path = address.sun_path};
    resp_client_init(&client);
    assert_int_equal(resp_client_connect(&client, &target, 5000), HK_OK);
    assert_int_equal(call(&client, 5000, &reply), HK_OK);
    assert_int_equal(reply.number, 7);
    resp_client_deinit(&client);
    stop(&server);
    unlink(address.sun_path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_read),   cmocka_unit_test(hostile_replies_are_refused),
        cmocka_unit_test(calls_are_answered), cmocka_unit_test(failures_say_why),
        cmocka_unit_test(nobody_listens),     cmocka_unit_test(unix_sockets_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
