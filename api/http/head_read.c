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
    return http_head_check(&head, ret_status, err);
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
