#include "api/guest/change_risks.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MAX_WORDS 12

const struct tool_field change_risk_fields[] = {
    {"id", FIELD_STRING},     {"label", FIELD_STRING},    {"confidence", FIELD_STRING},
    {"paths", FIELD_STRINGS}, {"reasons", FIELD_STRINGS}, {NULL},
};

static const struct {
    const char *id, *label, *words[MAX_WORDS];
} risks[] = {
    {"authentication",
     "Authentication or sessions",
     {"auth", "authentication", "authorization", "session", "token", "oauth", "login"}},
    {"migration", "Database schema or migration", {"migration", "schema", "prisma", "drizzle"}},
    {"storage", "Stored data", {"database", "storage", "repository", "model"}},
    {"build", "Build or dependencies", {"package.json", "lock", "build", "webpack", "vite", "tsconfig"}},
    {"configuration", "Configuration", {"config", "settings", "setting", "yaml", "yml", "toml"}},
    {"public-api", "Interface that others use", {"api", "public", "export", "route", "router"}},
};

// A word begins behind what is no letter, or where a capital follows a small letter.
static bool begins_at(const char *path, const char *at)
{
    return at == path || !isalpha((unsigned char)at[-1]) ||
           (isupper((unsigned char)at[0]) && islower((unsigned char)at[-1]));
}

static bool ends_at(const char *at)
{
    return !isalpha((unsigned char)at[0]) ||
           (isupper((unsigned char)at[0]) && islower((unsigned char)at[-1]));
}

static bool has_word(const char *path, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = path; *at; at++) {
        if (strncasecmp(at, word, len) != 0 || !begins_at(path, at))
            continue;
        if (ends_at(at + len) || ((at[len] == 's' || at[len] == 'S') && ends_at(at + len + 1)))
            return true;
    }
    return false;
}

static const char *word_in(const char *path, const char *const *words)
{
    for (size_t i = 0; i < MAX_WORDS && words[i]; i++)
        if (has_word(path, words[i]))
            return words[i];
    return NULL;
}

json_t *change_risks_of(const json_t *paths)
{
    json_t *list = json_array(), *path;
    for (size_t i = 0; i < ARRAY_LEN(risks); i++) {
        json_t *hit_paths = json_array(), *reasons = json_array();
        size_t k;
        json_array_foreach(paths, k, path)
        {
            const char *word = word_in(json_string_value(path), risks[i].words);
            if (!word)
                continue;
            CLEANUP_FREE char *reason = mem_format("\"%s\" in %s", word, json_string_value(path));
            json_array_append(hit_paths, path);
            json_array_append_new(reasons, json_from_text(reason));
        }
        if (json_array_size(hit_paths))
            json_array_append_new(list, json_pack("{s:s s:s s:s s:O s:O}", "id", risks[i].id, "label",
                                                  risks[i].label, "confidence", "medium", "paths", hit_paths,
                                                  "reasons", reasons));
        json_decref(hit_paths);
        json_decref(reasons);
    }
    return list;
}
