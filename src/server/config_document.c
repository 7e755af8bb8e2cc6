/* The tables of docs/CONFIG.md. */
#include "server/config_table.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 4096u

static const char *default_text(const struct config_option *option, char out[CONFIG_TEXT_MAX])
{
    if (option->standard_doc != NULL) {
        return option->standard_doc;
    }
    (void)snprintf(out, CONFIG_TEXT_MAX, "`%s`", option->standard);
    return out;
}

/* For which engine alone the option is, if it is not for all. */
static const char *engine_text(const struct config_option *option, char out[CONFIG_TEXT_MAX])
{
    if (option->engine == NULL) {
        return "";
    }
    bool also = option->also != NULL;
    (void)snprintf(out, CONFIG_TEXT_MAX, "Only for `engine = %s%s%s`. ", option->engine,
                   also ? "` or `" : "", also ? option->also : "");
    return out;
}

static const char *redis_text(const struct config_option *option, char out[CONFIG_TEXT_MAX])
{
    if (option->alias == NULL) {
        return "-";
    }
    (void)snprintf(out, CONFIG_TEXT_MAX, "`%s`", option->alias);
    return out;
}

void config_document(void (*line)(void *context, const char *text), void *context)
{
    char text[LINE_MAX_BYTES], takes[CONFIG_TEXT_MAX], standard[CONFIG_TEXT_MAX];
    char redis[CONFIG_TEXT_MAX], engine[CONFIG_TEXT_MAX];
    for (uint32_t i = 0; i < SECTIONS; i++) {
        (void)snprintf(text, sizeof text, "### `[%s]`", config_sections[i].title);
        line(context, text);
        line(context, "");
        line(context, config_sections[i].help);
        line(context, "");
        line(context, "| option | takes | default | while running | Redis's name | meaning |");
        line(context, "|---|---|---|---|---|---|");
        for (uint32_t j = 0; j < config_options_n; j++) {
            const struct config_option *option = &config_options[j];
            if ((uint32_t)option->section != i) {
                continue;
            }
            config_value_describe(option, takes);
            (void)snprintf(text, sizeof text, "| `%s` | %s | %s | %s | %s | %s%s |", option->name,
                           takes, default_text(option, standard), option->runtime ? "yes" : "no",
                           redis_text(option, redis), engine_text(option, engine), option->help);
            line(context, text);
        }
        line(context, "");
    }
}
