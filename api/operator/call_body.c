// The body of a request: JSON, or YAML where Kubernetes takes it.
#include "api/operator/internal.h"
#include "api/operator/review_body.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/yaml/yaml.h"
#include <string.h>
#include <strings.h>

#define YAML_BODY_MAX_BYTES (1024 * 1024)
#define JSON_TYPE "application/json"
#define YAML_TYPE "application/yaml"

static const struct patch_type {
    const char *type;
    enum patch_form form;
} patch_types[] = {
    {"application/json-patch+json", PATCH_JSON},
    {"application/merge-patch+json", PATCH_MERGE},
    {"application/apply-patch+yaml", PATCH_APPLY},
};

// The media type without its parameters; bodies of no stated type are JSON.
static bool has_media_type(const struct call *call, const char *type)
{
    const char *given = call->content_type ? call->content_type : JSON_TYPE;
    size_t len = strcspn(given, "; \t");
    return strlen(type) == len && strncasecmp(given, type, len) == 0;
}

static bool take_patch_type(struct call *call)
{
    for (size_t i = 0; i < ARRAY_LEN(patch_types); i++)
        if (has_media_type(call, patch_types[i].type)) {
            call->patch = patch_types[i].form;
            return true;
        }
    return false;
}

static bool is_of_kind(const struct call *call)
{
    return strstr(call->match.route->pattern, "{kind}") != NULL;
}

static bool check_media_type(struct call *call, bool *ret_yaml)
{
    bool is_patch = call->match.route->body == BODY_PATCH;
    *ret_yaml = is_patch ? has_media_type(call, "application/apply-patch+yaml") : is_of_kind(call) && has_media_type(call, YAML_TYPE);
    if (is_patch ? take_patch_type(call) : *ret_yaml || has_media_type(call, JSON_TYPE))
        return true;
    const char *accepted = is_patch           ? "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                           : is_of_kind(call) ? JSON_TYPE ", " YAML_TYPE
                                              : JSON_TYPE;
    operator_fail_as(call, 415, ERROR_INVALID, NULL,
                     "the body of the request was in an unknown format - accepted media types include: %s", accepted);
    return false;
}

// ---- YAML
// --------------------------------------------------------------------------------------------------------------
struct yaml_body {
    json_t *value;
    size_t count;
};

static void take_document(void *arg, json_t *value, struct yaml_node *root)
{
    struct yaml_body *body = arg;
    yaml_node_free(root);
    if (body->count++ == 0)
        body->value = value;
    else
        json_decref(value);
}

static int read_yaml(const char *bytes, size_t len, json_t **ret, struct error *err)
{
    struct yaml_body body = {0};
    if (len > YAML_BODY_MAX_BYTES)
        return error_set(err, ERROR_TOO_LARGE, "send JSON, or less", "YAML bodies have at most %d bytes", YAML_BODY_MAX_BYTES);
    int r = yaml_parse("the body", bytes, len, take_document, &body, err);
    if (r == 0 && body.count != 1)
        r = error_set(err, ERROR_INVALID, NULL, "the body must hold one YAML document, not %zu", body.count);
    if (r == 0)
        *ret = body.value;
    else
        json_decref(body.value);
    return r;
}

static bool looks_like_json(const char *bytes, size_t len)
{
    size_t blanks = strspn(bytes, " \t\r\n");
    return blanks < len && (bytes[blanks] == '{' || bytes[blanks] == '[');
}

// ---- either
// -----------------------------------------------------------------------------------------------------------
// Objects may have members twice: their field validation decides what that means. Nothing else may.
static int read_json(struct call *call, const char *bytes, size_t len, struct error *err)
{
    if (!is_of_kind(call))
        return json_parse(bytes, len, &call->body, err);
    CLEANUP_JSON json_t *repeated = json_array();
    if (json_parse_with_repeats(bytes, len, &call->body, repeated, err) < 0)
        return -1;
    if (json_array_size(repeated))
        call->repeated = json_incref(repeated);
    return 0;
}

static bool check_form(struct call *call)
{
    bool is_list = call->match.route->body == BODY_PATCH && call->patch == PATCH_JSON;
    if (is_list ? json_is_array(call->body) : json_is_object(call->body))
        return true;
    const char *form = is_list ? "list of operations" : "JSON object";
    operator_fail_as(call, 400, ERROR_INVALID, NULL, "the body must be a %s", form);
    return false;
}

static bool read_review(struct call *call, const char *bytes, size_t len)
{
    struct error err = ERROR_INIT;
    if (review_body_read(bytes, len, &call->body, &err) == 0)
        return true;
    operator_fail_as(call, 400, err.code, err.hint, "%s", err.message);
    return false;
}

bool operator_read_body(struct call *call)
{
    enum body_form form = call->match.route->body;
    struct error err = ERROR_INIT;
    size_t len;
    const char *bytes = http_request_body(call->http, &len);
    bool may_be_yaml = false;
    if (form == BODY_NONE || (form == BODY_OPTIONAL && !len))
        return true;
    if (form == BODY_REVIEW && has_media_type(call, REVIEW_MEDIA_TYPE))
        return read_review(call, bytes, len);
    if (!check_media_type(call, &may_be_yaml))
        return false;
    bool is_yaml = may_be_yaml && !looks_like_json(bytes, len);
    if ((is_yaml ? read_yaml(bytes, len, &call->body, &err) : read_json(call, bytes, len, &err)) < 0) {
        error_context(&err, "the body is not %s", is_yaml ? "YAML of one object" : "JSON");
        const char *hint = may_be_yaml && !is_yaml ? "a body that begins with { or [ is read as JSON; write YAML in lines" : "send one object";
        operator_fail_as(call, err.code == ERROR_TOO_LARGE ? 413 : 400, err.code, hint, "%s", err.message);
        return false;
    }
    http_request_drop_body(call->http);
    return check_form(call);
}
