// view_image: an image for the model to look at. What it is, its bytes say, not its name.
#include "api/guest/media.h"
#include "api/guest/text.h"
#include "api/guest/tool.h"
#include "api/guest/workspace.h"
#include "controller/base/memory.h"
#include <errno.h>

#define DEFAULT_BYTES 1000000
#define MAX_BYTES 2000000

static const struct tool_arg args[] = {
    {"path", ARG_STRING, "Image file: relative to the workspace root, or absolute inside it.",
     .is_required = true},
    {"max_bytes", ARG_INTEGER, "Refuse a file that is larger.", .has_default = true,
     .default_number = DEFAULT_BYTES, .min = 4096, .max = MAX_BYTES},
    {NULL},
};

static const struct tool_field fields[] = {
    {"path", FIELD_STRING},
    {"mime_type", FIELD_STRING},
    {"width", FIELD_INTEGER, .is_nullable = true},
    {"height", FIELD_INTEGER, .is_nullable = true},
    {"bytes", FIELD_INTEGER},
    {"sha256", FIELD_STRING},
    {NULL},
};

static int fail_too_large(struct error *err, long long bytes, size_t max_bytes)
{
    return guest_tool_fail(err, "give a larger max_bytes (at most 2000000) or make the image smaller",
                           "Image is too large (%lld bytes). Limit: %zu bytes.", bytes, max_bytes);
}

static int read_bytes(const struct place *place, size_t max_bytes, struct buffer *bytes, struct error *err)
{
    struct stat meta;
    struct error read_error = ERROR_INIT;
    if (fstat(place->fd, &meta) < 0)
        return guest_tool_fail_errno(err, errno, "stat '%s'", place->path);
    if (!S_ISREG(meta.st_mode))
        return guest_tool_fail(err, NULL, "Not a file: %s", place->path);
    if ((size_t)meta.st_size > max_bytes)
        return fail_too_large(err, (long long)meta.st_size, max_bytes);
    if (fs_read_all(place->fd, bytes, &read_error) == 0)
        return 0;
    return read_error.code == ERROR_TOO_LARGE ? fail_too_large(err, (long long)max_bytes + 1, max_bytes)
                                              : guest_tool_fail_errno(err, errno, "read '%s'", place->path);
}

static json_t *size_or_null(long size)
{
    return size < 0 ? json_null() : json_integer(size);
}

static void set_result(struct tool_call *call, const char *path, const struct image_info *info,
                       const struct buffer *bytes)
{
    char sha256[TEXT_SHA256_SIZE];
    text_sha256(bytes->data, bytes->len, sha256);
    json_t *to = call->structured, *image = json_object();
    json_set_text(to, "path", path);
    json_set_text(to, "mime_type", info->mime_type);
    json_object_set_new(to, "width", size_or_null(info->width));
    json_object_set_new(to, "height", size_or_null(info->height));
    json_object_set_new(to, "bytes", json_integer((json_int_t)bytes->len));
    json_set_text(to, "sha256", sha256);
    json_set_text(image, "type", "image");
    json_object_set_new(image, "data", json_encode_base64(bytes->data, bytes->len));
    json_set_text(image, "mimeType", info->mime_type);
    call->content = json_array();
    json_array_append_new(call->content, image);
    CLEANUP_FREE char *size =
        info->width < 0 ? mem_strdup("unknown") : mem_format("%ldx%ld", info->width, info->height);
    struct buffer text = BUFFER_INIT(16384);
    buffer_format(&text, "# Image\nPath: %s\nType: %s\nDimensions: %s\nBytes: %zu\nSHA-256: %s", path,
                  info->mime_type, size, bytes->len, sha256);
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    const json_t *path = json_object_get(call->args, "path");
    if (workspace_open_place(call->workspace, json_string_value(path), json_string_length(path), O_RDONLY,
                             &place, err) < 0)
        return -1;
    size_t max_bytes = (size_t)json_get_int(call->args, "max_bytes", DEFAULT_BYTES);
    CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(max_bytes);
    struct image_info info;
    if (read_bytes(&place, max_bytes, &bytes, err) < 0)
        return -1;
    if (media_sniff_image((const unsigned char *)buffer_text(&bytes), bytes.len, &info) < 0)
        return guest_tool_fail(err, "convert it to PNG, JPEG, GIF or WebP with bash",
                               "Unsupported image format: %s", place.path);
    set_result(call, place.path, &info, &bytes);
    return 0;
}

const struct tool guest_tool_view_image = {
    .name = "view_image",
    .title = "View image",
    .description =
        "Look at a PNG, JPEG, GIF or WebP image of the workspace: a screenshot, a plot, a design. The "
        "answer holds the picture itself with its type, size and SHA-256. The type is told from the "
        "bytes, not from the name.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
