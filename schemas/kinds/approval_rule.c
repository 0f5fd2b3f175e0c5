#include "controller/base/path_glob.h"
#include "schemas/kinds/common.h"
#include <string.h>

#define PATHS_MAX 32
#define REQUESTERS_MAX 32
#define COUNT_MAX 1000000

static const char *check_requester(const char *text)
{
    const char *star = strchr(text, '*');
    if (!*text)
        return "must not be empty";
    if (star && star[1])
        return "may have a '*' at its end only, for everybody whose name begins so";
    return check_plain_text(text);
}

static const char *check_expiry(const void *value)
{
    return ((const struct wall_time *)value)->ms <= 0 ? "must be a time after 1970" : NULL;
}

static const struct field spec_fields[] = {
    FIELD(struct approval_rule_spec, decision, "decision", FIELD_ENUM, "What becomes of an approval that the rule matches.",
          .words = decision_words, .is_required = true, .is_immutable = true, .column = "Decision", .is_selectable = true),
    FIELD(struct approval_rule_spec, paths, "paths", FIELD_TEXT_LIST,
          "Globs of host directories below an allowed root, compared with the path that all symbolic links of the asked one "
          "lead to: ? is one character and * any characters of one component; ** as a whole component is any number of them.",
          .max = PATH_GLOB_MAX_BYTES, .max_items = PATHS_MAX, .check_item = path_glob_check, .is_required = true, .is_set = true,
          .column = "Paths", .column_priority = 1),
    FIELD(struct approval_rule_spec, modes, "modes", FIELD_TEXT_LIST, "Modes that it decides about.", .words = workspace_mode_words + 1, .max_items = 2,
          .is_set = true, .default_json = "[\"clone\"]", .column = "Modes"),
    FIELD(struct approval_rule_spec, requesters, "requesters", FIELD_TEXT_LIST,
          "Callers that it decides for, like mcp:token:laptop; with a * at the end all whose name begins so. Empty: any caller.",
          .max = 256, .max_items = REQUESTERS_MAX, .check_item = check_requester, .is_set = true, .column = "Requesters", .column_priority = 1),
    FIELD(struct approval_rule_spec, expires_at, "expiresAt", FIELD_TIME, "From then on it decides nothing. Absent: never.",
          .check = check_expiry, .column = "Expires"),
    FIELD(struct approval_rule_spec, max_count, "maxCount", FIELD_INT, "How many approvals it may decide in all. Absent: any number.", .min = 1,
          .max = COUNT_MAX, .column = "Max"),
    FIELD(struct approval_rule_spec, reason, "reason", FIELD_TEXT, "The operator's words, kept with each decision.", .max = 1024),
};
const struct field_table approval_rule_spec_table =
    FIELD_TABLE(struct approval_rule_spec, spec_fields, "An operator's decision beforehand about host paths that are asked for.");

static const struct field status_fields[] = {
    STATUS_FIELDS(struct approval_rule_status),
    FIELD(struct approval_rule_status, used_count, "usedCount", FIELD_INT, "How many approvals it has decided.", .column = "Used", .column_empty = "0"),
    FIELD(struct approval_rule_status, last_used_at, "lastUsedAt", FIELD_TIME, "When it last decided one.", .column = "Last-Used",
          .column_priority = 1),
};
const struct field_table approval_rule_status_table =
    FIELD_TABLE(struct approval_rule_status, status_fields, "Observed state of an approval rule.");
