// Reads what the library knows of a head into the pure form that head.c checks.
#include "api/http/head.h"
#include "api/http/internal.h"
#include "controller/base/memory.h"
#include <string.h>
#include <strings.h>

static enum MHD_Result collect_field(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                     const char *value, size_t value_len)
{
    (void)kind;
    struct http_head *head = arg;
    if (head->field_count == HTTP_FIELDS_MAX) {
        head->has_too_many = true;
        return MHD_NO;
    }
    head->fields[head->field_count++] = (struct http_field){
        .name = name, .name_len = name_len, .value = value ? value : "", .value_len = value ? value_len : 0};
    return MHD_YES;
}

// ---- the bytes as they came -------------------------------------------------------------------------------
// The library cuts a head into strings where it stands and forgives much while it does so. But it copies
// nothing, so what lies between the strings tells what it forgave: a line that ended in CRLF is followed by
// two NUL bytes and the next line; a bare LF or CR leaves one; a NUL inside a value ends the string too early;
// a folded line is put together elsewhere.
static const char *line_after(const char *end)
{
    return end[0] == '\0' && end[1] == '\0' ? end + 2 : NULL;
}

static bool is_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at == end;
}

// Where the line after this field begins, or NULL if the field was not one line as it should be.
static const char *check_line(const struct http_field *field, const char *line)
{
    const char *colon = field->name + field->name_len;
    if (field->name != line || field->value <= colon || !is_blank(colon + 1, field->value))
        return NULL;
    return line_after(field->value + field->value_len);
}

static size_t size_of_head(const struct http_request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

static bool is_as_it_came(const struct http_request *request, const struct http_head *head)
{
    size_t target_len = strlen(request->target);
    if (head->method + strlen(head->method) + 1 != request->raw_target ||
        request->raw_target + target_len + 1 != head->version)
        return false;
    const char *line = line_after(head->version + strlen(head->version));
    for (size_t i = 0; line && i < head->field_count; i++)
        line = check_line(&head->fields[i], line);
    return line && line_after(line) == head->method + size_of_head(request);
}

int http_head_read(struct http_request *request, const char *method, const char *version, int *ret_status,
                   struct error *err)
{
    struct http_head head; // its fields are filled as they are counted
    head.method = method;
    head.target = request->target;
    head.version = version;
    head.field_count = 0;
    head.has_too_many = false;
    MHD_get_connection_values_n(request->mhd, MHD_HEADER_KIND, collect_field, &head);
    *ret_status = 431;
    if (size_of_head(request) > HTTP_HEAD_MAX_BYTES)
        return error_set(err, ERROR_TOO_LARGE, "send fewer or shorter headers", "the request head has more than %d bytes", HTTP_HEAD_MAX_BYTES);
    if (http_head_check(&head, ret_status, err) < 0)
        return -1;
    if (is_as_it_came(request, &head))
        return 0;
    *ret_status = 400;
    return error_set(err, ERROR_INVALID, "send a request head as HTTP/1.1 defines it",
                     "a line of the request head has blanks where none belong, holds a NUL, is folded, or does not end in CRLF");
}

const char *http_request_method(const struct http_request *request)
{
    return request->method;
}

const char *http_request_path(const struct http_request *request)
{
    return request->path;
}

static const char *find_header(const struct http_request *request, const char *name, size_t *ret_len)
{
    const char *value = NULL;
    *ret_len = 0;
    MHD_lookup_connection_value_n(request->mhd, MHD_HEADER_KIND, name, strlen(name), &value, ret_len);
    return value;
}

char *http_request_header(const struct http_request *request, const char *name)
{
    size_t len;
    const char *value = find_header(request, name, &len);
    if (!value)
        return http_request_has_header(request, name) ? mem_strdup("") : NULL;
    while (len && (*value == ' ' || *value == '\t'))
        value++, len--;
    while (len && (value[len - 1] == ' ' || value[len - 1] == '\t')) // the library keeps trailing blanks
        len--;
    return mem_strndup(value, len);
}

struct count_arg {
    const char *name;
    size_t count;
};

static enum MHD_Result count_field(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)value;
    struct count_arg *count = arg;
    count->count += strcasecmp(name, count->name) == 0;
    return MHD_YES;
}

size_t http_request_count_header(const struct http_request *request, const char *name)
{
    struct count_arg count = {.name = name};
    MHD_get_connection_values(request->mhd, MHD_HEADER_KIND, count_field, &count);
    return count.count;
}

bool http_request_has_header(const struct http_request *request, const char *name)
{
    return http_request_count_header(request, name) > 0;
}

const char *http_request_query(const struct http_request *request, const char *name)
{
    const char *value = NULL;
    size_t len;
    if (MHD_lookup_connection_value_n(request->mhd, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value,
                                      &len) != MHD_YES)
        return NULL;
    return value ? value : "";
}
