#include "reconcilers/drivers/sbx/parse.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 10000
#define JSON_STARTS_MAX 64 // that many brackets in notices are tried …
#define JSON_SCAN_MAX (16 * 1024 * 1024) // … as long as no more bytes are read for it
#define JSON_VALUES_MAX 200000           // bounds the memory that parsing may take

// ---- versions ----------------------------------------------------------------------------------------------------------

static const char *read_number(const char *at, int *ret)
{
    if (!isdigit((unsigned char)*at))
        return NULL;
    int value = 0;
    for (; isdigit((unsigned char)*at); at++)
        value = value < 100000 ? value * 10 + (*at - '0') : value;
    *ret = value;
    return at;
}

static const char *read_version(const char *at, struct version *ret)
{
    struct version found;
    at = read_number(at, &found.major);
    at = at && *at == '.' ? read_number(at + 1, &found.minor) : NULL;
    at = at && *at == '.' ? read_number(at + 1, &found.patch) : NULL;
    if (at)
        *ret = found;
    return at;
}

static const char *find_version(const char *text, bool has_letter, struct version *ret)
{
    for (const char *at = text; *at; at++) {
        bool is_start = (at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '.')) && (!has_letter || *at == 'v');
        const char *rest = is_start ? read_version(at + has_letter, ret) : NULL;
        if (rest)
            return rest;
    }
    return NULL;
}

int sbx_version_parse(const char *text, struct version *ret, const char **ret_rest)
{
    const char *rest = find_version(text, true, ret);
    if (rest == NULL)
        rest = find_version(text, false, ret);
    if (rest && ret_rest)
        *ret_rest = rest;
    return rest ? 0 : -1;
}

int sbx_version_compare(const struct version *a, const struct version *b)
{
    const int left[] = {a->major, a->minor, a->patch}, right[] = {b->major, b->minor, b->patch};
    for (size_t i = 0; i < ARRAY_LEN(left); i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

void sbx_version_format(const struct version *version, char text[VERSION_TEXT_SIZE])
{
    snprintf(text, VERSION_TEXT_SIZE, "%d.%d.%d", version->major, version->minor, version->patch);
}

// ---- JSON among notices ------------------------------------------------------------------------------------------------

// The end of the bracketed text that starts at `at`, by counting brackets outside strings; NULL if it does not end or has too
// many values.
static const char *end_of_value(const char *at, const char *end)
{
    int depth = 0, values = 0;
    bool is_text = false;
    for (; at < end; at++) {
        if (is_text) {
            is_text = *at != '"';
            at += *at == '\\';
            continue;
        }
        is_text = *at == '"';
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        values += *at == ',' || *at == '{' || *at == '[';
        if (depth == 0 || values > JSON_VALUES_MAX)
            return depth == 0 ? at + 1 : NULL;
    }
    return NULL;
}

// JSON begins its line: a list within something that was cut off or is too much is not taken for the whole.
static bool begins_line(const char *text, const char *at)
{
    while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == text || at[-1] == '\n' || at[-1] == '\r';
}

int sbx_json_find(const char *text, size_t len, json_t **ret, struct error *err)
{
    const char *end = text + len;
    struct error why = ERROR_INIT;
    int tried = 0;
    size_t scanned = 0;
    for (const char *at = text; at < end && tried < JSON_STARTS_MAX && scanned < JSON_SCAN_MAX; at++) {
        if ((*at != '{' && *at != '[') || !begins_line(text, at))
            continue;
        const char *stop = end_of_value(at, end);
        tried++;
        scanned += (size_t)((stop ? stop : end) - at);
        if (stop && json_parse(at, (size_t)(stop - at), ret, &why) == 0)
            return 0;
    }
    return error_set(err, ERROR_INVALID, NULL, "there is no JSON in what it printed");
}

// ---- ls ----------------------------------------------------------------------------------------------------------------

void sbx_sandbox_rows_free(struct sandbox_row_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].status);
    }
    free(list->items);
    *list = (struct sandbox_row_list){0};
}

static const char *first_text(const json_t *object, const char *key, const char *other)
{
    const char *text = json_get_text(object, key);
    return text ? text : json_get_text(object, other);
}

