#include "api/operator/create.h"
#include "api/operator/apply.h"
#include "api/operator/body.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/fields/fields.h"
#include <string.h>

#define SUFFIX_CHARS 5
#define NAME_BASE_CHARS 58 // of a generated name
#define NAME_TRIES 8

struct create {
    struct call *call;
    struct record *wanted; // as the body has it; after a transaction as it is stored
    char *ref_uid;         // of what the spec refers to; NULL = nothing
    char *ref_name;        // of what it refers to and is not there yet: the object waits for it
    json_t *causes;
};

static void create_free(struct create *create)
{
    record_free(create->wanted);
    free(create->ref_uid);
    free(create->ref_name);
    json_decref(create->causes);
    free(create);
}

static void fail(struct create *create, const struct error *err)
{
    if (err->code != ERROR_EXISTS || !apply_again(create->call))
        operator_fail_with(create->call, err, create->causes);
    create_free(create);
}

// The reference's target may have come since, which the record tells.
static void warn_of_waiting(struct create *create, const struct record *record)
{
    if (!create->ref_name)
        return;
    bool is_sandbox = record->kind == KIND_SANDBOX;
    if (!(is_sandbox ? record->status.sandbox.workspace_uid : record->status.exposure.sandbox_uid))
        operator_warn(create->call, "there is no %s named %s yet; the %s waits for it", is_sandbox ? "workspace" : "sandbox",
                      create->ref_name, kind_info(record->kind)->singular);
}

static void finish(struct create *create, int status, struct record *record)
{
    warn_of_waiting(create, record);
    operator_answer_record(create->call, status, record);
    record_free(record);
    create_free(create);
}

// ---- plain creates, in a transaction of our own
// ----------------------------------------------------------------
static const char *finalizer_of(const struct record *record)
{
    return record->kind == KIND_WORKSPACE && record->spec.workspace.mode == WORKSPACE_MANAGED ? FINALIZER_TRASH : NULL;
}

static int create_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct create *create = arg;
    const struct store_actor actor = {create->call->principal, create->call->manager};
    struct record *record = create->wanted;
    const char *finalizer = finalizer_of(record);
    if (finalizer)
        text_list_add(&record->meta.finalizers, finalizer);
    if (record->kind == KIND_APPROVAL_RULE && rule_check_room(tx, err) < 0)
        return -1;
    if (tx_create(tx, &actor, record, err) < 0)
        return -1;
    return create->call->is_dry_run
               ? error_set(err, ERROR_CANCELLED, NULL, "a dry run: nothing of this is kept")
               : 0;
}

static void on_created(void *arg, int result, const struct error *err)
{
    struct create *create = arg;
    bool is_dry_success = create->call->is_dry_run && create->wanted->meta.resource_version;
    if (is_dry_success)
        create->wanted->meta.resource_version = 0; // it never had one
    if (result < 0 && !is_dry_success)
        fail(create, err);
    else
        finish(create, 201, TAKE_PTR(create->wanted));
}

static void submit(struct create *create)
{
    store_submit(create->call->world->store, create_in_tx, on_created, create);
}

// ---- the kinds
// ----------------------------------------------------------------------------------------------------------------
static void on_record(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err)
{
    const struct create *create = arg;
    json_decref(unsaved);
    if (result < 0) {
        fail(arg, err);
        return;
    }
    if (create->call->is_dry_run)
        record->meta.resource_version = 0; // it never had one
    finish(arg, 201, record);
}

static void create_workspace(struct create *create)
{
    const struct call *call = create->call;
    const struct workspace_spec *spec = &create->wanted->spec.workspace;
    if (spec->mode == WORKSPACE_MANAGED)
        submit(create);
    else
        request_host_workspace(call->world, call->principal, call->manager, spec->path,
                               workspace_mode_word(spec->mode), &create->wanted->meta,
                               call->is_dry_run, on_record, create);
}

