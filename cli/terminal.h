// What the command line knows of the terminal it writes to: whether there is one, how wide it is, whether colours are wanted
// there; and whether only results are to be printed (--quiet). A pipe or a file always gets the same plain bytes.
//
//     printf("%s%s%s\n", style_on(stdout, STYLE_BAD), "failed", style_off(stdout, STYLE_BAD));   // nothing but "failed" in a pipe
//     terminal_note("waiting for %s", name);                // progress, on stderr; nothing with --quiet
//     terminal_confirm("sandbox/%s deleted", name);         // what was done, on stdout; nothing with --quiet
//
// Set once, while the command line is read; then one thread, but for terminal_note and terminal_warn, which all may call.
#pragma once
#include <stdbool.h>
#include <stdio.h>

enum style {
    STYLE_PLAIN,
    STYLE_HEADING, // of tables and sections
    STYLE_GOOD,
    STYLE_WARN,
    STYLE_BAD,
    STYLE_FAINT,
    STYLE_ADDED,   // of a diff
    STYLE_REMOVED,
    STYLE_COUNT
};
enum colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

// color: "auto", "always", "never" or NULL (auto).
void terminal_choose(const char *color, bool is_quiet);

bool terminal_is_there(FILE *stream);
// Columns; 0 where there is no terminal or it does not say. COLUMNS overrules what a terminal says.
int terminal_width(FILE *stream);
// The rule by itself: never with `never`; always with `always`; else on a terminal, unless NO_COLOR is set to anything but
// nothing or TERM is "dumb" or missing. NULL: not set.
bool terminal_wants_colour(enum colour_choice choice, bool is_terminal, const char *no_color, const char *term);
bool terminal_has_colour(FILE *stream);
// Is there somebody to ask: are standard input and standard error a terminal?
bool terminal_can_ask(void);
// Asks on standard error, and waits for the answer: true for yes. The question without a mark of what can be answered.
bool terminal_agrees(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool terminal_is_quiet(void);

// The bytes that begin and end a style on that stream; "" where it has no colours.
const char *style_on(FILE *stream, enum style style);
const char *style_off(FILE *stream, enum style style);
const char *style_bytes(enum style style); // of a terminal; "" for PLAIN
#define STYLE_END "\033[0m"
// What a word of a status stands for: "running", "active", "pass" are good, "pending" is a warning, "failed" bad; else plain.
enum style style_of_word(const char *word);

// Lines for people that are not the result asked for; a newline is added, control characters are made visible.
void terminal_note(const char *format, ...) __attribute__((format(printf, 1, 2)));    // on stderr
void terminal_confirm(const char *format, ...) __attribute__((format(printf, 1, 2))); // on stdout
void terminal_warn(const char *text); // "warning: TEXT" on stderr, once in a row however often it is told
