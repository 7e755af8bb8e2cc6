/* The "arguments" of COMMAND DOCS, from the syntax text of a row:
 *
 *   syntax   = choice
 *   choice   = sequence { "|" sequence }
 *   sequence = item { item }
 *   item     = ( WORD | word | "[" choice "]" | "(" choice ")" ) [ "..." ]
 *
 * A WORD in capitals is written as it stands, a word stands for a value, brackets hold what may be
 * left out, dots follow what may be repeated. A WORD before a value or before parentheses belongs
 * to them. The text is parsed into nodes and then written, because RESP wants counts first. */
#include "resp/command.h"

#include <string.h>

#define NODES_MAX 64u
#define NAME_MAX_BYTES 48u

enum node_kind { NODE_VALUE, NODE_TOKEN, NODE_CHOICE, NODE_BLOCK };

struct node {
    enum node_kind kind;
    struct bytes word;  /* of a value or a token; of the others that of their first child */
    struct bytes token; /* that belongs to it; n 0: none */
    bool optional, multiple;
    uint32_t first, next, children; /* 0 ends a list: node 0 is the outermost block */
};

struct syntax {
    struct node nodes[NODES_MAX];
    uint32_t n;
    const char *at;
    bool failed;
    uint32_t keys; /* written so far */
};

static uint32_t parse_choice(struct syntax *syntax, char end);

static uint32_t add_node(struct syntax *syntax, enum node_kind kind)
{
    if (syntax->n == NODES_MAX) {
        syntax->failed = true;
        return NODES_MAX - 1;
    }
    syntax->nodes[syntax->n] = (struct node){.kind = kind};
    return syntax->n++;
}

static void skip_blanks(struct syntax *syntax)
{
    while (*syntax->at == ' ') {
        syntax->at++;
    }
}

static bool is_word(char c)
{
    return c != '\0' && strchr(" []()|", c) == NULL;
}

static struct bytes parse_word(struct syntax *syntax)
{
    const char *from = syntax->at;
    while (is_word(*syntax->at) && strncmp(syntax->at, "...", 3) != 0) {
        syntax->at++;
    }
    return bytes_of(from, (uint32_t)(syntax->at - from));
}

static uint32_t parse_item(struct syntax *syntax)
{
    struct bytes token = {NULL, 0};
    uint32_t item;
    if (*syntax->at >= 'A' && *syntax->at <= 'Z') {
        token = parse_word(syntax);
        skip_blanks(syntax);
    }
    if (*syntax->at == '(' || (*syntax->at == '[' && token.n == 0)) {
        bool optional = *syntax->at++ == '[';
        item = parse_choice(syntax, optional ? ']' : ')');
        syntax->nodes[item].optional = syntax->nodes[item].optional || optional;
    } else if (is_word(*syntax->at) && (token.n == 0 || *syntax->at < 'A' || *syntax->at > 'Z')) {
        item = add_node(syntax, NODE_VALUE);
        syntax->nodes[item].word = parse_word(syntax);
        syntax->failed = syntax->failed || syntax->nodes[item].word.n == 0;
    } else {
        syntax->failed = syntax->failed || token.n == 0;
        item = add_node(syntax, NODE_TOKEN);
        syntax->nodes[item].word = token;
    }
    if (token.n > 0) {
        syntax->nodes[item].token = token;
    }
    if (strncmp(syntax->at, "...", 3) == 0) {
        syntax->nodes[item].multiple = true;
        syntax->at += 3;
    }
    skip_blanks(syntax);
    return item;
}

static void add_child(struct syntax *syntax, uint32_t parent, uint32_t *last, uint32_t child)
{
    struct node *node = &syntax->nodes[parent];
    if (node->children++ == 0) {
        node->first = child;
        node->word = syntax->nodes[child].word;
    } else {
        syntax->nodes[*last].next = child;
    }
    *last = child;
}

/* A block of one item is that item. */
static uint32_t parse_sequence(struct syntax *syntax)
{
    uint32_t block = add_node(syntax, NODE_BLOCK);
    uint32_t last = 0;
    skip_blanks(syntax);
    while (!syntax->failed && *syntax->at != '\0' && strchr("])|", *syntax->at) == NULL) {
        add_child(syntax, block, &last, parse_item(syntax));
    }
    syntax->failed = syntax->failed || syntax->nodes[block].children == 0;
    return block != 0 && syntax->nodes[block].children == 1 ? last : block;
}

