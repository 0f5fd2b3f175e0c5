// What the end of a call means, as an error that says what, why and what to do. sbx has one exit code for every failure, so
// the cause is read from its words, on either stream.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>

#define WORDS_MAX_BYTES 400

static const struct cause {
    const char *words; // found anywhere in the output, ASCII case ignored
    enum error_code code;
    const char *sentence, *hint;
} causes[] = {
    {"restart now?", ERROR_UNAVAILABLE, "Docker Sandboxes was updated while its daemon ran, and waits for a restart",
     "run: sbx daemon restart (it stops every running sandbox)"},
    {"has been updated and needs to restart", ERROR_UNAVAILABLE, "Docker Sandboxes was updated while its daemon ran, and waits for a restart",
     "run: sbx daemon restart (it stops every running sandbox)"},
    {"session has expired", ERROR_UNAVAILABLE, "the sign-in to Docker has expired", "run: sbx login"},
    {"401 unauthorized", ERROR_UNAVAILABLE, "Docker refuses the sign-in", "run: sbx login"},
    {"please sign in to docker", ERROR_UNAVAILABLE, "nobody is signed in to Docker", "run: sbx login"},
    {"not authenticated to docker", ERROR_UNAVAILABLE, "nobody is signed in to Docker", "run: sbx login"},
    {"device confirmation code", ERROR_UNAVAILABLE, "nobody is signed in to Docker", "run: sbx login"},
    {"waiting for authentication", ERROR_UNAVAILABLE, "nobody is signed in to Docker", "run: sbx login"},
    {"failed to open secretservice session", ERROR_UNAVAILABLE, "Docker's sign-in cannot be read: the secret service does not answer",
     "run: sbx login, as the user and in the session that runs chat2shell"},
    {"stdin is not a terminal", ERROR_UNAVAILABLE, "Docker Sandboxes wants to ask the operator something", "run the same command in a terminal"},
    {"policy init", ERROR_STATE, "the network policy of Docker Sandboxes was never initialized", "run: sbx policy init balanced"},
    {"backend unavailable", ERROR_UNAVAILABLE, "the engine of Docker Sandboxes lost its backend", "run: sbx daemon restart (it stops every running sandbox)"},
    {"failed to start sandboxd", ERROR_UNAVAILABLE, "the daemon of Docker Sandboxes does not start", "run: sbx diagnose"},
    {"daemon is not running", ERROR_UNAVAILABLE, "the daemon of Docker Sandboxes does not run", "run: sbx daemon start -d"},
    {"cannot connect to the", ERROR_UNAVAILABLE, "the daemon of Docker Sandboxes does not answer", "run: sbx daemon status"},
    {"connection refused", ERROR_UNAVAILABLE, "the daemon of Docker Sandboxes does not answer", "run: sbx daemon status"},
    {"stale file handle", ERROR_UNAVAILABLE, "the engine of Docker Sandboxes holds stale files, as after a kernel upgrade", "run: sbx daemon restart (it stops every running sandbox)"},
    {"/dev/kvm", ERROR_UNSUPPORTED, "Docker Sandboxes cannot use KVM", "add the user to the group kvm and sign in to the system again"},
    {"unknown flag", ERROR_UNSUPPORTED, "this version of sbx does not know a flag that chat2shell uses", "install a newer Docker Sandboxes"},
    {"unknown command", ERROR_UNSUPPORTED, "this version of sbx does not know a command that chat2shell uses", "install a newer Docker Sandboxes"},
    {"409 conflict", ERROR_EXISTS, "a sandbox of that name is there already", NULL},
    {"already exists", ERROR_EXISTS, "a sandbox of that name is there already", NULL},
    {"no sandbox named", ERROR_NOT_FOUND, "the sandbox is not there", NULL},
    {"no such sandbox", ERROR_NOT_FOUND, "the sandbox is not there", NULL},
    {"pull image", ERROR_NOT_FOUND, "the sandbox's template is not on this machine", "run: chat2shell setup; sbx template ls shows what is there"},
    {"no such image", ERROR_NOT_FOUND, "the sandbox's template is not on this machine", "run: chat2shell setup; sbx template ls shows what is there"},
    {"manifest unknown", ERROR_NOT_FOUND, "the sandbox's template is not on this machine", "run: chat2shell setup; sbx template ls shows what is there"},
    {"no space left on device", ERROR_DISK, "there is no space left for sandboxes", "free some, or run: sbx prune (it removes every stopped sandbox of the user)"},
};

static bool says(const struct call_result *result, const char *words)
{
    return memmem(result->output, result->output_len, words, strlen(words)) != NULL || strcasestr(result->output, words) != NULL;
}

static const struct cause *find_cause(const struct call_result *result)
{
    for (size_t i = 0; i < ARRAY_LEN(causes); i++)
        if (says(result, causes[i].words))
            return &causes[i];
    return NULL;
}

// ---- its own words -----------------------------------------------------------------------------------------------------

