#include "support/hermes_print.h"

#include "engine/hermes/table.h"

static void list(FILE *out, uint32_t bits, const char *const *names, uint32_t n, const char *before,
                 const char *between)
{
    const char *separator = "";
    for (uint32_t i = 0; i < n; i++) {
        if ((bits >> i & 1) != 0) {
            fprintf(out, "%s%s%s", separator, before, names[i]);
            separator = between;
        }
    }
}

static void print_states(FILE *out, uint32_t states)
{
    if (states == (1u << HERMES_STATES) - 1) {
        fputs("any", out);
    } else {
        list(out, states, hermes_state_names, HERMES_STATES, "", ", ");
    }
}

static void print_condition(FILE *out, const struct hermes_row *row)
{
    list(out, row->when, hermes_condition_names, HERMES_CONDITIONS, "", ", ");
    if (row->when != 0 && row->unless != 0) {
        fputs(", ", out);
    }
    list(out, row->unless, hermes_condition_names, HERMES_CONDITIONS, "not ", ", ");
}

static void print_next(FILE *out, const struct hermes_row *row)
{
    if ((row->effects >> HERMES_DO_FORGET & 1) != 0) {
        fputs("no entry", out);
    } else if (row->next == HERMES_NEXT_SAME) {
        fputs("same", out);
    } else if (row->next == HERMES_NEXT_INVALID) {
        fputs("Invalid/Trans", out);
    } else {
        fputs(hermes_state_names[row->next], out);
    }
}

/* Which rows are in a cell, by number; "-" where the input cannot occur. */
static void print_matrix(FILE *out)
{
    fputs("| event |", out);
    for (int state = 0; state < HERMES_STATES; state++) {
        fprintf(out, " %s |", hermes_state_names[state]);
    }
    fputs("\n|---|---|---|---|---|---|\n", out);
    for (int input = 0; input < HERMES_INPUTS; input++) {
        fprintf(out, "| %s |", hermes_input_names[input]);
        for (int state = 0; state < HERMES_STATES; state++) {
            uint32_t count = 0;
            for (uint32_t i = 0; i < hermes_rows_n; i++) {
                if (hermes_rows[i].input == input && (hermes_rows[i].states >> state & 1) != 0) {
                    fprintf(out, " T%u", i + 1);
                    count++;
                }
            }
            fputs(count > 0 ? " |" : " - |", out);
        }
        fputs("\n", out);
    }
}

static void print_rows(FILE *out)
{
    int input = -1;
    for (uint32_t i = 0; i < hermes_rows_n; i++) {
        const struct hermes_row *row = &hermes_rows[i];
        if (row->input != input) {
            input = row->input;
            fprintf(out,
                    "\n**%s**\n\n| | in | if | next | effects | |\n|---|---|---|---|---|---|\n",
                    hermes_input_names[input]);
        }
        fprintf(out, "| T%u | ", i + 1);
        print_states(out, row->states);
        fputs(" | ", out);
        print_condition(out, row);
        fputs(" | ", out);
        print_next(out, row);
        fputs(" | ", out);
        list(out, row->effects, hermes_effect_names, HERMES_EFFECTS, "", ", ");
        fprintf(out, " | %s |\n", row->note != NULL ? row->note : "");
    }
}

void hermes_print_table(FILE *out)
{
    fputs(HERMES_PRINT_BEGIN "\n\n", out);
    print_matrix(out);
    print_rows(out);
    fputs("\n" HERMES_PRINT_END, out);
}