static void on_sandbox(void *arg, int result, enum sandbox_outcome outcome, struct record *record,
                       const struct error *err)
{
    struct create *create = arg;
    struct error why = ERROR_INIT;
    const char *name = create->wanted->meta.name;
    if (result < 0) {
        fail(create, err);
        return;
    }
    if (create->call->is_dry_run && outcome == SANDBOX_CREATED)
        record->meta.resource_version = 0;
    if (outcome == SANDBOX_CREATED || !name) { // without a name, the one that is there is what was asked for
        finish(create, outcome == SANDBOX_CREATED ? 201 : 200, record);
        return;
    }
    if (strcmp(record->meta.name, name) == 0)
        error_set(&why, ERROR_EXISTS, "change it with PATCH, or delete it first",
                  "the sandbox '%s' exists already", name);
    else
        error_set(&why, ERROR_STATE, "delete that one first, or name another workspace",
                  "the workspace %s is held by the sandbox '%s'", record->spec.sandbox.workspace_ref,
                  record->meta.name);
    record_free(record);
    fail(create, &why);
}

static void create_sandbox(struct create *create)
{
    const struct call *call = create->call;
    const struct sandbox_spec *spec = &create->wanted->spec.sandbox;
    const struct sandbox_request request = {
        .principal = call->principal,
        .manager = call->manager,
        .workspace_id = create->ref_uid,
        .workspace_name = create->ref_name,
        .name = create->wanted->meta.name,
        .template_name = spec->template_name,
        .driver = spec->driver,
        .memory_bytes = spec->memory_bytes,
        .cpus_milli = spec->cpus_milli,
        .session = spec->session,
        .wanted = &create->wanted->meta,
        .is_dry_run = call->is_dry_run,
    };
    request_sandbox(call->world, &request, on_sandbox, create);
}

static void create_exposure(struct create *create)
{
    const struct call *call = create->call;
    const struct expose_request request = {
        .principal = call->principal,
        .manager = call->manager,
        .sandbox_uid = create->ref_uid,
        .sandbox_name = create->ref_name,
        .port = create->wanted->spec.exposure.port,
        .wanted = &create->wanted->meta,
        .is_dry_run = call->is_dry_run,
    };
    request_expose_as(call->world, &request, on_record, create);
}

static void refuse_approval(struct create *create)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_REFUSED,
              "to approve a path beforehand, create a Workspace with spec.mode and spec.path (chat2shell "
              "workspace add PATH)",
              "approvals are asked for by sandboxes and cannot be created");
    fail(create, &err);
}

static void refuse_session(struct create *create)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_REFUSED, "create a Sandbox: its session comes with it",
              "sessions are made by the daemon and cannot be created");
    fail(create, &err);
}

static const struct creator {
    void (*start)(struct create *create);
    const char *ref_field; // in spec: a name, or here also a uid
    enum kind ref_kind;
    bool is_ref_optional;
} creators[KIND_COUNT] = {
    [KIND_WORKSPACE] = {create_workspace},
    [KIND_APPROVAL] = {refuse_approval},
    [KIND_SANDBOX] = {create_sandbox, "workspaceRef", KIND_WORKSPACE, true},
    [KIND_SESSION] = {refuse_session},
    [KIND_EXPOSURE] = {create_exposure, "sandboxRef", KIND_SANDBOX, false},
    [KIND_APPROVAL_RULE] = {submit},
};

// ---- reading
// --------------------------------------------------------------------------------------------------------------------
// The body with what its reference means: the uid it was written as becomes the name, an absent one stands as
// a name until the request has made what it refers to. *ret_missing: what is named and not there (yet).
static json_t *settle_ref(struct create *create, const struct creator *creator, const char **ret_missing)
{
    json_t *body = json_deep_copy(create->call->body), *spec = json_object_get(body, "spec");
    const char *given = json_get_text(spec, creator->ref_field);
    CLEANUP_RECORD struct record *target = NULL;
    struct error err = ERROR_INIT;
    if (!json_is_object(spec) && creator->is_ref_optional && (!spec || json_is_null(spec))) {
        spec = json_object();
        json_object_set_new(body, "spec", spec);
    }
    bool is_absent = json_is_object(spec) && (!json_object_get(spec, creator->ref_field) ||
                                              json_is_null(json_object_get(spec, creator->ref_field)));
    if (is_absent && creator->is_ref_optional) {
        json_object_set_new(spec, creator->ref_field, json_string("new"));
    } else if (given &&
               store_resolve(create->call->world->store, creator->ref_kind, given, &target, &err) == 0) {
        create->ref_uid = mem_strdup(target->meta.uid);
        json_object_set_new(spec, creator->ref_field, json_from_text(target->meta.name));
    } else if (given) {
        *ret_missing = json_get_text(json_object_get(create->call->body, "spec"), creator->ref_field);
    }
    return body;
}

