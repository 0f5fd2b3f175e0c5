#include "cli/terminal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_MAX 10000
#define WARNING_MAX_BYTES 1024 // by which two are told apart

static struct {
    enum colour_choice choice;
    bool is_quiet;
    int has_colour[2]; // stdout, stderr; 0: not asked yet, 1: yes, -1: no
} terminal;

void terminal_choose(const char *color, bool is_quiet)
{
    static const char *const words[] = {[COLOUR_AUTO] = "auto", [COLOUR_ALWAYS] = "always", [COLOUR_NEVER] = "never"};
    terminal.choice = COLOUR_AUTO;
    for (size_t i = 0; color && i < ARRAY_LEN(words); i++)
        if (strcmp(words[i], color) == 0)
            terminal.choice = (enum colour_choice)i;
    terminal.is_quiet = is_quiet;
    memset(terminal.has_colour, 0, sizeof(terminal.has_colour));
}

bool terminal_is_there(FILE *stream)
{
    return isatty(fileno(stream)) == 1;
}

int terminal_width(FILE *stream)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    if (!terminal_is_there(stream))
        return 0;
    long number = columns ? strtol(columns, NULL, 10) : 0;
    if (number > 0 && number <= WIDTH_MAX)
        return (int)number;
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// ---- colours ------------------------------------------------------------------------------------------------------------
bool terminal_wants_colour(enum colour_choice choice, bool is_terminal, const char *no_color, const char *term)
{
    if (choice != COLOUR_AUTO)
        return choice == COLOUR_ALWAYS;
    return is_terminal && !(no_color && *no_color) && term && *term && strcmp(term, "dumb") != 0;
}

bool terminal_has_colour(FILE *stream)
{
    int *known = &terminal.has_colour[stream == stderr];
    if (!*known)
        *known = terminal_wants_colour(terminal.choice, terminal_is_there(stream), getenv("NO_COLOR"), getenv("TERM")) ? 1 : -1;
    return *known > 0;
}

const char *style_bytes(enum style style)
{
    static const char *const bytes[STYLE_COUNT] = {
        [STYLE_PLAIN] = "",           [STYLE_HEADING] = "\033[1m", [STYLE_GOOD] = "\033[32m",  [STYLE_WARN] = "\033[33m",
        [STYLE_BAD] = "\033[31m", [STYLE_FAINT] = "\033[2m", [STYLE_ADDED] = "\033[32m", [STYLE_REMOVED] = "\033[31m",
    };
    return bytes[style];
}

const char *style_on(FILE *stream, enum style style)
{
    return terminal_has_colour(stream) ? style_bytes(style) : "";
}

const char *style_off(FILE *stream, enum style style)
{
    return style != STYLE_PLAIN && terminal_has_colour(stream) ? STYLE_END : "";
}

enum style style_of_word(const char *word)
{
    static const struct {
        const char *word;
        enum style style;
    } words[] = {
        // phases (see record_compute_phase)
        {"running", STYLE_GOOD}, {"ready", STYLE_GOOD}, {"approved", STYLE_GOOD}, {"published", STYLE_GOOD}, {"active", STYLE_GOOD},
        {"creating", STYLE_WARN}, {"starting", STYLE_WARN}, {"pending", STYLE_WARN}, {"destroying", STYLE_WARN}, {"outside", STYLE_WARN},
        {"retained", STYLE_FAINT}, {"destroyed", STYLE_FAINT}, {"trashed", STYLE_FAINT}, {"revoked", STYLE_FAINT},
        {"ended", STYLE_FAINT}, {"removed", STYLE_FAINT}, {"expired", STYLE_FAINT}, {"exhausted", STYLE_FAINT},
        {"failed", STYLE_BAD}, {"rejected", STYLE_BAD},
        // types of events, findings
        {"Warning", STYLE_WARN}, {"pass", STYLE_GOOD}, {"warn", STYLE_WARN}, {"fail", STYLE_BAD},
    };
    for (size_t i = 0; word && i < ARRAY_LEN(words); i++)
        if (strcmp(words[i].word, word) == 0)
            return words[i].style;
    return STYLE_PLAIN;
}

// ---- questions ----------------------------------------------------------------------------------------------------------
bool terminal_can_ask(void)
{
    return terminal_is_there(stdin) && terminal_is_there(stderr);
}

bool terminal_agrees(const char *format, ...)
{
    char answer[16] = "";
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *question = mem_vformat(format, args);
    va_end(args);
    CLEANUP_FREE char *printable = utf8_to_printable(question, strlen(question), false);
    fprintf(stderr, "%s [y/N] ", printable);
    fflush(stderr);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

// ---- quiet --------------------------------------------------------------------------------------------------------------
bool terminal_is_quiet(void)
{
    return terminal.is_quiet;
}

static void say(FILE *stream, const char *format, va_list args)
{
    if (terminal.is_quiet)
        return;
    CLEANUP_FREE char *text = mem_vformat(format, args);
    CLEANUP_FREE char *printable = utf8_to_printable(text, strlen(text), true);
    fprintf(stream, "%s\n", printable);
}

void terminal_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(stderr, format, args);
    va_end(args);
}

void terminal_confirm(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(stdout, format, args);
    va_end(args);
}

void terminal_warn(const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char last[WARNING_MAX_BYTES];
    char now[WARNING_MAX_BYTES];
    if (terminal.is_quiet)
        return;
    snprintf(now, sizeof(now), "%s", text);
    CLEANUP_FREE char *printable = utf8_to_printable(text, strlen(text), true);
    pthread_mutex_lock(&lock);
    if (strcmp(now, last) != 0)
        fprintf(stderr, "%swarning:%s %s\n", style_on(stderr, STYLE_WARN), style_off(stderr, STYLE_WARN), printable);
    memcpy(last, now, sizeof(last));
    pthread_mutex_unlock(&lock);
}
