#include "cli/approvals.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct kind_info *approval_info(void)
{
    return kind_info(KIND_APPROVAL);
}

static const char *text_in(const json_t *approval, const char *part, const char *key)
{
    const char *text = json_get_text(json_object_get(approval, part), key);
    return text ? text : "";
}

const char *approval_spec(const json_t *approval, const char *key)
{
    return text_in(approval, "spec", key);
}

const char *approval_status(const json_t *approval, const char *key)
{
    return text_in(approval, "status", key);
}

// ---- states ---------------------------------------------------------------------------------------------------------------
bool approval_is_pending(const json_t *approval)
{
    return !approval_spec(approval, "decision")[0];
}

bool approval_is_open(const json_t *approval)
{
    const json_t *decided = object_condition(approval, CONDITION_DECIDED);
    return approval_is_pending(approval) && decided && !object_is_true(approval, CONDITION_DECIDED) &&
           json_get_int(decided, "observedGeneration", -1) == json_get_int(json_object_get(approval, "metadata"), "generation", 0);
}

static bool is_false(const json_t *approval, const char *condition)
{
    const char *status = json_get_text(object_condition(approval, condition), "status");
    return status && strcmp(status, "False") == 0;
}

bool approval_is_settled(const json_t *approval)
{
    bool is_approved = strcmp(approval_spec(approval, "decision"), "approved") == 0;
    return !approval_is_pending(approval) && (!is_approved || approval_status(approval, "workspaceRef")[0] || is_false(approval, CONDITION_VALID) ||
                                              object_is_true(approval, CONDITION_REVOKED));
}

bool approval_is_usable(const json_t *approval)
{
    return strcmp(approval_spec(approval, "decision"), "approved") == 0 && approval_status(approval, "workspaceRef")[0] &&
           !object_is_true(approval, CONDITION_REVOKED);
}

char *approval_word(const json_t *approval)
{
    const char *workspace = approval_status(approval, "workspaceRef"), *reason = approval_spec(approval, "reason");
    const char *decision = approval_is_pending(approval) ? "pending" : approval_spec(approval, "decision");
    if (object_is_true(approval, CONDITION_REVOKED))
        return mem_strdup("revoked");
    if (strcmp(decision, "approved") == 0 && is_false(approval, CONDITION_VALID))
        return mem_format("approved, but %s", object_message(approval, CONDITION_VALID));
    if (strcmp(decision, "approved") == 0)
        return mem_format("approved%s%s", *workspace ? ", its workspace is " : "", workspace);
    return mem_format("%s%s%s", decision, *reason ? ": " : "", reason);
}

// ---- what it exposes --------------------------------------------------------------------------------------------------------
void approval_say(const json_t *approval, FILE *to)
{
    const json_t *exposes = json_object_get(json_object_get(approval, "status"), "exposes");
    bool is_direct = strcmp(approval_spec(approval, "mode"), "direct") == 0;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(256 * 1024);
    buffer_format(&out, "%s asks for %s, %s:\n  %s\n", object_name(approval), approval_spec(approval, "path"), approval_spec(approval, "mode"),
                  is_direct ? "the sandbox reads and writes this directory itself; programs of yours that run what is in it run the sandbox's changes"
                            : "the sandbox works on a private copy of the repository; the directory itself is only read (with the driver sbx\n"
                              "  by programs inside too, ignored and untracked files included)");
    for (size_t i = 0; i < json_array_size(exposes); i++) {
        const char *path = json_get_text(json_array_get(exposes, i), "path"), *what = json_get_text(json_array_get(exposes, i), "what");
        buffer_format(&out, "  %s: %s\n", path ? path : "?", what ? what : "");
    }
    CLEANUP(text_table_free) struct text_table lines = {0}; // makes each line printable by itself
    for (char *at = out.data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        text_table_add_row(&lines, (const char *[]){at}, 1);
    }
    for (size_t i = 0; i < lines.row_count; i++)
        fprintf(to, "%s\n", lines.cells[i]);
}

// ---- deciding ---------------------------------------------------------------------------------------------------------------
static json_t *patch_of(const json_t *approval, const char *version, const char *decision, const char *reason)
{
    const char *shown = version ? version : json_get_text(json_object_get(approval, "metadata"), "resourceVersion");
    json_t *patch = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "resourceVersion", shown, "spec", "decision", decision);
    if (reason && patch)
        json_object_set_new(json_object_get(patch, "spec"), "reason", json_from_text(reason));
    return patch;
}

int approval_decide(const struct rest *rest, const json_t *approval, const char *version, const char *decision, const char *reason, json_t **ret,
                    struct error *err)
{
    CLEANUP_FREE char *path = rest_path(approval_info(), object_uid(approval));
    CLEANUP_JSON json_t *patch = patch_of(approval, version, decision, reason);
    if (!patch)
        return error_set(err, ERROR_INTERNAL, NULL, "the approval has no resourceVersion");
    if (rest_call(rest, &(struct rest_ask){.method = "PATCH", .path = path, .content_type = "application/merge-patch+json", .body = patch}, ret, NULL, NULL,
                  err) == 0)
        return 0;
    return err->code == ERROR_CONFLICT ? error_hint(err, "it changed since it was shown: look again with chat2shell approval list") : -1;
}

// ---- which ones ---------------------------------------------------------------------------------------------------------------
int approval_filter_read(const struct invocation *in, struct approval_filter *ret, struct error *err)
{
    const char *under = invocation_option(in, "under");
    char *resolved = under ? realpath(under, NULL) : NULL;
    if (under && !resolved)
        return error_errno(err, errno, "give a directory that is there", "cannot resolve --under %s", under);
    *ret = (struct approval_filter){invocation_option(in, "mode"), invocation_option(in, "requester"), resolved};
    return 0;
}

bool approval_filter_is_given(const struct invocation *in)
{
    return invocation_option(in, "mode") || invocation_option(in, "under") || invocation_option(in, "requester");
}

void approval_filter_clear(struct approval_filter *filter)
{
    free(filter->under);
    *filter = (struct approval_filter){0};
}

static bool is_named(const char *wanted, const char *principal)
{
    size_t len = strlen(wanted);
    return len && wanted[len - 1] == '*' ? strncmp(wanted, principal, len - 1) == 0 : strcmp(wanted, principal) == 0;
}

bool approval_filter_holds(const struct approval_filter *filter, const json_t *approval)
{
    const char *path = approval_spec(approval, "path");
    return (!filter->mode || strcmp(filter->mode, approval_spec(approval, "mode")) == 0) &&
           (!filter->requester || is_named(filter->requester, approval_spec(approval, "requester"))) &&
           (!filter->under || strcmp(path, filter->under) == 0 || fs_is_below(path, filter->under));
}
