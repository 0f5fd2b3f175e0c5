// Failures as Kubernetes' kind Status.
#include "api/operator/internal.h"
#include "controller/fields/fields.h"
#include <string.h>

// Where the HTTP status says more than the error's code does.
static const char *reason_of_status(int http_status, const char *fallback)
{
    static const struct {
        int http_status;
        const char *reason;
    } table[] = {
        {400, "BadRequest"},           {401, "Unauthorized"},  {403, "Forbidden"},     {404, "NotFound"},
        {405, "MethodNotAllowed"},     {406, "NotAcceptable"}, {413, "RequestEntityTooLarge"},
        {415, "UnsupportedMediaType"}, {422, "Invalid"},       {501, "NotImplemented"},
        {503, "ServiceUnavailable"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].http_status == http_status)
            return table[i].reason;
    return fallback;
}

// kubectl shows the causes of a 422 and not its message: a failure that has no causes becomes one. "spec.driver: …" is
// about that field, everything else about the request.
static json_t *causes_of(int status, const struct error *err, const struct status_about *about)
{
    size_t len = strspn(err->message, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.");
    bool has_field = len && strncmp(err->message + len, ": ", 2) == 0;
    if (json_array_size(about->causes))
        return json_deep_copy(about->causes);
    if (status != 422)
        return NULL;
    return json_pack("[{s:o, s:o, s:s}]", "field", has_field ? json_from_bytes(err->message, len) : json_string("request"), "message",
                     json_from_text(has_field ? err->message + len + 2 : err->message), "reason", CAUSE_INVALID);
}

static json_t *details_to_json(int status, const struct error *err, const struct status_about *about)
{
    json_t *details = json_object();
    json_set_text(details, "name", about->name);
    if (about->kind) {
        json_set_text(details, "group", API_GROUP);
        json_set_text(details, "kind", status == 422 && about->kind_name ? about->kind_name : about->kind);
    }
    json_set_text(details, "code", error_meaning(err->code)->name); // finer than the reason
    json_t *causes = causes_of(status, err, about);
    if (causes)
        json_object_set_new(details, "causes", causes);
    if (err->hint[0])
        json_object_set_new(details, "hint", json_from_text(err->hint));
    return details;
}

json_t *status_to_json(int http_status, const struct error *err, const struct status_about *about,
                       int *ret_http_status)
{
    static const struct status_about nothing = {0};
    const struct error_meaning *meaning = error_meaning(err->code);
    about = about ? about : &nothing;
    int status = http_status ? http_status : meaning->http_status;
    json_t *json = json_pack("{s:s, s:s, s:{}, s:s, s:o, s:s, s:i}", "kind", "Status", "apiVersion", "v1",
                             "metadata", "status", "Failure", "message", json_from_text(err->message),
                             "reason", reason_of_status(status, meaning->reason), "code", status);
    json_object_set_new(json, "details", details_to_json(status, err, about));
    json_set_text(json_object_get(json, "metadata"), "continue", about->next);
    if (ret_http_status)
        *ret_http_status = status;
    return json;
}

json_t *status_of_success(const struct record *record)
{
    return json_pack("{s:s, s:s, s:{}, s:s, s:{s:o, s:s, s:s, s:o}}", "kind", "Status", "apiVersion", "v1", "metadata", "status", "Success",
                     "details", "name", json_from_text(record->meta.name), "group", API_GROUP, "kind", kind_info(record->kind)->plural, "uid",
                     json_from_text(record->meta.uid));
}
