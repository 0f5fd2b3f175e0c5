// server_config: what the server is set to.
#include "api/guest/blocked.h"
#include "api/guest/guest.h"
#include "api/guest/text.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include <string.h>

static const struct tool_field limits[] = {
    {"maxInventoryFiles", FIELD_INTEGER}, {"maxAnalyzedFiles", FIELD_INTEGER},
    {"maxScannedBytes", FIELD_INTEGER},   {"maxSymbols", FIELD_INTEGER},
    {"maxRelationships", FIELD_INTEGER},  {NULL},
};

static const struct tool_field fields[] = {
    {"defaultRoot", FIELD_STRING},
    {"allowedRoots", FIELD_STRINGS},
    {"host", FIELD_STRING},
    {"port", FIELD_INTEGER},
    {"widgetDomain", FIELD_STRING},
    {"authEnabled", FIELD_BOOLEAN},
    {"bashMode", FIELD_STRING},
    {"bashTranscript", FIELD_STRING},
    {"bashSessionId", FIELD_STRING, .is_nullable = true},
    {"requireBashSession", FIELD_BOOLEAN},
    {"codexSessions", FIELD_STRING},
    {"codexDir", FIELD_STRING},
    {"writeMode", FIELD_STRING},
    {"toolMode", FIELD_STRING},
    {"toolCards", FIELD_BOOLEAN},
    {"connectionTest", FIELD_BOOLEAN},
    {"analysisEnabled", FIELD_BOOLEAN},
    {"analysisLimits", FIELD_OBJECT, .fields = limits},
    {"inheritEnv", FIELD_BOOLEAN},
    {"contextDir", FIELD_STRING},
    {"maxReadBytes", FIELD_INTEGER},
    {"maxWriteBytes", FIELD_INTEGER},
    {"maxImportBytes", FIELD_INTEGER},
    {"maxOutputBytes", FIELD_INTEGER},
    {"maxSearchResults", FIELD_INTEGER},
    {"blockedGlobs", FIELD_STRINGS},
    {"registeredTools", FIELD_STRINGS},
    {"registeredToolCount", FIELD_INTEGER},
    {NULL},
};

// What never varies in this server. It speaks over stdio only, hence no host, port or token.
static const char fixed[] = "{\"host\":\"\",\"port\":0,\"widgetDomain\":\"\",\"authEnabled\":false,"
                            "\"bashMode\":\"full\",\"bashTranscript\":\"compact\","
                            "\"bashSessionId\":null,\"requireBashSession\":false,\"codexSessions\":\"off\","
                            "\"codexDir\":\"\",\"writeMode\":\"workspace\","
                            "\"toolMode\":\"standard\",\"toolCards\":false,\"connectionTest\":false,"
                            "\"analysisEnabled\":true,\"analysisLimits\":{"
                            "\"maxInventoryFiles\":20000,\"maxAnalyzedFiles\":5000,\"maxScannedBytes\":"
                            "67108864,\"maxSymbols\":100000,"
                            "\"maxRelationships\":250000},\"inheritEnv\":false,\"contextDir\":\".ai-bridge\","
                            "\"maxImportBytes\":5000000,"
                            "\"maxOutputBytes\":120000,\"maxSearchResults\":200}";

static json_t *list_of(const char *const *texts)
{
    json_t *list = json_array();
    for (size_t i = 0; texts[i]; i++)
        json_array_append_new(list, json_string(texts[i]));
    return list;
}

static json_t *tool_names(void)
{
    json_t *list = json_array();
    for (size_t i = 0; guest_tools[i]; i++)
        json_array_append_new(list, json_string(guest_tools[i]->name));
    return list;
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP_JSON json_t *values = NULL;
    if (json_parse(fixed, strlen(fixed), &values, err) < 0)
        return -1;
    json_t *to = call->structured, *names = tool_names();
    const char *roots[] = {call->workspace->root, NULL};
    json_set_text(to, "defaultRoot", call->workspace->root);
    json_object_set_new(to, "allowedRoots", list_of(roots));
    json_object_update(to, values);
    json_object_set_new(to, "maxReadBytes", json_integer(TEXT_MAX_READ_BYTES));
    json_object_set_new(to, "maxWriteBytes", json_integer(TEXT_MAX_WRITE_BYTES));
    json_object_set_new(to, "blockedGlobs", list_of(blocked_globs));
    json_object_set_new(to, "registeredToolCount", json_integer((json_int_t)json_array_size(names)));
    json_object_set_new(to, "registeredTools", names);
    CLEANUP_FREE char *pretty = json_to_pretty_text(to);
    call->text = mem_format("# Server configuration\n\n%s", pretty);
    call->text_len = strlen(call->text);
    return 0;
}

const struct tool guest_tool_server_config = {
    .name = "server_config",
    .title = "Server configuration",
    .description = "Show the tool server's workspace root, modes, limits, blocked paths and tools.",
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .has_no_workspace = true,
    .run = run,
};
