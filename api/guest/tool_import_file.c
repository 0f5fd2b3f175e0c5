// import_file: an attachment of the chat becomes a file of the workspace.
#include "api/guest/import_fetch.h"
#include "api/guest/install.h"
#include "api/guest/media.h"
#include "api/guest/text_file.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

static const struct tool_arg file_args[] = {
    {"download_url", ARG_STRING, "Where to fetch it: https, on a host of the chat.", .is_required = true},
    {"file_id", ARG_STRING, "The chat's id of the file.", .is_required = true},
    {"mime_type", ARG_STRING, "What the chat says it is."},
    {"file_name", ARG_STRING, "What the chat calls it."},
    {NULL},
};

static const struct tool_arg args[] = {
    {"file", ARG_OBJECT, "The attachment, as the chat passes it.", .is_required = true, .fields = file_args},
    {"destination", ARG_STRING, "File to make: relative to the workspace root, or absolute inside it.",
     .is_required = true},
    {"overwrite", ARG_BOOLEAN, "Permit replacing an existing file.", .has_default = true},
    {"expected_sha256", ARG_STRING, "Keep it only if what was fetched has this SHA-256.", .is_sha256 = true},
    {NULL},
};

static const struct tool_field fields[] = {
    {"path", FIELD_STRING},
    {"bytes", FIELD_INTEGER},
    {"declared_mime_type", FIELD_STRING, .is_nullable = true},
    {"detected_mime_type", FIELD_STRING, .is_nullable = true},
    {"mime_type_status", FIELD_STRING},
    {"sha256", FIELD_STRING},
    {"verified", FIELD_BOOLEAN},
    {"file_id", FIELD_STRING},
    {"file_name", FIELD_STRING, .is_nullable = true},
    {"overwritten", FIELD_BOOLEAN},
    {NULL},
};

struct import {
    struct place place;
    struct stat before;
    bool existed;
    struct import_answer answer;
    char sha256[TEXT_SHA256_SIZE];
};

static void free_import(struct import *import)
{
    place_free(&import->place);
    import_answer_free(&import->answer);
}

static int look_at_destination(struct tool_call *call, struct import *import, struct error *err)
{
    const char *path = import->place.path;
    CLEANUP_CLOSE int fd = workspace_open_real(call->workspace, import->place.real, O_PATH | O_NOFOLLOW);
    if (fd < 0 && errno != ENOENT)
        return guest_tool_fail_errno(err, errno, "open '%s'", path);
    import->existed = fd >= 0;
    if (!import->existed)
        return 0;
    if (fstat(fd, &import->before) < 0)
        return guest_tool_fail_errno(err, errno, "stat '%s'", path);
    if (S_ISLNK(import->before.st_mode))
        return guest_tool_fail(err, "write to the file it points to",
                               "Refusing to write through a symlink: %s", path);
    if (!S_ISREG(import->before.st_mode))
        return guest_tool_fail(err, NULL, "Not a file: %s", path);
    if (!json_get_bool(call->args, "overwrite", false))
        return guest_tool_fail(err, "choose another destination, or set overwrite",
                               "Destination already exists and overwrite=false: %s", path);
    return 0;
}

static int check_hash(struct tool_call *call, struct import *import, struct error *err)
{
    const char *expected = json_get_text(call->args, "expected_sha256");
    text_sha256(buffer_text(&import->answer.bytes), import->answer.bytes.len, import->sha256);
    if (!expected || strcasecmp(expected, import->sha256) == 0)
        return 0;
    return guest_tool_fail(err, NULL, "SHA-256 mismatch: expected %s, fetched %s", expected, import->sha256);
}

// What is there may have changed while the download ran: it is looked at again.
static int put_in_place(struct tool_call *call, struct import *import, struct error *err)
{
    CLEANUP_TEXT_FILE_LOCK struct text_file_lock lock = text_file_lock(import->place.real);
    if (look_at_destination(call, import, err) < 0)
        return -1;
    struct install_item item = {.path = import->place.path,
                                .real = import->place.real,
                                .before = import->existed ? &import->before : NULL,
                                .mode = import->existed ? import->before.st_mode & 07777 : 0666,
                                .bytes = buffer_text(&import->answer.bytes),
                                .len = import->answer.bytes.len};
    return install_all(call->workspace, &item, 1, err);
}

