#include "api/http/microhttpd_library.h"
#include "cli/objects.h"
#include "controller/base/memory.h"
#include <microhttpd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static json_t *libraries(void)
{
    const char *server = microhttpd_load(NULL) == 0 ? MHD_get_version() : "missing";
    return json_pack("{s:s, s:s, s:s}", "sqlite", sqlite3_libversion(), "libmicrohttpd", server, "jansson", jansson_version_str());
}

static int run(struct invocation *in, struct error *err)
{
    (void)err;
    const char *output = invocation_option(in, "output");
    if (!output || strcmp(output, "table") == 0) {
        printf("chat2shell %s\n", CHAT2SHELL_VERSION);
        return 0;
    }
    CLEANUP_JSON json_t *version = json_pack("{s:s, s:s, s:o}", "version", CHAT2SHELL_VERSION, "compiler", __VERSION__, "libraries", libraries());
    object_print(in, version);
    return 0;
}

static const struct option_row options[] = {OPTION_OUTPUT(output_documents, "how to print it")};
const struct command command_version = {.name = "version", .synopsis = "", .summary = "Print the version of this program", .run = run, COMMAND_OPTIONS(options)};
