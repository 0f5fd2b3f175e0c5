// A caller asks for a sandbox: everything that could race is settled in one transaction.
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/hash.h"
#include "reconcilers/exposes.h"
#include "reconcilers/host_workspace.h"
#include "reconcilers/sandbox.h"
#include <stdio.h>
#include <string.h>


struct ask {
    struct world *world;
    char *principal, *manager, *workspace_id, *workspace_name, *path;
    struct record *wanted; // the new Sandbox: name, labels, annotations and spec; its workspace is found first
    bool has_mode;
    enum workspace_mode mode;
    bool is_untrusted, is_dry_run;
    struct host_path host_path;
    json_t *exposes;
    char *digest; // of the arguments: identical requests join
    // out
    enum sandbox_outcome outcome;
    struct record *record;
    sandbox_request_fn done;
    void *arg;
};

static void ask_free(struct ask *ask)
{
    free(ask->principal);
    free(ask->manager);
    free(ask->workspace_id);
    free(ask->workspace_name);
    free(ask->path);
    record_free(ask->wanted);
    free(ask->digest);
    host_path_clear(&ask->host_path);
    json_decref(ask->exposes);
    record_free(ask->record);
    free(ask);
}

static void finish(struct ask *ask, int result, const struct error *err)
{
    ask->done(ask->arg, result, ask->outcome, result == 0 ? TAKE_PTR(ask->record) : NULL, err);
    ask_free(ask);
}

static void on_committed(void *arg, int result, const struct error *err)
{
    struct ask *ask = arg;
    finish(ask, ask->is_dry_run && ask->record ? 0 : result, err);
}

// ---- what holds a workspace already ------------------------------------------------------------------------------
static int answer_holder(struct ask *ask, struct record *holder, struct error *err)
{
    if (holder->meta.deletion_at.ms)
        return error_set(err, ERROR_STATE, ask->is_untrusted ? "call sandbox_create again in a few seconds" : "ask again in a few seconds", "the sandbox %s of this workspace is being destroyed", holder->meta.uid);
    const struct condition *failed = record_condition(holder, CONDITION_FAILED);
    if (failed && failed->status == CONDITION_TRUE)
        return error_set(err, ERROR_STATE, ask->is_untrusted ? "call sandbox_destroy for it, then create again with the same workspace_id"
                                           : "replace it with `chat2shell recreate`, or delete it first",
                         "the sandbox %s of this workspace failed (%s) and blocks it", holder->meta.uid, failed->message);
    ask->outcome = record_is_true(holder, CONDITION_READY) ? SANDBOX_REUSED : SANDBOX_JOINED;
    ask->record = record_copy(holder);
    return 0;
}

bool principal_is_untrusted(const char *principal)
{
    size_t len = sizeof(PRINCIPAL_MCP) - 1;
    return strncmp(principal, PRINCIPAL_MCP, len) == 0 && (!principal[len] || principal[len] == ':');
}

static bool is_same_ask(const struct ask *ask, const struct record *sandbox)
{
    const char *digest = text_map_get(&sandbox->meta.annotations, ANNOTATION_REQUEST);
    return digest && strcmp(digest, ask->digest) == 0 && !sandbox->meta.deletion_at.ms && !record_is_true(sandbox, CONDITION_READY) &&
           !record_is_true(sandbox, CONDITION_FAILED) && strcmp(sandbox->meta.created_by, ask->principal) == 0;
}

static int join(struct store_tx *tx, struct ask *ask, struct error *err)
{
    struct record_list all = {0};
    if (tx_list_starting(tx, ask->digest, &all, err) < 0)
        return -1;
    for (size_t i = 0; i < all.count && !ask->record; i++)
        if (is_same_ask(ask, all.items[i])) {
            ask->outcome = SANDBOX_JOINED;
            ask->record = TAKE_PTR(all.items[i]);
        }
    record_list_free(&all);
    return 0;
}

