#include "api/mcp/ready.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <string.h>

#define SERVER_NAME "chat2shell"
#define LIST_TTL_MS 300000
static const char instructions[] =
    "A full shell in disposable sandboxes. Start with sandbox_create (no arguments for a fresh workspace) "
    "and use its sandbox.id as "
    "sandbox_id everywhere. Run commands with bash; follow long ones with bash_poll and end them with "
    "bash_stop. Files: read, write, "
    "edit, search, tree. sandbox_expose publishes a TCP port. A host directory needs the operator's approval "
    "once: pass workspace_path "
    "and follow the answer. Destroy sandboxes that are done with; idle ones end after 24 hours.";

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", SERVER_NAME, "title", "chat2shell", "version", CHAT2SHELL_VERSION);
}

void mcp_finish_result(json_t *result, enum mcp_era era)
{
    if (era == MCP_LEGACY)
        return;
    json_object_set_new(result, "resultType", json_string("complete"));
    json_t *meta = json_object_get(result, "_meta");
    if (!json_is_object(meta))
        json_object_set_new(result, "_meta", meta = json_object());
    json_object_set_new(meta, MCP_META_SERVER_INFO, server_info());
}

struct shared_text *mcp_finish_text(const struct mcp_ready *ready, struct shared_text *result, enum mcp_era era)
{
    if (era == MCP_LEGACY)
        return result;
    struct shared_text *text = shared_text_join(result->bytes, result->len - 1, ready->modern_members, strlen(ready->modern_members));
    shared_text_unref(result);
    return text;
}

static struct shared_text *make_text(json_t *taken, enum mcp_era era)
{
    CLEANUP_JSON json_t *result = taken;
    mcp_finish_result(result, era);
    CLEANUP_FREE char *text = json_to_text(result);
    return shared_text_new(text, strlen(text));
}

static json_t *with_cache_hints(json_t *result)
{
    json_object_set_new(result, "ttlMs", json_integer(LIST_TTL_MS));
    json_object_set_new(result, "cacheScope", json_string("private"));
    return result;
}

// So that a client, which keeps a snapshot of the tools, sees with one small request whether it is old.
static json_t *with_catalogue_hash(json_t *result, const struct catalogue *catalogue)
{
    CLEANUP_FREE char *hash = mem_format("sha256:%s", catalogue->hash);
    json_object_set_new(result, "_meta", json_pack("{s:s}", MCP_META_CATALOGUE, hash));
    return result;
}

static void make_initialize(const struct catalogue *catalogue, struct mcp_ready *ready)
{
    const struct mcp_revision *revision;
    for (size_t i = 0; (revision = mcp_revision_at(i)); i++) {
        assert(i < MCP_READY_REVISIONS);
        if (revision->era == MCP_LEGACY)
            ready->initialize[i] =
                make_text(with_catalogue_hash(json_pack("{s:s, s:{s:{}}, s:o, s:s}", "protocolVersion", revision->name, "capabilities", "tools",
                                                        "serverInfo", server_info(), "instructions", instructions),
                                              catalogue),
                          MCP_LEGACY);
    }
}

void mcp_ready_make(const struct catalogue *catalogue, struct mcp_ready *ret)
{
    *ret = (struct mcp_ready){0};
    make_initialize(catalogue, ret);
    ret->discover =
        make_text(with_catalogue_hash(with_cache_hints(json_pack("{s:o, s:{s:{}}, s:s}", "supportedVersions", mcp_modern_revisions(), "capabilities",
                                                                 "tools", "instructions", instructions)),
                                      catalogue),
                  MCP_MODERN);
    ret->tools[MCP_LEGACY] = make_text(with_catalogue_hash(json_copy(catalogue->list), catalogue), MCP_LEGACY);
    ret->tools[MCP_MODERN] = make_text(with_catalogue_hash(with_cache_hints(json_copy(catalogue->list)), catalogue), MCP_MODERN);
    CLEANUP_JSON json_t *members = json_object();
    mcp_finish_result(members, MCP_MODERN);
    ret->modern_members = json_to_text(members);
    ret->modern_members[0] = ',';
}

void mcp_ready_clear(struct mcp_ready *ready)
{
    for (size_t i = 0; i < ARRAY_LEN(ready->initialize); i++)
        shared_text_unref(ready->initialize[i]);
    for (size_t i = 0; i < ARRAY_LEN(ready->tools); i++)
        shared_text_unref(ready->tools[i]);
    shared_text_unref(ready->discover);
    free(ready->modern_members);
    *ready = (struct mcp_ready){0};
}
