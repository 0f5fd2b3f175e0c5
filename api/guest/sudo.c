#include "api/guest/sudo.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_GROUPS 64

enum { RUN_COMMAND, RUN_SHELL, RUN_LOGIN, RUN_NOTHING, RUN_HELP, RUN_VERSION };

struct sudo {
    const char *user, *group, *chdir;
    int action;
    bool sets_home;
    char **command; // the rest of argv
};

struct option_rule {
    char letter;
    const char *word;
    bool takes_value;
    int action; // RUN_COMMAND: no change
};

static const struct option_rule rules[] = {
    {'u', "user", true, RUN_COMMAND},
    {'g', "group", true, RUN_COMMAND},
    {'D', "chdir", true, RUN_COMMAND},
    {'p', "prompt", true, RUN_COMMAND},
    {'C', "close-from", true, RUN_COMMAND},
    {'T', "command-timeout", true, RUN_COMMAND},
    {'h', "host", true, RUN_COMMAND},
    {'r', "role", true, RUN_COMMAND},
    {'t', "type", true, RUN_COMMAND},
    {'E', "preserve-env", false, RUN_COMMAND},
    {'n', "non-interactive", false, RUN_COMMAND},
    {'H', "set-home", false, RUN_COMMAND},
    {'S', "stdin", false, RUN_COMMAND},
    {'A', "askpass", false, RUN_COMMAND},
    {'b', "background", false, RUN_COMMAND},
    {'B', "bell", false, RUN_COMMAND},
    {'P', "preserve-groups", false, RUN_COMMAND},
    {'i', "login", false, RUN_LOGIN},
    {'s', "shell", false, RUN_SHELL},
    {'k', "reset-timestamp", false, RUN_NOTHING},
    {'K', "remove-timestamp", false, RUN_NOTHING},
    {'v', "validate", false, RUN_NOTHING},
    {'l', "list", false, RUN_NOTHING},
    {'V', "version", false, RUN_VERSION},
    {0, "help", false, RUN_HELP},
};

static int complain(const char *format, const char *what)
{
    fputs("sudo: ", stderr);
    fprintf(stderr, format, what);
    fputc('\n', stderr);
    return 1;
}

static void apply(struct sudo *sudo, const struct option_rule *rule, const char *value)
{
    if (rule->letter == 'u')
        sudo->user = value;
    else if (rule->letter == 'g')
        sudo->group = value;
    else if (rule->letter == 'D')
        sudo->chdir = value;
    else if (rule->letter == 'H')
        sudo->sets_home = true;
    if (rule->action > sudo->action)
        sudo->action = rule->action;
}

static const struct option_rule *find_letter(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (letter && rules[i].letter == letter)
            return &rules[i];
    return NULL;
}

static const struct option_rule *find_word(const char *word, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (strlen(rules[i].word) == len && strncmp(rules[i].word, word, len) == 0)
            return &rules[i];
    return NULL;
}

// "-nu root": letters, the last of which may take the rest or the next argument. 0 or 1 (complained).
static int parse_letters(struct sudo *sudo, char ***at)
{
    for (const char *letter = **at + 1; *letter; letter++) {
        const struct option_rule *rule = find_letter(*letter);
        if (!rule)
            return complain("unknown option %s; this is chat2shell's sudo, see sudo --help", **at);
        const char *value = NULL;
        if (rule->takes_value) {
            value = letter[1] ? letter + 1 : *++*at;
            if (!value)
                return complain("option -%s needs a value", (char[]){rule->letter, '\0'});
        }
        apply(sudo, rule, value);
        if (value)
            break;
    }
    return 0;
}

static int parse_word(struct sudo *sudo, char ***at)
{
    const char *word = **at + 2, *value = strchr(word, '=');
    const struct option_rule *rule = find_word(word, value ? (size_t)(value - word) : strlen(word));
    if (!rule)
        return complain("unknown option %s; this is chat2shell's sudo, see sudo --help", **at);
    if (rule->takes_value && !value && !(value = *++*at))
        return complain("option --%s needs a value", word);
    apply(sudo, rule, value && *value == '=' ? value + 1 : value);
    return 0;
}

// "NAME=value" before the command.
static bool is_assignment(const char *text)
{
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return len && text[len] == '=' && !(text[0] >= '0' && text[0] <= '9');
}

static int parse(struct sudo *sudo, char **at)
{
    for (; *at && (*at)[0] == '-' && (*at)[1]; at++) {
        if (strcmp(*at, "--") == 0) {
            at++;
            break;
        }
        if ((*at)[1] == '-' ? parse_word(sudo, &at) : parse_letters(sudo, &at))
            return 1;
    }
    for (; *at && is_assignment(*at); at++)
        putenv(*at);
    sudo->command = at;
    return 0;
}

static bool is_number(const char *text)
{
    return *text == '#' && text[1] && strspn(text + 1, "0123456789") == strlen(text + 1);
}

// Static storage, as getpwnam has it; the files directly, since a static program cannot load name services.
static struct passwd *find_user(const char *user)
{
    FILE *file = fopen("/etc/passwd", "re");
    struct passwd *entry = NULL;
    while (file && (entry = fgetpwent(file)))
        if (is_number(user) ? entry->pw_uid == strtoul(user + 1, NULL, 10)
                            : strcmp(entry->pw_name, user) == 0)
            break;
    if (file)
        fclose(file);
    return entry;
}

