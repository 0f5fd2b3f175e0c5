#include "cli/man_write.h"
#include "controller/base/cleanup.h"
#include <ctype.h>
#include <string.h>

void man_text(FILE *to, const char *text)
{
    // As they are typed, not as a printer would set them.
    static const struct {
        char c;
        const char *escape;
    } escapes[] = {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}, {'"', "\\(dq"}};
    if (*text == '.')
        fputs("\\&", to);
    for (; *text; text++) {
        const char *escape = NULL;
        for (size_t i = 0; i < ARRAY_LEN(escapes) && !escape; i++)
            escape = escapes[i].c == *text ? escapes[i].escape : NULL;
        if (escape)
            fputs(escape, to);
        else
            fputc(*text, to);
        if (*text == '\n' && text[1] == '.')
            fputs("\\&", to);
    }
}

void man_line(FILE *to, const char *request, const char *text)
{
    fputs(request, to);
    man_text(to, text);
    fputc('\n', to);
}

void man_head(FILE *to, const char *page, int section, const char *summary)
{
    fputs(".TH \"", to);
    for (const char *c = page; *c; c++)
        fputc(toupper((unsigned char)*c), to);
    fprintf(to, "\" %d \"\" \"chat2shell " CHAT2SHELL_VERSION "\"\n.nh\n.ad l\n.SH NAME\n", section);
    man_text(to, page);
    fputs(" \\- ", to);
    man_line(to, "", summary);
}

void man_option(FILE *to, const struct option_row *row)
{
    fputs(".TP\n\\fB", to);
    if (row->letter)
        fprintf(to, "\\-%c\\fR, \\fB", row->letter);
    fputs("\\-\\-", to);
    man_text(to, row->name);
    fputs("\\fR", to);
    if (row->value) {
        fputs(row->bare ? "[=\\fI" : "=\\fI", to);
        man_text(to, row->value);
        fputs(row->bare ? "\\fR]" : "\\fR", to);
    }
    fputc('\n', to);
    man_text(to, row->doc);
    for (size_t i = 0; row->value && row->choices && row->choices[i]; i++) {
        fputs(i ? ", " : "; one of ", to);
        man_text(to, row->choices[i]);
    }
    fputs(".\n", to);
}

void man_examples(FILE *to, const struct command *command)
{
    for (size_t i = 0; i < command->example_count; i++) {
        fputs(".PP\n", to);
        man_line(to, "", command->examples[i].doc);
        fputs(".PP\n.RS 4\n.nf\n", to);
        man_line(to, "", command->examples[i].line);
        fputs(".fi\n.RE\n", to);
    }
}

void man_exit_codes(FILE *to)
{
    fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < exit_code_count; i++) {
        fprintf(to, ".TP\n.B %s\n", exit_codes[i].code);
        man_line(to, "", exit_codes[i].doc);
    }
}

void man_see_also(FILE *to, const char *const *pages, size_t count)
{
    fputs(".SH SEE ALSO\n", to);
    for (size_t i = 0; i < count; i++) {
        size_t name = strcspn(pages[i], "(");
        fputs(".BR ", to);
        for (size_t c = 0; c < name; c++)
            fputs((char[]){pages[i][c] == '-' ? '\\' : pages[i][c], pages[i][c] == '-' ? '-' : '\0', '\0'}, to);
        fprintf(to, " %s%s\n", pages[i] + name, i + 1 < count ? "," : "");
    }
}
