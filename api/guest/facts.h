// What a scan finds in one source file: the names it declares and what it imports. Bounded in count and
// length.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACTS_MAX_SYMBOLS 5000 // of one file
#define FACTS_MAX_IMPORTS 1000
#define FACTS_MAX_NAME 200
#define FACTS_MAX_IMPORT 300

enum symbol_kind {
    SYMBOL_FUNCTION,
    SYMBOL_CLASS,
    SYMBOL_INTERFACE,
    SYMBOL_ENUM,
    SYMBOL_STRUCT,
    SYMBOL_TRAIT,
    SYMBOL_PROTOCOL,
    SYMBOL_TYPE,
    SYMBOL_VARIABLE,
    SYMBOL_KIND_COUNT
};
extern const char *const symbol_kind_names[SYMBOL_KIND_COUNT];

struct symbol {
    char *name;
    uint32_t line;
    uint8_t kind; // enum symbol_kind
    bool is_exported;
};

struct facts {
    struct symbol *symbols; // in order of lines
    char **imports;         // as written
    uint32_t symbol_count, import_count;
    size_t bytes; // of all names
    bool is_cut;  // there were more
};

void facts_free(struct facts *facts);
void facts_drop_symbols(struct facts *facts);
void facts_add_symbol(struct facts *facts, enum symbol_kind kind, const char *name, size_t len, size_t line,
                      bool is_exported);
void facts_add_import(struct facts *facts, const char *target, size_t len);
// The line has one of the words that make a name public: export, public, pub.
bool facts_is_exported(const char *line, size_t len);
