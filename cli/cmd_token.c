// token: who may use the MCP endpoint where it asks. A token is shown once, when it is made; what is kept is its digest.
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// ---- create ---------------------------------------------------------------------------------------------------------------------
// "30d", "12h", "90m", "45s", "4w", or "never".
static int parse_life(const char *text, json_int_t *ret_ms, struct error *err)
{
    static const struct {
        char unit;
        json_int_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}, {'w', 7 * 86400000LL}};
    char *end;
    *ret_ms = 0;
    if (strcmp(text, "never") == 0)
        return 0;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    for (size_t i = 0; i < ARRAY_LEN(units) && text[0] >= '0' && text[0] <= '9' && !errno; i++)
        if (end[0] == units[i].unit && !end[1] && number > 0 && number < 1000000) {
            *ret_ms = number * units[i].ms;
            return 0;
        }
    return error_set(err, ERROR_USAGE, "give a number and a unit (s, m, h, d, w), like 30d, or never", "'%.100s' is no length of time", text);
}

static json_t *make_body(const struct invocation *in, struct error *err)
{
    const char *scopes[ARGUMENTS_MAX_VALUES], *life = invocation_option(in, "expires");
    size_t count = invocation_values(in, "scope", scopes);
    json_int_t ms = 0;
    if (life && parse_life(life, &ms, err) < 0)
        return NULL;
    json_t *body = json_pack("{s:o}", "name", json_from_text(in->arguments[0])), *list = count ? json_array() : NULL;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_from_text(scopes[i]));
    if (list)
        json_object_set_new(body, "scopes", list);
    if (ms)
        json_object_set_new(body, "expiresInMs", json_integer(ms));
    return body;
}

// Made before the token is, so that a token that cannot be kept is not made. Never over something that is there.
static int open_output(const char *path, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return error_set(err, ERROR_EXISTS, "choose another file, or remove it first", "%s is there already", path);
    return fd >= 0 ? fd : error_errno(err, errno, "name a file in a directory that is there and that you may write", "cannot make %s", path);
}

// The value of an Authorization header, without a line end: tunnel-client and curl take it as it is, and so do our own commands.
static int write_output(int fd, const char *path, const char *token, struct error *err)
{
    CLEANUP_FREE char *value = mem_format("Bearer %s", token);
    int r = fs_write_all(fd, value, strlen(value), err);
    explicit_bzero(value, strlen(value));
    if (r == 0 && fsync(fd) < 0)
        r = error_errno(err, errno, NULL, "cannot write");
    return r == 0 ? 0 : error_context(err, "%s", path);
}

static void say_created(const json_t *token, const char *path)
{
    const char *expiry = json_get_text(token, "expiresAt");
    terminal_note("token %s made, %s%s; %s", json_get_text(token, "name"), expiry ? "until " : "without an end", expiry ? expiry : "",
            path ? "the file holds it as an Authorization header wants it" : "it is not shown again");
    if (!json_get_bool(token, "isAskedFor", true))
        terminal_note("note: this daemon does not take tokens now; start it with CHAT2SHELL_AUTH=token (or token,oauth)");
}

static int deliver(const struct invocation *in, json_t *token, int fd, const char *path, struct error *err)
{
    const char *text = json_get_text(token, "token");
    if (!text)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer has no token");
    if (fd >= 0 && write_output(fd, path, text, err) < 0)
        return -1;
    if (fd >= 0)
        json_object_del(token, "token");
    say_created(token, path);
    if (!object_print(in, token) && fd < 0)
        printf("%s\n", text);
    return 0;
}

static int run_create(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    const char *path = invocation_option(in, "output-file");
    CLEANUP_JSON json_t *body = rest ? make_body(in, err) : NULL, *token = NULL;
    if (!body)
        return -1;
    CLEANUP_CLOSE int fd = path ? open_output(path, err) : -1;
    if (path && fd < 0)
        return -1;
    if (rest_post(rest, REST_OWN "/tokens", body, &token, err) < 0 || deliver(in, token, fd, path, err) < 0) {
        if (path)
            unlink(path);
        return -1;
    }
    return 0;
}

// ---- list -----------------------------------------------------------------------------------------------------------------------
static char *join_scopes(const json_t *scopes)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1024);
    for (size_t i = 0; i < json_array_size(scopes); i++)
        buffer_format(&text, "%s%s", i ? "," : "", json_string_value(json_array_get(scopes, i)));
    return mem_strdup(buffer_text(&text));
}