static uint32_t parse_choice(struct syntax *syntax, char end)
{
    uint32_t choice = 0;
    uint32_t last = 0;
    uint32_t sequence = parse_sequence(syntax);
    while (!syntax->failed && *syntax->at == '|') {
        syntax->at++;
        if (choice == 0) {
            choice = add_node(syntax, NODE_CHOICE);
            add_child(syntax, choice, &last, sequence);
        }
        add_child(syntax, choice, &last, parse_sequence(syntax));
    }
    if (*syntax->at != end) {
        syntax->failed = true;
    } else if (end != '\0') {
        syntax->at++;
    }
    return choice != 0 ? choice : sequence;
}

static bool is_one_of(struct bytes word, const char *const *words)
{
    for (uint32_t i = 0; words[i] != NULL; i++) {
        if (bytes_equal(word, bytes_of(words[i], (uint32_t)strlen(words[i])))) {
            return true;
        }
    }
    return false;
}

/* Redis's name for the type of a value; clients only show it. */
static const char *value_type(struct bytes word)
{
    static const char *const keys[] = {"key", "newkey", "source", "destination", NULL};
    static const char *const integers[] = {
        "client-id", "count",     "cursor", "decrement",    "destination-db",
        "end",       "increment", "index",  "milliseconds", "numreplicas",
        "offset",    "protover",  "start",  "timeout",      NULL};
    static const char *const times[] = {"unix-time-seconds", "unix-time-milliseconds", NULL};
    static const char *const doubles[] = {"decimal", NULL};
    static const char *const patterns[] = {"pattern", NULL};
    if (is_one_of(word, keys)) {
        return "key";
    }
    if (is_one_of(word, integers) || bytes_equal(word, bytes_of("seconds", 7))) {
        return "integer";
    }
    if (is_one_of(word, times)) {
        return "unix-time";
    }
    if (is_one_of(word, doubles)) {
        return "double";
    }
    return is_one_of(word, patterns) ? "pattern" : "string";
}

static const char *node_type(const struct node *node)
{
    switch (node->kind) {
    case NODE_VALUE:
        return value_type(node->word);
    case NODE_TOKEN:
        return "pure-token";
    case NODE_CHOICE:
        return "oneof";
    case NODE_BLOCK:
        break;
    }
    return "block";
}

static void write_lower(struct bytes word, struct resp_out *out)
{
    char name[NAME_MAX_BYTES];
    uint32_t n = word.n < NAME_MAX_BYTES ? word.n : NAME_MAX_BYTES;
    for (uint32_t i = 0; i < n; i++) {
        char c = (char)word.at[i];
        name[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    resp_out_bulk(out, bytes_of(name, n));
}

static void write_children(struct syntax *syntax, uint32_t index, struct resp_out *out);

static void write_node(struct syntax *syntax, uint32_t index, struct resp_out *out)
{
    const struct node *node = &syntax->nodes[index];
    const char *type = node_type(node);
    bool key = strcmp(type, "key") == 0;
    bool group = node->kind == NODE_CHOICE || node->kind == NODE_BLOCK;
    uint32_t flags = (node->optional ? 1u : 0u) + (node->multiple ? 1u : 0u);
    resp_out_map(out, 2u + key + (node->token.n > 0) + (flags > 0) + group);
    resp_out_text(out, "name");
    write_lower(node->word, out);
    resp_out_text(out, "type");
    resp_out_text(out, type);
    if (key) {
        resp_out_text(out, "key_spec_index");
        resp_out_number(out, syntax->keys++);
    }
    if (node->token.n > 0) {
        resp_out_text(out, "token");
        resp_out_bulk(out, node->token);
    }
    if (flags > 0) {
        resp_out_text(out, "flags");
        resp_out_set(out, flags);
        if (node->optional) {
            resp_out_simple(out, "optional");
        }
        if (node->multiple) {
            resp_out_simple(out, "multiple");
        }
    }
    if (group) {
        resp_out_text(out, "arguments");
        write_children(syntax, index, out);
    }
}

/* As deep as the brackets of a row, which is a constant of the program. */
static void write_children(struct syntax *syntax, uint32_t index, struct resp_out *out)
{
    const struct node *node = &syntax->nodes[index];
    resp_out_array(out, node->children);
    for (uint32_t i = 0, child = node->first; i < node->children; i++) {
        write_node(syntax, child, out);
        child = syntax->nodes[child].next;
    }
}

uint32_t resp_arguments_write(const char *text, struct resp_out *out)
{
    struct syntax syntax = {.at = text};
    if (parse_choice(&syntax, '\0') != 0 || syntax.failed) {
        return 0;
    }
    write_children(&syntax, 0, out);
    return syntax.nodes[0].children;
}