// Formats that are ZIP or gzip files by their own definition.
static bool is_kind_of(const char *declared, const char *detected)
{
    static const char *const zips[] = {"application/vnd.openxmlformats-officedocument.",
                                       "application/vnd.oasis.opendocument.", "application/epub+zip",
                                       "application/java-archive", "application/x-zip-compressed"};
    if (strcmp(detected, "application/gzip") == 0)
        return strncasecmp(declared, "application/x-gzip", 18) == 0 ||
               strncasecmp(declared, "application/x-tgz", 17) == 0;
    if (strcmp(detected, "image/jpeg") == 0)
        return strcasecmp(declared, "image/jpg") == 0;
    for (size_t i = 0; strcmp(detected, "application/zip") == 0 && i < ARRAY_LEN(zips); i++)
        if (strncasecmp(declared, zips[i], strlen(zips[i])) == 0)
            return true;
    return false;
}

static const char *compare_types(const char *declared, const char *detected)
{
    if (!declared || !detected || strcasecmp(declared, "application/octet-stream") == 0)
        return "unknown";
    CLEANUP_FREE char *plain = mem_strndup(declared, strcspn(declared, "; "));
    return strcasecmp(plain, detected) == 0 || is_kind_of(plain, detected) ? "matched" : "mismatched";
}

static void set_result(struct tool_call *call, const struct import *import)
{
    json_t *to = call->structured;
    const json_t *file = json_object_get(call->args, "file");
    const struct buffer *bytes = &import->answer.bytes;
    const char *given = json_get_text(file, "mime_type");
    const char *declared = given && *given ? given : import->answer.mime_type;
    const char *detected = media_sniff_type((const unsigned char *)bytes->data, bytes->len);
    const char *status = compare_types(declared, detected);
    json_set_text(to, "path", import->place.path);
    json_object_set_new(to, "bytes", json_integer((json_int_t)bytes->len));
    json_object_set_new(to, "declared_mime_type", json_from_text(declared));
    json_object_set_new(to, "detected_mime_type", json_from_text(detected));
    json_set_text(to, "mime_type_status", status);
    json_set_text(to, "sha256", import->sha256);
    json_object_set_new(to, "verified", json_boolean(json_get_text(call->args, "expected_sha256") != NULL));
    json_set_text(to, "file_id", json_get_text(file, "file_id"));
    json_object_set_new(to, "file_name", json_from_text(json_get_text(file, "file_name")));
    json_object_set_new(to, "overwritten", json_boolean(import->existed));
    call->text = mem_format(
        "# Import file\nPath: %s\nBytes: %zu\nType: %s (declared %s: %s)\nSHA-256: %s%s\n%s",
        import->place.path, bytes->len, detected ? detected : "unknown", declared ? declared : "nothing",
        status, import->sha256, json_get_text(call->args, "expected_sha256") ? " (as expected)" : "",
        import->existed ? "Replaced the file that was there." : "Made a new file.");
    call->text_len = strlen(call->text);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP(free_import) struct import import = {.place = PLACE_INIT};
    const json_t *destination = json_object_get(call->args, "destination"),
                 *url = json_object_get(json_object_get(call->args, "file"), "download_url");
    if (workspace_find_target(call->workspace, json_string_value(destination),
                              json_string_length(destination), &import.place, err) < 0 ||
        look_at_destination(call, &import, err) < 0 ||
        import_fetch(call->guest, json_string_value(url), json_string_length(url), call->is_cancelled,
                     &import.answer, err) < 0 ||
        check_hash(call, &import, err) < 0 || put_in_place(call, &import, err) < 0)
        return -1;
    set_result(call, &import);
    return 0;
}

const struct tool guest_tool_import_file = {
    .name = "import_file",
    .title = "Import file",
    .description =
        "Put a file that the person attached to the chat into the workspace, bytes unchanged, at most "
        "5000000. Pass the attachment object as the chat gives it. Only https downloads from the chat's "
        "own hosts are fetched; for anything else use curl in bash.",
    .args = args,
    .fields = fields,
    .hints = {.is_destructive = true},
    .file_arg = "file",
    .run = run,
};
