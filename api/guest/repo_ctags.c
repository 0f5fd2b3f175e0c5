// Symbols by universal-ctags, where the sandbox has it: better than the scanner's. It reads no configuration,
// follows no links, gets the names of files only (each behind "./", or it would take some for options), a
// batch at a time, and ends at a time limit. Where it fails, the scanner's symbols stay.
#include "api/guest/command.h"
#include "api/guest/repo_internal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <ctype.h>
#include <string.h>
#include <sys/mman.h>

#define BATCH_FILES 250
#define BATCH_BYTES (8 * 1024 * 1024) // of source
#define MAX_OUTPUT_BYTES (8 * 1024 * 1024)
#define MAX_BATCH_MS 10000
#define MAX_ALL_MS 20000
#define MAX_FAILURES 3     // batches
#define ANONYMOUS "__anon" // how ctags calls what has no name

struct kind_word {
    const char *word;
    enum symbol_kind kind;
};
static const struct kind_word kind_words[] = {
    {"function", SYMBOL_FUNCTION},   {"func", SYMBOL_FUNCTION},       {"method", SYMBOL_FUNCTION},
    {"generator", SYMBOL_FUNCTION},  {"subroutine", SYMBOL_FUNCTION}, {"class", SYMBOL_CLASS},
    {"interface", SYMBOL_INTERFACE}, {"trait", SYMBOL_TRAIT},         {"protocol", SYMBOL_PROTOCOL},
    {"enum", SYMBOL_ENUM},           {"struct", SYMBOL_STRUCT},       {"union", SYMBOL_STRUCT},
    {"typedef", SYMBOL_TYPE},        {"type", SYMBOL_TYPE},           {"alias", SYMBOL_TYPE},
    {"talias", SYMBOL_TYPE},         {"variable", SYMBOL_VARIABLE},   {"var", SYMBOL_VARIABLE},
    {"constant", SYMBOL_VARIABLE},   {"const", SYMBOL_VARIABLE},
};

struct batch {
    struct repo_file *files[BATCH_FILES]; // sorted as given, which is the order of the answer
    size_t count, bytes, at;              // at: the file of the last tag
    size_t symbols;                       // of all batches
};

static bool find_kind(enum language language, const char *word, const char *pattern, enum symbol_kind *ret)
{
    if (strcmp(word, "macro") == 0)
        word = pattern && strchr(pattern, '(') ? "function" : "constant";
    if (language == LANGUAGE_PYTHON && strcmp(word, "member") == 0)
        word = "method";
    if (language == LANGUAGE_RUST && strcmp(word, "interface") == 0)
        word = "trait";
    for (size_t i = 0; i < ARRAY_LEN(kind_words); i++) {
        if (strcmp(kind_words[i].word, word) == 0) {
            *ret = kind_words[i].kind;
            return true;
        }
    }
    return false;
}

static struct repo_file *find_file(struct batch *batch, const char *path)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct repo_file *file = batch->files[(batch->at + i) % batch->count];
        if (strcmp(file->path, path) == 0) {
            batch->at = (batch->at + i) % batch->count;
            return file;
        }
    }
    return NULL;
}

static void take_tag(struct batch *batch, const json_t *tag)
{
    const char *name = json_get_text(tag, "name"), *path = json_get_text(tag, "path");
    const char *word = json_get_text(tag, "kind"), *pattern = json_get_text(tag, "pattern");
    json_int_t line = json_get_int(tag, "line", 0);
    enum symbol_kind kind;
    if (!name || !*name || strncmp(name, ANONYMOUS, strlen(ANONYMOUS)) == 0 || !path ||
        strncmp(path, "./", 2) != 0 || !word || line < 1 || line > REPO_MAX_FILE_BYTES)
        return;
    struct repo_file *file = find_file(batch, path + 2);
    if (!file || !find_kind(file->class.language, word, pattern, &kind))
        return;
    if (!file->is_by_ctags)
        facts_drop_symbols(&file->facts);
    file->is_by_ctags = true;
    if (batch->symbols >= REPO_MAX_SYMBOLS) {
        file->facts.is_cut = true;
        return;
    }
    batch->symbols++;
    facts_add_symbol(&file->facts, kind, name, strlen(name), (size_t)line,
                     pattern && facts_is_exported(pattern, strlen(pattern)));
}

static int by_line(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return x->line != y->line ? (x->line < y->line ? -1 : 1) : strcmp(x->name, y->name);
}

