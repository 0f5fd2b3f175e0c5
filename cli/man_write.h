// Source for man: text made safe, and the parts that every page has.
#pragma once
#include "cli/command.h"
#include <stdio.h>

void man_text(FILE *to, const char *text);                      // nothing in it is a request or an escape
void man_line(FILE *to, const char *request, const char *text); // the request, the text, a newline
void man_head(FILE *to, const char *page, int section, const char *summary); // .TH and NAME; page: "chat2shell-get"
void man_option(FILE *to, const struct option_row *row);
void man_examples(FILE *to, const struct command *command);
void man_exit_codes(FILE *to);
void man_see_also(FILE *to, const char *const *pages, size_t count); // "chat2shell(1)", …