static size_t groups_of(const struct passwd *user, gid_t groups[MAX_GROUPS])
{
    size_t count = 1;
    groups[0] = user->pw_gid;
    FILE *file = fopen("/etc/group", "re");
    for (struct group *entry; file && count < MAX_GROUPS && (entry = fgetgrent(file));)
        for (char **member = entry->gr_mem; *member; member++)
            if (strcmp(*member, user->pw_name) == 0 && count < MAX_GROUPS)
                groups[count++] = entry->gr_gid;
    if (file)
        fclose(file);
    return count;
}

static int become(const struct passwd *user)
{
    gid_t groups[MAX_GROUPS];
    if (user->pw_uid == getuid())
        return 0;
    size_t count = groups_of(user, groups);
    if (setgroups(count, groups) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)
        return complain("this sandbox cannot run programs as %s: it has one user, root", user->pw_name);
    return 0;
}

static void set_identity(const struct passwd *user, bool sets_home)
{
    char number[24];
    snprintf(number, sizeof(number), "%u", (unsigned)getuid());
    setenv("SUDO_UID", number, 1);
    snprintf(number, sizeof(number), "%u", (unsigned)getgid());
    setenv("SUDO_GID", number, 1);
    const char *caller = getenv("USER");
    setenv("SUDO_USER", caller && *caller ? caller : "root", 1);
    setenv("USER", user->pw_name, 1);
    setenv("LOGNAME", user->pw_name, 1);
    if (sets_home)
        setenv("HOME", user->pw_dir, 1);
}

// With -s or -i the command becomes one line for the shell, each word quoted.
static char *quote_command(char **words)
{
    struct {
        char *text;
        size_t len;
    } line = {mem_alloc(1), 0};
    for (; *words; words++) {
        line.text = mem_realloc(line.text, line.len + 4 * strlen(*words) + 4);
        char *to = line.text + line.len;
        if (line.len)
            *to++ = ' ';
        *to++ = '\'';
        for (const char *c = *words; *c; c++) {
            if (*c == '\'')
                to = stpcpy(to, "'\\''");
            else
                *to++ = *c;
        }
        *to++ = '\'';
        *to = '\0';
        line.len = (size_t)(to - line.text);
    }
    return line.text;
}

static int run_shell(const struct sudo *sudo, const struct passwd *user)
{
    bool is_login = sudo->action == RUN_LOGIN;
    const char *shell = is_login ? user->pw_shell : getenv("SHELL");
    if (!shell || !*shell)
        shell = "/bin/sh";
    char *argv[5] = {(char *)shell};
    int count = 1;
    if (is_login)
        argv[count++] = (char *)"-l";
    if (*sudo->command) {
        argv[count++] = (char *)"-c";
        argv[count++] = quote_command(sudo->command);
    }
    if (is_login && chdir(user->pw_dir) < 0)
        complain("cannot work in the home directory %s", user->pw_dir);
    execv(shell, argv);
    return complain("cannot run the shell %s", shell);
}

static int run_command(const struct sudo *sudo)
{
    execvp(sudo->command[0], sudo->command);
    return errno == ENOENT ? complain("%s: command not found", sudo->command[0])
                           : complain("%s: cannot be run", sudo->command[0]);
}

static int print_help(void)
{
    puts("usage: sudo [-EHnSikvs] [-u USER] [-D DIR] [--] [NAME=VALUE ...] COMMAND [ARG ...]\n"
         "In this sandbox every command runs as root already; sudo runs COMMAND as it is.");
    return 0;
}

int sudo_main(int argc, char **argv)
{
    (void)argc;
    struct sudo sudo = {.user = "root"};
    if (parse(&sudo, argv + 1))
        return 1;
    if (sudo.action == RUN_HELP)
        return print_help();
    if (sudo.action == RUN_VERSION)
        return printf("sudo of chat2shell-guest %s\n", CHAT2SHELL_VERSION) < 0;
    const struct passwd *user = find_user(sudo.user);
    static const struct passwd root = {
        .pw_name = (char *)"root", .pw_dir = (char *)"/root", .pw_shell = (char *)"/bin/bash"};
    if (!user && strcmp(sudo.user, "root") == 0)
        user = &root; // a sandbox without /etc/passwd
    if (!user)
        return complain("unknown user %s", sudo.user);
    if (sudo.action == RUN_NOTHING && !*sudo.command)
        return 0; // -v, -k, -l: there is no timestamp and nothing is forbidden
    if (sudo.action != RUN_SHELL && sudo.action != RUN_LOGIN && !*sudo.command)
        return complain("%s", "a command is needed; see sudo --help");
    if (sudo.chdir && chdir(sudo.chdir) < 0)
        return complain("cannot change to directory %s", sudo.chdir);
    set_identity(user, sudo.sets_home || sudo.action == RUN_LOGIN || user->pw_uid != getuid());
    if (become(user))
        return 1;
    return sudo.action == RUN_SHELL || sudo.action == RUN_LOGIN ? run_shell(&sudo, user) : run_command(&sudo);
}