static int count_and_join(struct store_tx *tx, struct ask *ask, struct error *err)
{
    int64_t count = 0, recent = 0, max = ask->world->config->max_sandboxes;
    if (join(tx, ask, err) < 0)
        return -1;
    if (ask->record)
        return 0;
    if (tx_count_live(tx, KIND_SANDBOX, &count, err) < 0 ||
        (ask->is_untrusted && tx_count_born_since(tx, (struct wall_time){tx_now(tx).ms - 60000}, PRINCIPAL_MCP, &recent, err) < 0))
        return -1;
    if (count >= max)
        return error_set(err, ERROR_LIMIT, ask->is_untrusted ? "destroy one with sandbox_destroy first" : "delete one first, or serve with a greater CHAT2SHELL_MAX_SANDBOXES",
                         "there are %lld sandboxes already, %lld at once is the most", (long long)count, (long long)max);
    if (ask->is_untrusted && recent >= LIMIT_CREATES_A_MINUTE)
        return error_set(err, ERROR_LIMIT, "use one of those (sandbox_list), or wait a minute and call sandbox_create again", "%d sandboxes were created within a minute, the most allowed", LIMIT_CREATES_A_MINUTE);
    return 0;
}

// ---- which workspace ------------------------------------------------------------------------------------------------
static int take_by_id(struct store_tx *tx, struct ask *ask, struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    struct error why = ERROR_INIT;
    if (tx_get_uid(tx, KIND_WORKSPACE, ask->workspace_id, &workspace, &why) < 0)
        return error_set(err, why.code, "call workspace_list for the ids there are, or leave workspace_id out for a fresh workspace", "there is no workspace %s", ask->workspace_id);
    if (workspace->meta.removed_at.ms || workspace->meta.deletion_at.ms)
        return error_set(err, ERROR_STATE, "leave out workspace_id to get a fresh one", "the workspace %s was %s", ask->workspace_id,
                         workspace->spec.workspace.mode == WORKSPACE_MANAGED ? "moved to the trash" : "revoked");
    if (ask->has_mode && ask->mode != workspace->spec.workspace.mode)
        return error_set(err, ERROR_INVALID, "leave out workspace_mode", "workspace_mode '%s' does not match the workspace %s, which is '%s'",
                         workspace_mode_word(ask->mode), ask->workspace_id, workspace_mode_word(workspace->spec.workspace.mode));
    const struct condition *ready = record_condition(workspace, CONDITION_READY);
    if (workspace->spec.workspace.mode != WORKSPACE_MANAGED && ready && ready->status == CONDITION_FALSE)
        return error_set(err, ERROR_STATE, "create with workspace_path to ask for approval again", "the workspace %s is not usable: %s",
                         ask->workspace_id, ready->message);
    *ret = TAKE_PTR(workspace);
    return 0;
}

static int ask_approval(struct store_tx *tx, struct ask *ask, const struct store_actor *actor, struct error *err)
{
    ask->outcome = SANDBOX_NEEDS_APPROVAL;
    if (tx_find_pending(tx, &ask->host_path, ask->mode, &ask->record, err) < 0 ||
        (!ask->record && tx_find_rejected(tx, actor, &ask->host_path, ask->mode, &ask->record, err) < 0))
        return -1;
    if (ask->record)
        return 0;
    if (ask->is_untrusted && tx_check_approvals(tx, err) < 0)
        return -1;
    return tx_make_approval(tx, actor, &ask->host_path, ask->mode, APPROVAL_PENDING, ask->exposes, &ask->record, err);
}

static int make_managed(struct store_tx *tx, const struct store_actor *actor, struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = record_new(KIND_WORKSPACE);
    workspace->spec.workspace.mode = WORKSPACE_MANAGED;
    text_list_add(&workspace->meta.finalizers, FINALIZER_TRASH);
    if (tx_create(tx, actor, workspace, err) < 0)
        return -1;
    *ret = TAKE_PTR(workspace);
    return 0;
}

// It may have come since the request was read.
static int find_named(struct store_tx *tx, struct ask *ask, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    struct error why = ERROR_INIT;
    if (!ask->workspace_name)
        return 0;
    if (tx_get(tx, KIND_WORKSPACE, ask->workspace_name, &workspace, &why) == 0)
        mem_replace(&ask->workspace_id, workspace->meta.uid);
    else if (why.code != ERROR_NOT_FOUND)
        return error_copy(err, &why);
    return 0;
}

// *ret stays NULL when ask->record answers already (approval needed), and where the sandbox waits for one of a name.
static int take_workspace(struct store_tx *tx, struct ask *ask, const struct store_actor *actor, struct record **ret, struct error *err)
{
    if (ask->workspace_name && !ask->workspace_id)
        return 0;
    if (ask->workspace_id)
        return take_by_id(tx, ask, ret, err);
    if (!ask->path)
        return make_managed(tx, actor, ret, err);
    if (tx_find_host_workspace(tx, &ask->host_path, ask->mode, ret, err) < 0)
        return -1;
    return *ret ? 0 : ask_approval(tx, ask, actor, err);
}

