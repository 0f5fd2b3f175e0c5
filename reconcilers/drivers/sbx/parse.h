// Reading what sbx prints. None of its JSON is promised: unknown keys and values are ignored, missing ones have a fallback, and
// banners and notices around the JSON are skipped. Pure functions, any thread.
#pragma once
#include "controller/base/json.h"
#include <stddef.h>

struct version {
    int major, minor, patch;
};
#define VERSION_TEXT_SIZE 40
int sbx_version_parse(const char *text, struct version *ret, const char **ret_rest); // the first vN.N.N, else N.N.N
int sbx_version_compare(const struct version *a, const struct version *b);
void sbx_version_format(const struct version *version, char text[VERSION_TEXT_SIZE]);

// The first whole JSON object or array in the text. ERROR_INVALID if there is none.
int sbx_json_find(const char *text, size_t len, json_t **ret, struct error *err);

struct sandbox_row {
    char *name;
    char *status; // "running", "stopped", or a word that nobody documents
};
struct sandbox_row_list {
    struct sandbox_row *items;
    size_t count;
};
int sbx_sandbox_rows_read(const json_t *from, struct sandbox_row_list *ret, struct error *err);
const struct sandbox_row *sbx_sandbox_row_find(const struct sandbox_row_list *list, const char *name);
void sbx_sandbox_rows_free(struct sandbox_row_list *list);

struct port_row {
    char host_ip[64];
    int host_port, sandbox_port;
};
#define PORT_ROWS_MAX 256
struct port_row_list {
    struct port_row items[PORT_ROWS_MAX];
    size_t count;
};
int sbx_port_rows_read(const json_t *from, struct port_row_list *ret, struct error *err); // TCP only
bool sbx_port_row_is_loopback(const struct port_row *row);

// Does an active rule deny `host` to that sandbox?
bool sbx_policy_denies(const json_t *from, const char *name, const char *host);

// Is that template (NAME:TAG) among {"images":[{"repository","tag"}…]}? docker.io/library/ may stand before its name, no other
// registry.
bool sbx_images_have(const json_t *from, const char *name);
