// The map of the repository: its text files, what they declare and how they refer to each other. Built on
// demand and kept in memory: a file is read again only when its size or its times changed. Everything is
// bounded; what the bounds left out is said in `warnings`.
//
//     CLEANUP_REPO const struct repo *repo = NULL;
//     if (repo_get(call, &repo, err) < 0) return -1;       others wait until it is released
#pragma once
#include "api/guest/facts.h"
#include "api/guest/file_class.h"
#include "api/guest/tool.h"

#define REPO_MAX_FILES 20000
#define REPO_MAX_ANALYZED 5000
#define REPO_MAX_SCANNED_BYTES (64 * 1024 * 1024)
#define REPO_MAX_FILE_BYTES 720000
#define REPO_MAX_SYMBOLS 100000
#define REPO_MAX_RELATIONS 250000
#define REPO_MAX_WARNINGS 12
#define REPO_KEY_SIZE 72

struct repo_file {
    char *path; // relative to the root
    int64_t size, mtime_ns, ctime_ns;
    struct file_class class;
    bool is_text;
    bool has_facts; // it was analyzed
    bool is_by_ctags, was_given_to_ctags;
    struct facts facts;
};

struct repo_relation {
    uint32_t from, to; // places in files
    bool is_test;      // `from` is a test
};

struct repo {
    struct repo_file *files; // text files, sorted by path as collate_names has it
    size_t count;
    struct repo_relation *relations; // sorted by from
    size_t relation_count;
    size_t analyzed, scanned_bytes, symbol_count;
    bool is_truncated; // something was left out by a bound
    bool is_hit;       // nothing had to be read again
    bool is_by_ctags;
    char key[REPO_KEY_SIZE];
    char *warnings[REPO_MAX_WARNINGS];
    size_t warning_count;
};

int repo_get(struct tool_call *call, const struct repo **ret, struct error *err);
void repo_release(const struct repo **repo);
#define CLEANUP_REPO CLEANUP(repo_release)
// Loop thread, never waits: gives the memory back if nobody asked for idle_ms. True while there is a map.
bool repo_drop_if_unused(int64_t idle_ms);
const struct repo_file *repo_find(const struct repo *repo, const char *path); // NULL if it is not there
// {inventoryFiles, …, truncated, warnings} and {hit, key} as the tools show them, and their fields.
json_t *repo_coverage(const struct repo *repo);
json_t *repo_cache(const struct repo *repo);
const char *repo_symbol_source(const struct repo_file *file); // who found its symbols
extern const struct tool_field repo_coverage_fields[], repo_cache_fields[];
