// UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once
#include <stdbool.h>
#include <stddef.h>

bool utf8_is_valid(const char *bytes, size_t len);
// The largest n <= len such that bytes[0..n) does not end inside a character that could still become valid.
// Bytes that are simply wrong are not held back. Used to cut text and to hold back an incomplete tail.
size_t utf8_cut(const char *bytes, size_t len);
// Length of the valid character at bytes (1–4), or 0 if there is none; then *ret_bad (NULL allowed) is the
// length of the maximal bad piece (>= 1), the unit that one U+FFFD replaces (Unicode 3.9, "best practice").
size_t utf8_char_len(const char *bytes, size_t len, size_t *ret_bad);
// A new NUL-terminated string with each maximal bad piece replaced by U+FFFD. NUL bytes are kept and counted
// in *ret_len. Owned by the caller.
char *utf8_to_valid(const char *bytes, size_t len, size_t *ret_len);
// Text for a person's terminal: control characters, DEL, C1, BiDi controls and zero-width characters become
// \u00XX escapes (tab and newline too unless keep_newlines). Owned by the caller.
char *utf8_to_printable(const char *bytes, size_t len, bool keep_newlines);
// How many of the `have` bytes of a longer text go out as one piece when `limit` is the aim: no character is split, but where
// nothing follows (is_final) and no whole one is left. Below one character's length the limit gives way, so that every piece makes
// progress. 0: wait for more.
size_t utf8_cut_piece(const char *bytes, size_t have, size_t limit, bool is_final);
