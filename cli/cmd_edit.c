// edit: objects as text in somebody's editor, again and again until they are stored or given up.
#include "cli/apply.h"
#include "cli/child.h"
#include "cli/edit_patch.h"
#include "cli/edit_text.h"
#include "cli/objects.h"
#include "cli/printers/manifest.h"
#include "cli/scratch.h"
#include "cli/selection.h"
#include "cli/targets.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EDIT_MANAGER "chat2shell-edit"
#define TRIES_MAX 5 // at one object whose state others write meanwhile
#define FAULTS_MAX_BYTES (64 * 1024)

struct editing {
    struct invocation *in;
    const struct rest *rest;
    bool is_json;
    json_t *objects; // as they were shown, or are since they were stored
    struct scratch scratch;
    const char *file; // in it
    char *shown;      // the text behind the heading that was put there last
    struct buffer faults;
    size_t stored;
};

static void editing_clear(struct editing *editing)
{
    json_decref(editing->objects);
    scratch_clear(&editing->scratch);
    free(editing->shown);
    buffer_free(&editing->faults);
}

// ---- the editor -----------------------------------------------------------------------------------------------------------------
static const char *editor_of_user(void)
{
    static const char *const names[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value && value[strspn(value, " \t")])
            return value;
    }
    return "vi";
}

static int run_editor(const struct editing *editing, struct error *err)
{
    CLEANUP_FREE const char **argv = NULL;
    CLEANUP_FREE char *text = NULL, *path = scratch_path(&editing->scratch, editing->file);
    size_t count = 0;
    int exit_code = 0;
    if (child_split(editor_of_user(), 1, &argv, &text, err) < 0)
        return -1;
    while (argv[count])
        count++;
    argv[count] = path;
    if (child_run(argv, &exit_code, err) < 0)
        return error_hint(err, "name an editor in VISUAL or EDITOR");
    if (exit_code)
        return error_set(err, ERROR_CANCELLED, "nothing was changed; another editor can be named in VISUAL or EDITOR", "the editor %s ended with exit code %d", argv[0], exit_code);
    return 0;
}

static int show(struct editing *editing, const char *body, struct error *err)
{
    const char *faults = buffer_text(&editing->faults);
    CLEANUP_FREE char *page = edit_page(faults, body, editing->is_json);
    mem_replace(&editing->shown, body);
    if (editing->is_json && *faults)
        complain_text(faults);
    return scratch_write(&editing->scratch, editing->file, page, strlen(page), err) < 0 ? -1 : run_editor(editing, err);
}

// ---- what was wrong ---------------------------------------------------------------------------------------------------------------
static void add_fault(struct editing *editing, const json_t *object, const struct error *err, const json_t *causes)
{
    CLEANUP_FREE char *word = object ? object_word(object) : NULL;
    size_t i;
    json_t *cause;
    if (json_array_size(causes))
        buffer_format(&editing->faults, "%s was not valid:\n", word ? word : "it");
    else
        buffer_format(&editing->faults, "%s%s%s\n", word ? word : "", word ? ": " : "", err->message);
    json_array_foreach((json_t *)causes, i, cause)
    {
        const char *field = json_get_text(cause, "field"), *message = json_get_text(cause, "message");
        buffer_format(&editing->faults, "* %s: %s\n", field ? field : "", message ? message : "");
    }
    if (err->hint[0])
        buffer_format(&editing->faults, "  fix: %s\n", err->hint);
}

// ---- storing ------------------------------------------------------------------------------------------------------------------------
static json_t *with_version(const json_t *patch, const json_t *object)
{
    json_t *whole = json_deep_copy(patch), *metadata = json_object_get(whole, "metadata");
    if (!metadata)
        json_object_set_new(whole, "metadata", metadata = json_object());
    json_set_text(metadata, "resourceVersion", json_get_text(json_object_get(object, "metadata"), "resourceVersion"));
    return whole;
}

static int send(const struct editing *editing, const json_t *object, const json_t *patch, json_t **ret, json_t **ret_causes, struct error *err)
{
    const char *manager = invocation_option(editing->in, "field-manager");
    CLEANUP_FREE char *path = rest_path(selection_kind(object), object_uid(object)), *escaped = http_escape(manager ? manager : EDIT_MANAGER);
    CLEANUP_FREE char *whole = mem_format("%s?fieldManager=%s&fieldValidation=Strict", path, escaped);
    CLEANUP_JSON json_t *body = with_version(patch, object);
    return rest_call(editing->rest, &(struct rest_ask){.method = "PATCH", .path = whole, .content_type = "application/merge-patch+json", .body = body}, ret, NULL,
                     ret_causes, err);
}