static void print_tokens(const struct invocation *in, const json_t *items)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    size_t columns = invocation_is_output(in, "name") ? 1 : 5;
    text_table_add_row(&table, (const char *[]){"NAME", "SCOPES", "CREATED", "EXPIRES", "LAST USED"}, columns);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *token = json_array_get(items, i);
        CLEANUP_FREE char *scopes = join_scopes(json_object_get(token, "scopes"));
        const char *expiry = json_get_text(token, "expiresAt"), *used = json_get_text(token, "lastUsedAt");
        CLEANUP_FREE char *expires = mem_format("%s%s", expiry ? expiry : "never", json_get_bool(token, "isExpired", false) ? " (expired)" : "");
        text_table_add_row(&table, (const char *[]){json_get_text(token, "name"), scopes, json_get_text(token, "createdAt"), expires, used ? used : "never"},
                           columns);
    }
    text_table_print(&table, columns > 1);
}

static int run_list(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_JSON json_t *list = NULL;
    if (!rest || rest_get(rest, REST_OWN "/tokens", &list, err) < 0)
        return -1;
    const json_t *items = json_object_get(list, "items");
    bool is_document = invocation_is_output(in, "json") || invocation_is_output(in, "yaml");
    if (is_document)
        object_print(in, list);
    else if (!json_array_size(items))
        terminal_note("No tokens found");
    else
        print_tokens(in, items);
    return 0;
}

// ---- revoke ---------------------------------------------------------------------------------------------------------------------
static int run_revoke(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    if (!rest)
        return -1;
    CLEANUP_FREE char *name = http_escape(in->arguments[0]), *path = mem_format(REST_OWN "/tokens/%s", name);
    if (rest_call(rest, &(struct rest_ask){.method = "DELETE", .path = path}, NULL, NULL, NULL, err) < 0)
        return -1;
    terminal_confirm("token/%s revoked", in->arguments[0]);
    return 0;
}

// ---- the rows -------------------------------------------------------------------------------------------------------------------
static const char *const list_outputs[] = {"table", "json", "yaml", "name", NULL};
static const char *const create_outputs[] = {"table", "json", "yaml", NULL};
static const char *const scope_words[] = {"tools:read", "tools:write", "sandboxes:manage", NULL};
static const struct option_row create_options[] = {
    {.name = "scope", .value = "SCOPE", .doc = "what it may do; may be given several times, all of them by default", .choices = scope_words, .is_repeatable = true},
    {.name = "expires", .value = "TIME", .doc = "how long it is good: 30d, 12h, 4w, or never (the default)"},
    {.name = "output-file", .value = "FILE", .doc = "put it into a new file of mode 0600, as the value of an Authorization header, instead of printing it"},
    OPTION_OUTPUT(create_outputs, "how to print it; json has its scopes and times too"),
};
static const struct option_row list_options[] = {OPTION_OUTPUT(list_outputs, "how to print them")};
static const struct example create_examples[] = {
    {"chat2shell token create laptop --expires 30d", "print a token that may do everything an MCP client may"},
    {"chat2shell token create viewer --scope tools:read --output-file ~/viewer-token", "one that may only look, into a file"},
};
static const struct command children[] = {
    {.name = "create", .synopsis = "NAME", .summary = "Make a token and print it, this once", .min_arguments = 1, .max_arguments = 1, .run = run_create,
     .details = "Scopes: tools:read for tools that only look, tools:write for bash and all that changes files in a sandbox, sandboxes:manage to create,\n"
                "expose and destroy sandboxes. What is stored is a digest: a lost token is revoked and replaced. It takes effect in a daemon\n"
                "with CHAT2SHELL_AUTH=token or token,oauth.",
     COMMAND_OPTIONS(create_options), COMMAND_EXAMPLES(create_examples)},
    {.name = "list", .synopsis = "", .summary = "List tokens: scopes, expiry, last use; never the tokens", .run = run_list, COMMAND_OPTIONS(list_options)},
    {.name = "revoke", .synopsis = "NAME", .summary = "End a token, at once", .min_arguments = 1, .max_arguments = 1, .run = run_revoke},
};
const struct command command_token = {.name = "token", .synopsis = "COMMAND", .summary = "Make, list and revoke tokens of the MCP endpoint",
                                      COMMAND_CHILDREN(children)};