// workspace NULL: there is none of the name yet.
static int make_sandbox(struct store_tx *tx, struct ask *ask, const struct store_actor *actor, const struct record *workspace, struct error *err)
{
    CLEANUP_RECORD struct record *sandbox = record_copy(ask->wanted);
    mem_replace(&sandbox->spec.sandbox.workspace_ref, workspace ? workspace->meta.name : ask->workspace_name);
    sandbox->status.sandbox.workspace_uid = workspace ? mem_strdup(workspace->meta.uid) : NULL;
    text_list_add(&sandbox->meta.finalizers, FINALIZER_RUNTIME);
    text_map_set(&sandbox->meta.annotations, ANNOTATION_REQUEST, ask->digest);
    if (workspace)
        record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, tx_now(tx), "Accepted", "the request is stored");
    else
        sandbox_set_waiting(sandbox, tx_now(tx));
    if (tx_create(tx, actor, sandbox, err) < 0)
        return -1;
    ask->outcome = SANDBOX_CREATED;
    if (!ask->is_dry_run)
        store_touch_activity(ask->world->store, sandbox->meta.uid, tx_now(tx));
    ask->record = TAKE_PTR(sandbox);
    return ask->is_dry_run ? error_set(err, ERROR_CANCELLED, NULL, "only asked for: nothing of this is kept") : 0;
}

static int ask_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct ask *ask = arg;
    struct store_actor actor = {ask->principal, ask->manager};
    CLEANUP_RECORD struct record *workspace = NULL, *holder = NULL;
    if (find_named(tx, ask, err) < 0)
        return -1;
    if (!ask->workspace_id && !ask->path && (count_and_join(tx, ask, err) < 0 || ask->record))
        return ask->record ? 0 : -1;
    if (take_workspace(tx, ask, &actor, &workspace, err) < 0)
        return -1;
    if (!workspace)
        return ask->record ? 0 : make_sandbox(tx, ask, &actor, NULL, err);
    if (tx_find_holder(tx, workspace->meta.uid, &holder, err) < 0)
        return -1;
    if (holder)
        return answer_holder(ask, holder, err);
    if ((ask->workspace_id || ask->path) && (count_and_join(tx, ask, err) < 0 || ask->record))
        return ask->record ? 0 : -1;
    if (tx_check_overlap(tx, workspace, err) < 0)
        return -1;
    return make_sandbox(tx, ask, &actor, workspace, err);
}

// ---- before the transaction -------------------------------------------------------------------------------------------
static int parse_mode(struct ask *ask, const char *word, struct error *err)
{
    ask->has_mode = word != NULL;
    ask->mode = ask->path ? WORKSPACE_CLONE : WORKSPACE_MANAGED;
    if (!word)
        return 0;
    for (int mode = WORKSPACE_MANAGED; mode <= WORKSPACE_DIRECT; mode++)
        if (strcmp(word, workspace_mode_word((enum workspace_mode)mode)) == 0) {
            ask->mode = (enum workspace_mode)mode;
            return 0;
        }
    return error_set(err, ERROR_INVALID, "use managed, clone or direct", "workspace_mode '%s' is unknown", word);
}

static int check_arguments(const struct ask *ask, struct error *err)
{
    if (ask->workspace_id && ask->path)
        return error_set(err, ERROR_INVALID, "give only one of them", "workspace_id and workspace_path may not be given together");
    if (ask->path && ask->mode == WORKSPACE_MANAGED)
        return error_set(err, ERROR_INVALID, "use workspace_mode clone or direct with workspace_path", "workspace_mode 'managed' does not go with workspace_path");
    if (!ask->path && !ask->workspace_id && ask->mode != WORKSPACE_MANAGED)
        return error_set(err, ERROR_INVALID, "give workspace_path too, or leave workspace_mode out for a fresh workspace", "workspace_mode '%s' needs workspace_path", workspace_mode_word(ask->mode));
    const char *driver = ask->wanted->spec.sandbox.driver, *ours = request_driver_name(ask->world);
    if (driver && strcmp(driver, ours) != 0)
        return error_set(err, ERROR_INVALID, "leave it out, or start the daemon with CHAT2SHELL_DRIVER set to it",
                         "spec.driver: this daemon runs the driver '%s', not '%s'", ours, driver);
    return 0;
}

