// The built-in scanner: symbols and imports of a source file by simple patterns, one line at a time, where no
// ctags is there (and imports always). It knows, at the beginning of a line after modifiers such as export,
// async or pub:
//
//   JavaScript, TypeScript   function, class, interface, enum, type; const, let, var at the left edge
//   Python                   def, class
//   Go                       func (methods too), type
//   Rust                     fn, struct, enum, trait
//   Swift                    func, class, struct, enum, protocol
//   Java, C#                 class, interface, enum, struct, record
//   C, C++                   struct, enum, class at the left edge; functions that begin at the left edge,
//   their "{" on
//                            the same line or at the beginning of a later one
//   shell                    name() and function name
//
// It does not parse: what stands in strings or documentation can look like a declaration. A line counts up to
// SCAN_MAX_LINE bytes; block comments that begin a line are skipped. Any bytes are fine.
#pragma once
#include "api/guest/facts.h"
#include "api/guest/file_class.h"

#define SCAN_MAX_LINE 1000

void scan_source(enum language language, const char *text, size_t len, struct facts *to);

// ---- for the scanner's own files
// -----------------------------------------------------------------------------------
struct scan_line {
    const char *at; // not NUL-terminated
    size_t len;     // without line end, at most SCAN_MAX_LINE
    size_t number;  // from 1
};
size_t scan_word_len(const char *at, const char *end); // of the identifier there, 0 if there is none
const char *scan_skip_blanks(const char *at, const char *end);
void scan_import_line(enum language language, const struct scan_line *line, struct facts *to);
struct scan_c { // functions of C and C++ whose "{" is still to come
    const char *name;
    size_t name_len, number, lines;
    bool
        is_after_type; // the line before had a type and nothing else: a name at the left edge is a function's
};
void scan_c_line(struct scan_c *pending, const struct scan_line *line, struct facts *to);