// The line that begins with "ERROR:" (whatever its case), or the last line with anything in it; "" if there is none.
static const char *find_line(const char *text, size_t *ret_len)
{
    const char *found = "";
    *ret_len = 0;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, "\n"), blanks = strspn(at, " \t\r");
        bool is_error = strncasecmp(at + (blanks < len ? blanks : 0), "error:", 6) == 0 || strncmp(at, "OCI runtime", 11) == 0;
        if (blanks < len) {
            found = at;
            *ret_len = len;
        }
        if (is_error)
            return found;
        at += len + (at[len] == '\n');
    }
    return found;
}

static char *without(const char *text, const char *name)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(8 * WORDS_MAX_BYTES);
    for (const char *at; name && (at = strstr(text, name)) != NULL; text = at + strlen(name)) {
        buffer_append(&out, text, (size_t)(at - text));
        buffer_append_text(&out, "NAME");
    }
    buffer_append_text(&out, text);
    return buffer_take_string(&out);
}

// What it printed about its failure: printable, short, without the runtime's name. Owned by the caller; "" if nothing.
static char *own_words(const struct call_result *result)
{
    size_t len;
    const char *line = find_line(result->errors, &len);
    if (len == 0 || strncasecmp(line, "error:", 6) != 0) {
        size_t other_len;
        const char *other = find_line(result->printed, &other_len);
        bool is_better = strncasecmp(other, "error:", 6) == 0 || strncmp(other, "OCI runtime", 11) == 0;
        if (len == 0 || is_better) {
            line = other;
            len = other_len;
        }
    }
    CLEANUP_FREE char *whole = mem_strndup(line, len < WORDS_MAX_BYTES ? len : utf8_cut(line, WORDS_MAX_BYTES));
    CLEANUP_FREE char *anonymous = without(whole, result->subject);
    const char *text = anonymous;
    text += strncasecmp(text, "error:", 6) == 0 ? 6 + strspn(text + 6, " ") : 0;
    return utf8_to_printable(text, strlen(text), false);
}

// ---- judging -----------------------------------------------------------------------------------------------------------

static int timed_out(const struct call_result *result, struct error *err)
{
    const struct cause *cause = find_cause(result);
    if (cause)
        return error_set(err, cause->code, cause->hint, "`sbx %s` waited for somebody: %s", result->verb, cause->sentence);
    return error_set(err, ERROR_TIMEOUT, "look at: sbx daemon status", "`sbx %s` did not answer within %lld s", result->verb,
                     (long long)(result->deadline_ms + 999) / 1000);
}

int sbx_call_fail(const struct call_result *result, struct error *err)
{
    CLEANUP_FREE char *words = NULL;
    const struct cause *cause;
    switch (result->end) {
    case CALL_NOT_STARTED:
        return error_copy(err, result->start_error);
    case CALL_CANCELLED:
        return error_set(err, ERROR_CANCELLED, NULL, "`sbx %s` was ended before it was done", result->verb);
    case CALL_TIMED_OUT:
        return timed_out(result, err);
    case CALL_EXITED:
        break;
    }
    cause = find_cause(result);
    words = own_words(result);
    if (cause)
        return error_set(err, cause->code, cause->hint, "%s (`sbx %s`: %s)", cause->sentence, result->verb, words);
    if (result->exit_code == 0 && result->is_cut)
        return error_set(err, ERROR_TOO_LARGE, NULL, "`sbx %s` printed too much", result->verb);
    return error_set(err, ERROR_IO, "run: sbx diagnose", "`sbx %s` failed with exit code %d%s%s", result->verb, result->exit_code,
                     words[0] ? ": " : " and printed nothing", words);
}

int sbx_call_judge(const struct call_result *result, struct error *err)
{
    bool is_good = result->end == CALL_EXITED && result->exit_code == 0 && !result->is_cut;
    return is_good ? 0 : sbx_call_fail(result, err);
}

// Status 1 is every failure of sbx, and an old version said so with status 0.
bool sbx_call_says_absent(const struct call_result *result)
{
    if (result->end != CALL_EXITED)
        return false;
    bool is_named = result->subject && says(result, result->subject);
    return says(result, "no sandbox named") || says(result, "no such sandbox") || (is_named && says(result, "not found"));
}

bool sbx_call_says_unknown_flag(const struct call_result *result, const char *flag)
{
    CLEANUP_FREE char *words = mem_format("unknown flag: %s", flag);
    return result->end == CALL_EXITED && result->exit_code != 0 && says(result, words);
}

bool sbx_call_says_port_taken(const struct call_result *result)
{
    static const char *const texts[] = {"already published", "already in use", "already allocated", "port is taken", "in use"};
    for (size_t i = 0; i < ARRAY_LEN(texts) && result->end == CALL_EXITED && result->exit_code != 0; i++)
        if (says(result, texts[i]))
            return true;
    return false;
}

int sbx_call_json(const struct call_result *result, json_t **ret, struct error *err)
{
    if (sbx_call_judge(result, err) < 0)
        return -1;
    if (sbx_json_find(result->printed, result->printed_len, ret, NULL) == 0 ||
        sbx_json_find(result->errors, result->errors_len, ret, NULL) == 0)
        return 0;
    CLEANUP_FREE char *words = own_words(result);
    return error_set(err, ERROR_UNAVAILABLE, "run: sbx diagnose", "`sbx %s` printed no JSON%s%s", result->verb, words[0] ? ": " : "", words);
}
