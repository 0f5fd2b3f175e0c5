#include "api/guest/repo_internal.h"
#include "api/guest/collate.h"
#include "api/guest/text.h"
#include "api/guest/workspace.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <pthread.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct tool_field repo_coverage_fields[] = {
    {"inventoryFiles", FIELD_INTEGER},    {"analyzedFiles", FIELD_INTEGER},
    {"scannedBytes", FIELD_INTEGER},      {"symbolCount", FIELD_INTEGER},
    {"relationshipCount", FIELD_INTEGER}, {"truncated", FIELD_BOOLEAN},
    {"warnings", FIELD_STRINGS},          {NULL},
};
const struct tool_field repo_cache_fields[] = {{"hit", FIELD_BOOLEAN}, {"key", FIELD_STRING}, {NULL}};

// One workspace a process, hence one map. `kept` also has the binary files, behind the first `count`: they
// need not be looked into again.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct repo kept;
static size_t kept_total; // files, binary ones included
static int64_t used_ms;   // boot time of the last use

void repo_warn(struct repo *repo, const char *format, ...)
{
    if (repo->warning_count == REPO_MAX_WARNINGS)
        return;
    va_list args;
    va_start(args, format);
    repo->warnings[repo->warning_count++] = mem_vformat(format, args);
    va_end(args);
}

void repo_file_free(struct repo_file *file)
{
    free(file->path);
    facts_free(&file->facts);
    *file = (struct repo_file){0};
}

static void free_repo(struct repo *repo, size_t total)
{
    for (size_t i = 0; i < total; i++)
        repo_file_free(&repo->files[i]);
    free(repo->files);
    free(repo->relations);
    for (size_t i = 0; i < repo->warning_count; i++)
        free(repo->warnings[i]);
    *repo = (struct repo){0};
}

static int by_text_and_path(const void *a, const void *b)
{
    const struct repo_file *x = a, *y = b;
    if (x->is_text != y->is_text)
        return x->is_text ? -1 : 1;
    return collate_names(x->path, y->path);
}

static void set_key(const struct workspace *workspace, struct repo *repo, size_t total)
{
    SHA2_CTX context;
    char digest[SHA256_DIGEST_STRING_LENGTH];
    SHA256Init(&context);
    for (size_t i = 0; i < total; i++) {
        const struct repo_file *file = &repo->files[i];
        const int64_t numbers[] = {file->size, file->mtime_ns, file->ctime_ns};
        SHA256Update(&context, (const uint8_t *)file->path, strlen(file->path) + 1);
        SHA256Update(&context, (const uint8_t *)numbers, sizeof(numbers));
    }
    SHA256End(&context, digest);
    snprintf(repo->key, sizeof(repo->key), "%s:%.24s", workspace->id, digest);
}

static void keep_symbols_within_bound(struct repo *repo, struct repo_file *file)
{
    size_t room = REPO_MAX_SYMBOLS - repo->symbol_count;
    if (file->facts.symbol_count <= room)
        return;
    while (file->facts.symbol_count > room)
        free(file->facts.symbols[--file->facts.symbol_count].name);
    file->facts.is_cut = true;
}

static void count(struct repo *repo, size_t total)
{
    size_t cut = 0;
    repo->count = repo->symbol_count = 0;
    while (repo->count < total && repo->files[repo->count].is_text)
        repo->count++;
    for (size_t i = 0; i < repo->count; i++) {
        struct repo_file *file = &repo->files[i];
        keep_symbols_within_bound(repo, file);
        repo->symbol_count += file->facts.symbol_count;
        repo->is_by_ctags |= file->is_by_ctags;
        cut += file->facts.is_cut;
    }
    repo->is_truncated |= cut > 0;
    if (cut)
        repo_warn(repo,
                  "of %zu files not all symbols and imports were kept: the limits are %d and %d a file, %d "
                  "symbols in all",
                  cut, FACTS_MAX_SYMBOLS, FACTS_MAX_IMPORTS, REPO_MAX_SYMBOLS);
}

// Called with the lock. The old map's `count` is its total while the walk takes from it.
static void refresh(struct tool_call *call)
{
    struct repo fresh = {0};
    size_t reads = 0;
    kept.count = kept_total;
    repo_walk(call, &kept, &fresh, &reads);
    size_t total = fresh.count;
    repo_run_ctags(call, &fresh);
    if (total)
        qsort(fresh.files, total, sizeof(struct repo_file), by_text_and_path);
    count(&fresh, total);
    set_key(call->workspace, &fresh, total);
    repo_relate(&fresh);
    fresh.is_hit = reads == 0 && strcmp(fresh.key, kept.key) == 0;
    free_repo(&kept, kept_total);
    kept = fresh;
    kept_total = total;
}

int repo_get(struct tool_call *call, const struct repo **ret, struct error *err)
{
    pthread_mutex_lock(&lock);
    refresh(call);
    if (atomic_load(call->is_cancelled)) {
        pthread_mutex_unlock(&lock);
        return error_set(err, ERROR_CANCELLED, NULL, "the request was cancelled");
    }
    *ret = &kept;
    return 0;
}

void repo_release(const struct repo **repo)
{
    if (*repo) {
        used_ms = boot_time_now().ms;
        pthread_mutex_unlock(&lock);
    }
    *repo = NULL;
}

bool repo_drop_if_unused(int64_t idle_ms)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return true; // somebody uses it
    if (kept_total && boot_time_now().ms - used_ms >= idle_ms) {
        free_repo(&kept, kept_total);
        kept_total = 0;
    }
    bool is_there = kept_total > 0;
    pthread_mutex_unlock(&lock);
    return is_there;
}

static int by_path(const void *key, const void *at)
{
    return collate_names(key, ((const struct repo_file *)at)->path);
}

const struct repo_file *repo_find(const struct repo *repo, const char *path)
{
    return repo->count ? bsearch(path, repo->files, repo->count, sizeof(struct repo_file), by_path) : NULL;
}

json_t *repo_coverage(const struct repo *repo)
{
    json_t *warnings = json_array();
    for (size_t i = 0; i < repo->warning_count; i++)
        json_array_append_new(warnings, json_from_text(repo->warnings[i]));
    return json_pack("{s:I s:I s:I s:I s:I s:b s:o}", "inventoryFiles", (json_int_t)repo->count,
                     "analyzedFiles", (json_int_t)repo->analyzed, "scannedBytes",
                     (json_int_t)repo->scanned_bytes, "symbolCount", (json_int_t)repo->symbol_count,
                     "relationshipCount", (json_int_t)repo->relation_count, "truncated", repo->is_truncated,
                     "warnings", warnings);
}

json_t *repo_cache(const struct repo *repo)
{
    return json_pack("{s:b s:s}", "hit", repo->is_hit, "key", repo->key);
}

const char *repo_symbol_source(const struct repo_file *file)
{
    return file->is_by_ctags ? "universal-ctags" : "built-in scanner";
}