// Others wrote the object since it was shown. Its state only: the edit holds. What can be edited: somebody must look again.
static int look_again(const struct editing *editing, size_t index, const json_t *shown, struct error *err)
{
    json_t *now = NULL;
    if (object_get(editing->rest, selection_kind(shown), object_uid(shown), &now, err) < 0)
        return -1;
    bool is_same = edit_is_same(shown, now);
    CLEANUP_JSON json_t *difference = is_same ? NULL : merge_patch(shown, now);
    CLEANUP_FREE char *text = difference ? json_to_text(json_object_get(difference, "metadata")) : NULL;
    json_array_set_new(editing->objects, index, now);
    return is_same ? 0
                   : error_set(err, ERROR_CONFLICT, "look at what changed, then save once more; what you write now counts",
                               "others changed the object meanwhile: %.400s", text ? text : "its spec");
}

static int store(struct editing *editing, size_t index, const json_t *patch, json_t **ret_causes, struct error *err)
{
    for (int tries = 0;; tries++) {
        const json_t *object = json_array_get(editing->objects, index);
        json_t *after = NULL;
        struct error local = ERROR_INIT;
        if (send(editing, object, patch, &after, ret_causes, &local) == 0) {
            json_array_set_new(editing->objects, index, after);
            return 0;
        }
        if (local.code != ERROR_CONFLICT || tries == TRIES_MAX)
            return error_copy(err, &local);
        json_decref(*ret_causes);
        *ret_causes = NULL;
        CLEANUP_JSON json_t *shown = json_incref((json_t *)object);
        if (look_again(editing, index, shown, err) < 0)
            return -1;
    }
}

