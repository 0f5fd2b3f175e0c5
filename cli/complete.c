#include "cli/complete.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define TIME_MAX_S 1

void complete_add(const struct completion *completion, const char *candidate, const char *doc)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/=@%+";
    if (strncmp(candidate, completion->word, strlen(completion->word)) != 0 || strspn(candidate, plain) != strlen(candidate))
        return;
    CLEANUP_FREE char *printable = doc ? utf8_to_printable(doc, strlen(doc), false) : NULL;
    printf("%.*s%s%s%s\n", (int)completion->prefix_len, completion->prefix, candidate, printable ? "\t" : "", printable ? printable : "");
}

// ---- the words before it ------------------------------------------------------------------------------------------------
static void add_value(struct invocation *in, const struct option_row *row, const char *text)
{
    in->values = mem_realloc_array(in->values, in->value_count + 1, sizeof(*in->values));
    in->values[in->value_count++] = (struct option_value){row, text};
}

static bool needs_value(const struct option_row *row)
{
    return row->value && !row->bare;
}

// The option whose value the next word is; NULL: none.
static const struct option_row *read_option(struct invocation *in, const char *word)
{
    const struct option_row *row = NULL;
    const char *value = NULL;
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        row = option_find(in->command, word + 2, len);
        value = word[2 + len] ? word + 3 + len : NULL;
    } else {
        const char *c = word + 1;
        while ((row = option_find_letter(in->command, *c)) != NULL && !needs_value(row) && c[1])
            c++;
        value = row && c[1] ? c + 1 + (c[1] == '=') : NULL;
    }
    if (row && needs_value(row) && !value)
        return row;
    if (row)
        add_value(in, row, value ? value : "true");
    return NULL;
}

static bool read_word(struct invocation *in, const char *word)
{
    if (!in->command)
        return (in->command = command_find(word)) != NULL;
    if (in->command->child_count && !in->parent && command_find_child(in->command, word)) {
        in->parent = in->command;
        in->command = command_find_child(in->parent, word);
    } else
        in->arguments[in->argument_count++] = word;
    return true;
}

// ---- the word itself ----------------------------------------------------------------------------------------------------
static bool is_given(const struct invocation *in, const struct option_row *row)
{
    for (size_t i = 0; i < in->value_count; i++)
        if (in->values[i].row == row)
            return true;
    return false;
}

static void complete_options(struct completion *completion)
{
    const struct invocation *in = &completion->in;
    const struct option_row *row;
    completion->directive = COMPLETE_NO_FILES;
    for (size_t i = 0; (row = option_at(in->command, i)) != NULL; i++) {
        CLEANUP_FREE char *name = mem_format("--%s", row->name);
        if (row->is_repeatable || !is_given(in, row))
            complete_add(completion, name, row->doc);
    }
}

static void complete_commands(struct completion *completion)
{
    const struct command *command = completion->in.command;
    completion->directive = COMPLETE_NO_FILES;
    for (size_t i = 0; !command && i < command_count; i++)
        complete_add(completion, commands[i]->name, commands[i]->summary);
    for (size_t i = 0; command && i < command->child_count; i++)
        complete_add(completion, command->children[i].name, command->children[i].summary);
}

void completion_move_on(struct completion *completion, size_t len)
{
    completion->word += len;
    completion->prefix_len += len;
}

// "--output=js", "-oname": a value inside the word.
static bool complete_joined(struct completion *completion)
{
    const char *word = completion->word;
    bool is_long = word[0] == '-' && word[1] == '-';
    size_t len = is_long ? strcspn(word, "=") : 2;
    if (word[0] != '-' || strlen(word) <= len)
        return false;
    const struct option_row *row = is_long ? option_find(completion->in.command, word + 2, len - 2) : option_find_letter(completion->in.command, word[1]);
    if (!row || (!is_long && !row->value))
        return false;
    completion_move_on(completion, len + (word[len] == '='));
    complete_value(completion, row);
    return true;
}

static void complete_word(struct completion *completion, const struct option_row *waiting)
{
    const struct command *command = completion->in.command;
    if (completion->in.rest)
        completion->directive = COMPLETE_NO_FILES; // another program's, in another place
    else if (waiting)
        complete_value(completion, waiting);
    else if (complete_joined(completion))
        return;
    else if (completion->word[0] == '-')
        complete_options(completion);
    else if (!command || (command->child_count && !completion->in.argument_count))
        complete_commands(completion);
    else
        complete_argument(completion);
}

// ---- the whole ----------------------------------------------------------------------------------------------------------
static void give_up(int signal)
{
    (void)signal;
    _exit(0); // nothing was printed yet: it is all in the stream's buffer
}

static void bound_time(void)
{
    static char all[1 << 20];
    const struct itimerval limit = {.it_value.tv_sec = TIME_MAX_S};
    setvbuf(stdout, all, _IOFBF, sizeof(all));
    signal(SIGALRM, give_up);
    setitimer(ITIMER_REAL, &limit, NULL);
}

// What stands before the word that is completed. False: nothing that has completions. *ret: the option whose value the word is.
static bool read_words(struct invocation *in, int count, char **words, const struct option_row **ret)
{
    const struct option_row *waiting = NULL;
    bool is_known = true;
    in->arguments = mem_alloc(((size_t)count + 1) * sizeof(*in->arguments));
    for (int i = 0; i < count && !in->rest && is_known; i++) {
        if (waiting) {
            add_value(in, waiting, words[i]);
            waiting = NULL;
        } else if (strcmp(words[i], "--") == 0)
            in->rest = words + i + 1;
        else if (words[i][0] == '-' && words[i][1])
            waiting = read_option(in, words[i]);
        else
            is_known = read_word(in, words[i]);
    }
    *ret = waiting;
    return is_known;
}

int complete_run(int argc, char **argv)
{
    const struct option_row *waiting = NULL;
    const char *word = argc ? argv[argc - 1] : "";
    struct completion completion = {.word = word, .prefix = word, .directive = COMPLETE_NO_FILES};
    bound_time();
    if (read_words(&completion.in, argc ? argc - 1 : 0, argv, &waiting))
        complete_word(&completion, waiting);
    printf(":%d\n", completion.directive);
    fflush(stdout);
    invocation_clear(&completion.in);
    return 0;
}