static int read_wanted(struct create *create, const char *name, struct error *err)
{
    const struct creator *creator = &creators[create->wanted->kind];
    struct call *call = create->call;
    const char *missing = NULL;
    CLEANUP_JSON json_t *body = creator->ref_field ? settle_ref(create, creator, &missing) : json_incref(call->body);
    mem_replace(&create->wanted->meta.name, name);
    if (body_read(call, create->wanted, body, create->causes, err) < 0 && err->code != ERROR_INVALID)
        return -1;
    if (create->wanted->meta.resource_version)
        body_add_cause(create->causes, "metadata.resourceVersion", CAUSE_FORBIDDEN,
                       "may not be specified for an object that is not there yet");
    mem_replace(&create->ref_name, missing); // of the right form: else it is among the causes
    return fields_causes_to_error(create->causes, err);
}

// ---- names
// ---------------------------------------------------------------------------------------------------------------
// No vowels, so that no word comes of it, and nothing that looks like something else.
static void put_suffix(char *to)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    for (size_t i = 0; i < SUFFIX_CHARS; i++)
        to[i] = letters[random_below(sizeof(letters) - 1)];
    to[SUFFIX_CHARS] = '\0';
}

// metadata.generateName, for an object that is given no name. Taken by somebody in between: AlreadyExists, and the client
// asks again.
static void choose_name(struct create *create)
{
    const struct call *call = create->call;
    const json_t *metadata = json_object_get(call->body, "metadata");
    const char *base = json_get_text(metadata, "generateName"), *name = json_get_text(metadata, "name");
    if (!base || !*base || (name && *name) || create->wanted->meta.name)
        return;
    for (int i = 0; i < NAME_TRIES; i++) {
        char suffix[SUFFIX_CHARS + 1];
        CLEANUP_RECORD struct record *taken = NULL;
        put_suffix(suffix);
        CLEANUP_FREE char *text = mem_format("%.*s%s", NAME_BASE_CHARS, base, suffix);
        mem_replace(&create->wanted->meta.name, text);
        if (store_get(call->world->store, create->wanted->kind, text, &taken, NULL) < 0)
            return;
    }
}

static int check_chosen_name(const struct create *create, struct error *err)
{
    const char *name = create->wanted->meta.name;
    if (!name || record_check_name(name, NULL) == 0)
        return 0;
    body_add_cause(create->causes, "metadata.generateName", CAUSE_INVALID,
                   "must begin a lower-case DNS label: letters, digits and '-', starting with a letter or digit");
    return fields_causes_to_error(create->causes, err);
}

// An applier owns what it named; a creator everything.
static void own_fields(struct create *create)
{
    const struct call *call = create->call;
    struct record *wanted = create->wanted;
    if (call->match.route->body != BODY_PATCH)
        return;
    CLEANUP_JSON json_t *set = apply_set_of(wanted->kind, call->body);
    wanted->meta.managed_fields = json_array();
    record_apply_managed(wanted, NULL, call->manager, set, clock_wall(call->world->clock));
}

void create_start(struct call *call, const char *name)
{
    struct create *create = mem_alloc(sizeof(*create));
    *create = (struct create){.call = call, .wanted = record_new(call->match.kind), .causes = json_array()};
    struct error err = ERROR_INIT;
    if (read_wanted(create, name, &err) < 0) {
        fail(create, &err);
        return;
    }
    choose_name(create);
    own_fields(create);
    if (check_chosen_name(create, &err) < 0)
        fail(create, &err);
    else
        creators[call->match.kind].start(create);
}
