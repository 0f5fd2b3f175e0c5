// SelfSubjectAccessReview as kubectl sends it: Kubernetes' protobuf envelope. Read into the JSON that it
// stands for; unknown fields are skipped, as protobuf has it.
#include "api/operator/review_body.h"
#include "controller/base/memory.h"
#include <stdint.h>
#include <string.h>

#define MAGIC "k8s\0"
#define MAGIC_SIZE 4
#define BODY_SIZE_MAX (64 * 1024)

struct bytes {
    const unsigned char *at;
    size_t len;
};
struct message_row { // field `number` holds a text (fields NULL) or a message
    unsigned number;
    const char *name;
    const struct message_row *fields; // name NULL ends
};

static const struct message_row resource_rows[] = {
    {1, "namespace"}, {2, "verb"},        {3, "group"}, {4, "version"},
    {5, "resource"},  {6, "subresource"}, {7, "name"},  {0}};
static const struct message_row path_rows[] = {{1, "path"}, {2, "verb"}, {0}};
static const struct message_row spec_rows[] = {
    {1, "resourceAttributes", resource_rows}, {2, "nonResourceAttributes", path_rows}, {0}};
static const struct message_row rules_spec_rows[] = {{1, "namespace"}, {0}};
static const struct message_row type_rows[] = {{1, "apiVersion"}, {2, "kind"}, {0}};
static const struct {
    const char *kind;
    const struct message_row rows[2];
} reviews[] = {
    {"SelfSubjectAccessReview", {{2, "spec", spec_rows}, {0}}},
    {"SelfSubjectRulesReview", {{2, "spec", rules_spec_rows}, {0}}},
};

static bool take_varint(struct bytes *from, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; from->len && shift < 64; shift += 7) {
        unsigned char byte = *from->at++;
        from->len--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct bytes *from, uint64_t len, struct bytes *ret)
{
    if (len > from->len)
        return false;
    *ret = (struct bytes){from->at, (size_t)len};
    from->at += len;
    from->len -= (size_t)len;
    return true;
}

// One field: its number and, where it is length-delimited, its bytes (at NULL otherwise).
static bool take_field(struct bytes *from, unsigned *ret_number, struct bytes *ret)
{
    uint64_t tag, value;
    *ret = (struct bytes){0};
    if (!take_varint(from, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
        return false;
    *ret_number = (unsigned)(tag >> 3);
    switch (tag & 7) {
    case 0:
        return take_varint(from, &value);
    case 1:
        return take_bytes(from, 8, &(struct bytes){0});
    case 2:
        return take_varint(from, &value) && take_bytes(from, value, ret);
    case 5:
        return take_bytes(from, 4, &(struct bytes){0});
    default:
        return false;
    }
}

static bool read_message(struct bytes from, const struct message_row *rows, json_t *to)
{
    while (from.len) {
        unsigned number;
        struct bytes value;
        if (!take_field(&from, &number, &value))
            return false;
        const struct message_row *row = rows;
        while (row->name && row->number != number)
            row++;
        if (!row->name || !value.at)
            continue;
        json_t *member = row->fields ? json_object() : json_from_bytes((const char *)value.at, value.len);
        json_object_set_new(to, row->name, member);
        if (row->fields && !read_message(value, row->fields, member))
            return false;
    }
    return true;
}

static const struct message_row *rows_of(const char *kind)
{
    for (size_t i = 0; kind && i < ARRAY_LEN(reviews); i++)
        if (strcmp(reviews[i].kind, kind) == 0)
            return reviews[i].rows;
    return NULL;
}

// The envelope: what the object is (1) and its bytes (2).
static bool read_envelope(struct bytes envelope, json_t *review)
{
    CLEANUP_JSON json_t *type = json_object();
    struct bytes raw = {0};
    while (envelope.len) {
        unsigned number;
        struct bytes value;
        if (!take_field(&envelope, &number, &value) || (number == 1 && !read_message(value, type_rows, type)))
            return false;
        if (number == 2)
            raw = value;
    }
    const struct message_row *rows = rows_of(json_get_text(type, "kind"));
    return rows && read_message(raw, rows, review);
}

int review_body_read(const char *text, size_t len, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *review = json_object();
    if (len < MAGIC_SIZE || len > BODY_SIZE_MAX || memcmp(text, MAGIC, MAGIC_SIZE) != 0 ||
        !read_envelope((struct bytes){(const unsigned char *)text + MAGIC_SIZE, len - MAGIC_SIZE}, review))
        return error_set(err, ERROR_INVALID, "send it as JSON",
                         "the body is not a review in Kubernetes' protobuf form");
    *ret = TAKE_PTR(review);
    return 0;
}