static void put_map(struct buffer *to, const struct text_map *map)
{
    for (size_t i = 0; map && i < map->count; i++)
        buffer_format(to, "|%s=%s", map->items[i].key, map->items[i].value);
}

// Of every argument: only a request that asks for the very same joins one in progress.
static char *make_digest(const struct sandbox_request *request)
{
    const char *const texts[] = {request->workspace_id, request->workspace_path, request->workspace_mode,
                                 request->template_name, request->name, request->driver};
    struct buffer all = BUFFER_INIT(SIZE_MAX / 2); // admission bounded its parts
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        buffer_format(&all, "%s%s", i ? "|" : "", texts[i] ? texts[i] : "");
    if (request->workspace_name) // another request than one that names nothing
        buffer_format(&all, "|for %s", request->workspace_name);
    if (request->memory_bytes || request->cpus_milli || request->session)
        buffer_format(&all, "|%lld|%lld|%d", (long long)request->memory_bytes, (long long)request->cpus_milli, request->session);
    const struct record_meta *wanted = request->wanted;
    put_map(&all, wanted ? &wanted->labels : NULL);
    if (wanted && wanted->annotations.count)
        buffer_append_text(&all, "|");
    put_map(&all, wanted ? &wanted->annotations : NULL);
    size_t len = all.len;
    CLEANUP_FREE char *text = buffer_take_string(&all);
    // A digest is compared with requests of the same principal only: who makes two collide joins a sandbox of its own.
    return mem_format("%016llx-%zu", (unsigned long long)hash_text(text), len);
}

static struct record *make_wanted(const struct sandbox_request *request)
{
    struct record *wanted = record_new(KIND_SANDBOX);
    struct sandbox_spec *spec = &wanted->spec.sandbox;
    spec->template_name = mem_strdup_or_null(request->template_name);
    spec->driver = mem_strdup_or_null(request->driver);
    spec->memory_bytes = request->memory_bytes;
    spec->cpus_milli = request->cpus_milli;
    spec->session = request->session;
    if (request->wanted)
        meta_take_wanted(&wanted->meta, request->wanted);
    mem_replace(&wanted->meta.name, request->name);
    return wanted;
}

static void check_path_then_submit(void *arg)
{
    struct ask *ask = arg;
    struct error err = ERROR_INIT;
    if (path_policy_check(ask->world->config, ask->path, ask->mode, !ask->is_untrusted, &ask->host_path, &err) < 0) {
        finish(ask, -1, &err);
        return;
    }
    if (ask->mode == WORKSPACE_DIRECT && exposes_scan(ask->host_path.resolved, &ask->exposes, &err) < 0) {
        if (ask->is_untrusted)
            error_set(&err, ERROR_REFUSED, "ask the owner which paths are allowed", PATH_REFUSED_MESSAGE);
        finish(ask, -1, &err);
        return;
    }
    store_submit(ask->world->store, ask_in_tx, on_committed, ask);
}

void request_sandbox(struct world *world, const struct sandbox_request *request, sandbox_request_fn done, void *arg)
{
    struct ask *ask = mem_alloc(sizeof(*ask));
    *ask = (struct ask){
        .world = world, .principal = mem_strdup(request->principal), .manager = mem_strdup(request->manager),
        .workspace_id = mem_strdup_or_null(request->workspace_id),
        .workspace_name = mem_strdup_or_null(request->workspace_name), .path = mem_strdup_or_null(request->workspace_path),
        .wanted = make_wanted(request), .digest = make_digest(request),
        .is_untrusted = principal_is_untrusted(request->principal), .is_dry_run = request->is_dry_run, .done = done, .arg = arg,
    };
    struct error err = ERROR_INIT;
    if (parse_mode(ask, request->workspace_mode, &err) < 0 || check_arguments(ask, &err) < 0) {
        finish(ask, -1, &err);
        return;
    }
    if (!ask->path)
        store_submit(world->store, ask_in_tx, on_committed, ask);
    else if (!request_worker_add(world->reconcilers->worker, check_path_then_submit, ask)) {
        error_set(&err, ERROR_LIMIT, "call sandbox_create again in a moment", "too many requests for host paths at once");
        finish(ask, -1, &err);
    }
}