static void take_tags(struct batch *batch, const struct command_result *result)
{
    const char *end = result->out.data + result->out.len;
    for (const char *line = result->out.data, *stop; (stop = memchr(line, '\n', (size_t)(end - line)));
         line = stop + 1) {
        CLEANUP_JSON json_t *tag = NULL;
        if (json_parse(line, (size_t)(stop - line), &tag, NULL) == 0)
            take_tag(batch, tag);
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct facts *facts = &batch->files[i]->facts;
        if (batch->files[i]->is_by_ctags)
            qsort(facts->symbols, facts->symbol_count, sizeof(struct symbol), by_line);
    }
}

static int open_names(const struct batch *batch)
{
    CLEANUP_CLOSE int fd = memfd_create("names", MFD_CLOEXEC);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(BATCH_FILES * 4100);
    for (size_t i = 0; i < batch->count; i++)
        buffer_format(&text, "./%s\n", batch->files[i]->path);
    if (fd < 0 || fs_write_all(fd, buffer_text(&text), text.len, NULL) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    return TAKE_FD(fd);
}

// 0, 1 if there is no ctags here, -1 with err.
static int run_batch(struct tool_call *call, struct batch *batch, struct error *err)
{
    static const char *const argv[] = {"ctags",
                                       "--options=NONE",
                                       "--quiet=yes",
                                       "--links=no",
                                       "--sort=no",
                                       "--output-format=json",
                                       "--fields=NFPKn",

                                       "-f",
                                       "-",
                                       "-L",
                                       "-",
                                       NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    CLEANUP_CLOSE int names = open_names(batch);
    struct command_spec spec = {.argv = argv,
                                .max_bytes = MAX_OUTPUT_BYTES,
                                .is_ended_when_full = true,
                                .cwd_fd = call->workspace->root_fd,
                                .stdin_fd = names,
                                .time_limit_ms = MAX_BATCH_MS,
                                .is_cancelled = call->is_cancelled};
    if (names < 0)
        return error_set(err, ERROR_IO, NULL, "cannot hand the names over");
    if (command_run_spec(call->guest, &spec, &result, err) < 0)
        return -1;
    if (result.is_missing)
        return 1;
    if (result.is_cut)
        return error_set(err, ERROR_TOO_LARGE, NULL, "it printed more than %d bytes", MAX_OUTPUT_BYTES);
    if (result.exit_code != 0)
        return error_set(err, ERROR_UNAVAILABLE, NULL, "exit status %d: %.200s", result.exit_code,
                         result.errors.data);
    take_tags(batch, &result);
    return 0;
}

// Its list is read by lines and trailing blanks are cut.
static bool has_plain_name(const char *path)
{
    size_t len = strlen(path);
    return !strpbrk(path, "\n\r") && len && !isspace((unsigned char)path[len - 1]);
}

static size_t fill_batch(struct repo *repo, size_t from, struct batch *batch)
{
    *batch = (struct batch){.symbols = batch->symbols};
    for (; from < repo->count && batch->count < BATCH_FILES && batch->bytes < BATCH_BYTES; from++) {
        struct repo_file *file = &repo->files[from];
        if (!file->has_facts || file->was_given_to_ctags || !has_plain_name(file->path))
            continue;
        batch->files[batch->count++] = file;
        batch->bytes += (size_t)file->size;
    }
    return from;
}

// One line for all that failed, with the words of the last.
static void warn_failed(struct repo *repo, size_t files, const struct error *err)
{
    if (files)
        repo_warn(repo, "ctags failed on %zu files, whose symbols are the built-in scanner's: %.300s", files,
                  err->message);
}

void repo_run_ctags(struct tool_call *call, struct repo *repo)
{
    struct batch batch = {0};
    struct error err = ERROR_INIT;
    size_t failed_files = 0;
    int failures = 0;
    int64_t deadline = boot_time_now().ms + MAX_ALL_MS;
    for (size_t from = fill_batch(repo, 0, &batch); batch.count; from = fill_batch(repo, from, &batch)) {
        if (failures == MAX_FAILURES || boot_time_now().ms >= deadline) {
            repo_warn(
                repo,
                "ctags was stopped at its limit: other files' symbols are the built-in scanner's; ask again");
            break;
        }
        int result = run_batch(call, &batch, &err);
        if (result > 0 || atomic_load(call->is_cancelled))
            return;
        failures += result < 0;
        failed_files += result < 0 ? batch.count : 0;
        for (size_t i = 0; i < batch.count; i++)
            batch.files[i]->was_given_to_ctags = true; // a batch that fails is not tried again
    }
    warn_failed(repo, failed_files, &err);
}
