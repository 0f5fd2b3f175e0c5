#include "api/guest/facts.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const symbol_kind_names[SYMBOL_KIND_COUNT] = {
    "function", "class", "interface", "enum", "struct", "trait", "protocol", "type", "variable"};

void facts_drop_symbols(struct facts *facts)
{
    for (uint32_t i = 0; i < facts->symbol_count; i++) {
        facts->bytes -= strlen(facts->symbols[i].name);
        free(facts->symbols[i].name);
    }
    free(facts->symbols);
    facts->symbols = NULL;
    facts->symbol_count = 0;
}

void facts_free(struct facts *facts)
{
    facts_drop_symbols(facts);
    for (uint32_t i = 0; i < facts->import_count; i++)
        free(facts->imports[i]);
    free(facts->imports);
    *facts = (struct facts){0};
}

// Room for one more in an array that doubles.
static void *grow(void *array, uint32_t count, size_t size)
{
    bool is_full = (count & (count - 1)) == 0; // 0, 1, 2, 4, …
    return is_full ? mem_realloc_array(array, count ? 2 * (size_t)count : 1, size) : array;
}

void facts_add_symbol(struct facts *facts, enum symbol_kind kind, const char *name, size_t len, size_t line,
                      bool is_exported)
{
    if (facts->symbol_count == FACTS_MAX_SYMBOLS || len > FACTS_MAX_NAME) {
        facts->is_cut = true;
        return;
    }
    facts->symbols = grow(facts->symbols, facts->symbol_count, sizeof(struct symbol));
    facts->symbols[facts->symbol_count++] =
        (struct symbol){mem_strndup(name, len), (uint32_t)line, (uint8_t)kind, is_exported};
    facts->bytes += len;
}

void facts_add_import(struct facts *facts, const char *target, size_t len)
{
    if (!len)
        return;
    if (facts->import_count == FACTS_MAX_IMPORTS || len > FACTS_MAX_IMPORT) {
        facts->is_cut = true;
        return;
    }
    facts->imports = grow(facts->imports, facts->import_count, sizeof(char *));
    facts->imports[facts->import_count++] = mem_strndup(target, len);
    facts->bytes += len;
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool has_word(const char *line, size_t len, const char *word)
{
    size_t word_len = strlen(word);
    const char *end = line + len;
    for (const char *at = line; (at = memmem(at, (size_t)(end - at), word, word_len)); at += word_len)
        if ((at == line || !is_word_char(at[-1])) && (at + word_len == end || !is_word_char(at[word_len])))
            return true;
    return false;
}

bool facts_is_exported(const char *line, size_t len)
{
    static const char *const words[] = {"export", "public", "pub"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (has_word(line, len, words[i]))
            return true;
    return false;
}
