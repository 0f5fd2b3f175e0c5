#include "schemas/kinds/common.h"
#include "controller/record.h"
#include <string.h>

static const char *const condition_status_words[] = {"Unknown", "True", "False", NULL};
const char *const workspace_mode_words[] = {"managed", "clone", "direct", NULL};
const char *const decision_words[] = {"", "approved", "rejected", NULL};

const char *workspace_mode_word(enum workspace_mode mode)
{
    return workspace_mode_words[mode];
}

const char *approval_decision_word(enum approval_decision decision)
{
    return decision == APPROVAL_PENDING ? "pending" : decision_words[decision];
}

static const struct field condition_fields[] = {
    FIELD(struct condition, type, "type", FIELD_TEXT, "Name of the condition; a CamelCase word.", .max = 316,
          .is_required = true),
    FIELD(struct condition, status, "status", FIELD_ENUM, "Whether the condition holds.",
          .words = condition_status_words, .is_required = true),
    FIELD(struct condition, reason, "reason", FIELD_TEXT, "Why, as one CamelCase word for programs.",
          .max = 1024, .is_required = true),
    FIELD(struct condition, message, "message", FIELD_TEXT, "Why, as a sentence for people.", .max = 32768),
    FIELD(struct condition, last_transition_time, "lastTransitionTime", FIELD_TIME,
          "When status last changed.", .is_required = true),
    FIELD(struct condition, observed_generation, "observedGeneration", FIELD_INT,
          "The metadata.generation that the condition was computed from."),
};
const struct field_table condition_table =
    FIELD_TABLE(struct condition, condition_fields, "One aspect of the object's observed state.");

static const char *check_boolean(const void *value)
{
    return json_is_boolean(*(json_t *const *)value) ? NULL : "must be true or false";
}

// The store leaves the version out where it is this API's own; a client has to say which one it means.
#define OWNER_ROWS(has_version)                                                                                             \
    {                                                                                                                       \
        FIELD(struct owner_reference, api_version, "apiVersion", FIELD_TEXT, "Group and version of the owner.", .max = 253, \
              CHECKED(plain_text), .is_required = (has_version)),                                                     \
            FIELD(struct owner_reference, kind, "kind", FIELD_TEXT, "Kind of the owner.", .max = 253,                       \
                  CHECKED(plain_text), .is_required = true),                                                          \
            FIELD(struct owner_reference, name, "name", FIELD_TEXT, "Name of the owner.", .max = 253,                       \
                  CHECKED(plain_text), .is_required = true),                                                          \
            FIELD(struct owner_reference, uid, "uid", FIELD_TEXT,                                                           \
                  "Uid of the owner; the reference never follows the name to another one.", .max = 253,                     \
                  CHECKED(plain_text), .is_required = true),                                                          \
            FIELD(struct owner_reference, controller, "controller", FIELD_JSON,                                             \
                  "Whether the owner is what manages this object; at most one is.", .check = check_boolean),                \
            FIELD(struct owner_reference, blocks, "blockOwnerDeletion", FIELD_JSON,                                         \
                  "Kept for clients, without effect.", .check = check_boolean),                                             \
    }
static const struct field owner_fields[] = OWNER_ROWS(false);
static const struct field given_owner_fields[] = OWNER_ROWS(true);
const struct field_table owner_table = FIELD_TABLE(struct owner_reference, owner_fields, "An object that this one belongs to.");
static const struct field_table given_owner_table =
    FIELD_TABLE(struct owner_reference, given_owner_fields, "An object that this one belongs to.");

static int check_owners(const void *value, struct error *err)
{
    const struct owner_list *owners = value;
    size_t managers = 0;
    for (size_t i = 0; i < owners->count; i++)
        managers += json_is_true(owners->items[i].controller);
    return managers <= 1 ? 0 : error_set(err, ERROR_INVALID, NULL, "ownerReferences: only one of them may have `controller` set to true");
}

static const struct field given_owners_fields[] = {
    {.name = "ownerReferences", .type = FIELD_LIST, .doc = "Objects that this one belongs to.", .fields = &given_owner_table, .key = "uid"},
};
const struct field_table given_owners_table =
    FIELD_TABLE(struct owner_list, given_owners_fields, "What a client says of an object's owners.", .check = check_owners);

const char *check_record_name(const void *value)
{
    return record_check_name(value, NULL) < 0
               ? "must be a lower-case DNS label: letters, digits and '-', at most 63 characters, starting "
                 "and ending with a letter or digit"
               : NULL;
}

const char *check_plain_text(const void *value)
{
    for (const unsigned char *c = value; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            return "must not contain control characters";
    return NULL;
}

static bool has_dot_component(const char *path)
{
    for (const char *at = path; *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");
        if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at += len;
    }
    return false;
}

const char *check_absolute_path(const void *value)
{
    const char *path = value;
    if (path[0] != '/')
        return "must be an absolute path";
    if (has_dot_component(path))
        return "must not contain '.' or '..' components";
    return check_plain_text(path);
}