// {"sandboxes":[…]}, or the bare array of very old releases.
int sbx_sandbox_rows_read(const json_t *from, struct sandbox_row_list *ret, struct error *err)
{
    const json_t *rows = json_is_array(from) ? from : json_object_get(from, "sandboxes");
    if (!json_is_array(rows) || json_array_size(rows) > ROWS_MAX)
        return error_set(err, ERROR_INVALID, NULL, "the list of sandboxes is not there");
    size_t i;
    const json_t *row;
    struct sandbox_row_list list = {.items = mem_alloc((json_array_size(rows) + 1) * sizeof(*list.items))};
    json_array_foreach ((json_t *)rows, i, row) {
        const char *name = json_get_text(row, "name"), *status = first_text(row, "status", "state");
        if (name)
            list.items[list.count++] = (struct sandbox_row){mem_strdup(name), mem_strdup(status ? status : "unknown")};
    }
    if (json_array_size(rows) > 0 && list.count == 0) {
        sbx_sandbox_rows_free(&list);
        return error_set(err, ERROR_INVALID, NULL, "the sandboxes in the list have no names");
    }
    *ret = list;
    return 0;
}

const struct sandbox_row *sbx_sandbox_row_find(const struct sandbox_row_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

// ---- ports -------------------------------------------------------------------------------------------------------------

static bool is_port(json_int_t port)
{
    return port >= 1 && port <= 65535;
}

int sbx_port_rows_read(const json_t *from, struct port_row_list *ret, struct error *err)
{
    const json_t *rows = json_is_array(from) ? from : json_object_get(from, "ports");
    if (!json_is_array(rows))
        return error_set(err, ERROR_INVALID, NULL, "the list of ports is not there");
    ret->count = 0;
    size_t i;
    const json_t *row;
    json_array_foreach ((json_t *)rows, i, row) {
        const char *ip = json_get_text(row, "host_ip"), *protocol = json_get_text(row, "protocol");
        json_int_t host = json_get_int(row, "host_port", 0), inside = json_get_int(row, "sandbox_port", 0);
        if ((protocol && strncmp(protocol, "tcp", 3) != 0) || !is_port(host) || !is_port(inside))
            continue;
        if (ret->count == PORT_ROWS_MAX)
            return error_set(err, ERROR_TOO_LARGE, NULL, "it lists more than %d ports", PORT_ROWS_MAX);
        struct port_row *to = &ret->items[ret->count++];
        *to = (struct port_row){.host_port = (int)host, .sandbox_port = (int)inside};
        snprintf(to->host_ip, sizeof(to->host_ip), "%s", ip ? ip : "?");
    }
    return 0;
}

bool sbx_port_row_is_loopback(const struct port_row *row)
{
    return strncmp(row->host_ip, "127.", 4) == 0 || strcmp(row->host_ip, "::1") == 0;
}

// ---- policy ------------------------------------------------------------------------------------------------------------

static bool is_text(const json_t *object, const char *key, const char *expected, bool if_missing)
{
    const char *text = json_get_text(object, key);
    return text ? strcmp(text, expected) == 0 : if_missing;
}

// A rule of all, or of this very sandbox. One that does not say whom it binds proves nothing.
static bool applies_to(const json_t *rule, const char *name)
{
    const char *whom = first_text(rule, "applies_to", "scope");
    CLEANUP_FREE char *own = mem_format("sandbox:%s", name);
    return whom && (strcmp(whom, "all") == 0 || strcmp(whom, "global") == 0 || strcmp(whom, own) == 0);
}

static bool has_resource(const json_t *rule, const char *host)
{
    size_t i;
    const json_t *resource;
    json_array_foreach (json_object_get(rule, "resources"), i, resource)
        if (json_is_string(resource) && strcmp(json_string_value(resource), host) == 0)
            return true;
    return false;
}

bool sbx_policy_denies(const json_t *from, const char *name, const char *host)
{
    const json_t *rules = json_is_array(from) ? from : json_object_get(from, "rules"), *rule;
    size_t i;
    json_array_foreach ((json_t *)rules, i, rule)
        if (is_text(rule, "decision", "deny", false) && is_text(rule, "resource_type", "network", true) &&
            is_text(rule, "status", "active", true) && applies_to(rule, name) && has_resource(rule, host))
            return true;
    return false;
}

bool sbx_images_have(const json_t *from, const char *name)
{
    static const char library[] = "docker.io/library/";
    const json_t *images = json_is_array(from) ? from : json_object_get(from, "images"), *image;
    size_t i;
    json_array_foreach ((json_t *)images, i, image) {
        const char *repository = json_get_text(image, "repository"), *tag = json_get_text(image, "tag");
        bool has_prefix = repository && strncmp(repository, library, strlen(library)) == 0;
        CLEANUP_FREE char *whole = mem_format("%s:%s", repository ? repository + (has_prefix ? strlen(library) : 0) : "", tag ? tag : "");
        if (strcmp(whole, name) == 0)
            return true;
    }
    return false;
}