static bool find_object(const struct editing *editing, const json_t *edited, size_t *ret)
{
    size_t i;
    json_t *object;
    json_array_foreach(editing->objects, i, object)
    {
        const char *kind = json_get_text(edited, "kind");
        if (kind && strcmp(selection_kind(object)->name, kind) == 0 && strcmp(object_name(object), object_name(edited)) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

// 1: stored, 0: as it was, -1.
static int store_edited(struct editing *editing, const json_t *edited, json_t **ret_causes, struct error *err)
{
    size_t index = 0;
    if (!find_object(editing, edited, &index))
        return error_set(err, ERROR_INVALID, "keep kind and name as they were; chat2shell apply makes other objects", "is not one of the objects that are edited");
    CLEANUP_JSON json_t *before = object_without_managers(json_array_get(editing->objects, index)), *after = object_without_managers(edited), *patch = NULL;
    json_object_del(json_object_get(after, "metadata"), "resourceVersion");
    json_object_set(after, "status", json_object_get(before, "status")); // it goes on meanwhile
    if (edit_patch(before, after, &patch, err) < 0)
        return -1;
    if (!json_object_size(patch))
        return 0;
    if (store(editing, index, patch, ret_causes, err) < 0)
        return -1;
    CLEANUP_FREE char *word = object_word(edited);
    terminal_confirm("%s edited", word);
    return 1;
}

static void store_all(struct editing *editing, const struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++) {
        struct error err = ERROR_INIT;
        CLEANUP_JSON json_t *causes = NULL;
        int r = store_edited(editing, manifest->documents[i].value, &causes, &err);
        if (r < 0)
            add_fault(editing, manifest->documents[i].value, &err, causes);
        else
            editing->stored += (size_t)r;
    }
}

// ---- round by round ---------------------------------------------------------------------------------------------------------------
// Whatever ends it, what somebody wrote is not lost. Always -1.
static int keep(struct editing *editing, struct error *err)
{
    CLEANUP_FREE char *path = scratch_path(&editing->scratch, editing->file);
    if (access(path, F_OK) < 0)
        return -1;
    editing->scratch.is_kept = true;
    return error_hint(err, "a copy of your changes has been stored to %s", path);
}

static int give_up(struct editing *editing, struct error *err)
{
    complain_text(buffer_text(&editing->faults));
    error_set(err, ERROR_CANCELLED, NULL, "Edit cancelled, no valid changes were saved.");
    return keep(editing, err);
}

// 1: once more, 0: done, -1.
static int take(struct editing *editing, const char *text, bool is_first, char **ret_body, struct error *err)
{
    const char *body = edit_without_heading(text);
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error wrong = ERROR_INIT;
    if (edit_is_blank(text)) {
        terminal_note("Edit cancelled, saved file was empty.");
        return 0;
    }
    if (strcmp(body, editing->shown) == 0 && !is_first)
        return give_up(editing, err);
    buffer_consume(&editing->faults, editing->faults.len);
    if (strcmp(body, editing->shown) != 0) {
        if (manifest_parse(editing->file, text, strlen(text), &manifest, &wrong) < 0)
            add_fault(editing, NULL, &wrong, NULL);
        else
            store_all(editing, &manifest);
    }
    mem_replace(ret_body, body);
    if (editing->faults.len)
        return 1;
    if (!editing->stored)
        terminal_note("Edit cancelled, no changes made.");
    return 0;
}

static int edit_round(struct editing *editing, char **body, bool is_first, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(EDIT_MAX_BYTES);
    int r = show(editing, *body, err);
    struct error unread = ERROR_INIT;
    bool is_read = scratch_read(&editing->scratch, editing->file, &text, &unread) == 0, is_text = strlen(buffer_text(&text)) == text.len;
    if (r == 0 && !is_read)
        r = error_copy(err, &unread);
    else if (r == 0 && !is_text)
        r = error_set(err, ERROR_INVALID, NULL, "the saved file holds NUL characters");
    if (r == 0)
        return take(editing, buffer_text(&text), is_first, body, err);
    bool is_as_shown = is_read && is_text && strcmp(edit_without_heading(buffer_text(&text)), editing->shown) == 0;
    return is_first && is_as_shown ? -1 : keep(editing, err); // later on what is shown is what somebody wrote
}

static int edit_all(struct editing *editing, struct error *err)
{
    const json_t *first = json_array_get(editing->objects, 0);
    CLEANUP_FREE char *file = json_array_size(editing->objects) == 1
                                  ? mem_format("%s-%s.%s", selection_kind(first)->singular, object_name(first), editing->is_json ? "json" : "yaml")
                                  : mem_format("objects.%s", editing->is_json ? "json" : "yaml");
    CLEANUP_JSON json_t *shown = json_array();
    size_t i;
    json_t *object;
    json_array_foreach(editing->objects, i, object) json_array_append_new(shown, object_shown(editing->in, object));
    CLEANUP_FREE char *body = edit_body(shown, editing->is_json);
    if (!body)
        return error_set(err, ERROR_TOO_LARGE, "edit fewer of them at once", "what is to be edited is longer than %u bytes", EDIT_MAX_BYTES);
    editing->file = file;
    int r = 1;
    for (bool is_first = true; r > 0; is_first = false)
        r = edit_round(editing, &body, is_first, err);
    editing->file = NULL;
    return r;
}

static int run(struct invocation *in, struct error *err)
{
    CLEANUP(selection_clear) struct selection selection = {0};
    CLEANUP(editing_clear) struct editing editing = {.in = in, .is_json = invocation_is_output(in, "json"), .faults = BUFFER_INIT(FAULTS_MAX_BYTES)};
    editing.rest = invocation_rest(in, err);
    if (!editing.rest || selection_read(in, false, &selection, err) < 0 || selection_conclude(&selection, err) < 0)
        return -1;
    if (!json_array_size(selection.objects)) {
        terminal_note("No resources found");
        return 0;
    }
    editing.objects = json_incref(selection.objects);
    return scratch_make(&editing.scratch, "edit", err) < 0 ? -1 : edit_all(&editing, err);
}

static const char *const outputs[] = {"yaml", "json", NULL};
static const struct example examples[] = {
    {"chat2shell edit workspace demo", "labels, annotations and what else can be changed, in an editor"},
    {"EDITOR='code --wait' chat2shell edit sandbox/dev workspace/demo", "two at once, in another editor"},
    {"chat2shell edit sandboxes -l team=web", "all that the selector fits"},
};
static const struct option_row options[] = {
    OPTION_SELECTOR,
    OPTION_FIELD_SELECTOR,
    OPTION_ALL,
    OPTION_FILENAME,
    OPTION_RECURSIVE,
    OPTION_FIELD_MANAGER,
    {.name = "show-managed-fields", .doc = "show who is noted for which field"},
    OPTION_OUTPUT(outputs, "the form to edit them in, yaml by default"),
    OPTIONS_NAMESPACE,
};
const struct command command_edit = {
    .name = "edit", .synopsis = "KIND NAME… | KIND/NAME… | KIND -l SELECTOR | -f FILE", .summary = "Edit objects in an editor", .max_arguments = -1, .run = run,
    .details = "The editor is VISUAL, EDITOR or vi; its words are split at blanks and it is run directly, no shell. What is wrong stands in comments at the top "
               "when the file is opened again; saving it unchanged gives up, and keeps the text. A change that others make meanwhile to what is edited is shown, "
               "and never overwritten unseen.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
