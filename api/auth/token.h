// A static bearer token: "c2s_", 52 random characters (260 bits) and 7 of a checksum, of the alphabet a–z 2–7, so that
// scanners for leaked secrets find it (c2s_[a-z2-7]{59}) and can tell it from a look-alike without asking anybody.
//
// Kept is the SHA-256 of the whole. No salt and no slow hash is needed: those protect secrets that can be guessed, and
// nobody guesses 260 random bits, whatever the hash costs; a slow one would only make every request slow.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define TOKEN_PREFIX "c2s_"
#define TOKEN_LEN 63
#define TOKEN_DIGEST_BYTES 32
#define TOKEN_DIGEST_HEX_SIZE (2 * TOKEN_DIGEST_BYTES + 1)

void token_make(char text[TOKEN_LEN + 1]);
bool token_is_formed(const char *text); // prefix, length, alphabet, checksum
void token_digest(const char *text, size_t len, unsigned char ret[TOKEN_DIGEST_BYTES]);
void token_digest_format(const unsigned char digest[TOKEN_DIGEST_BYTES], char text[TOKEN_DIGEST_HEX_SIZE]);
int token_digest_parse(const char *text, unsigned char ret[TOKEN_DIGEST_BYTES]); // -1: not 64 lower-case hex digits
// Takes the same time wherever they differ.
bool token_digest_is_equal(const unsigned char a[TOKEN_DIGEST_BYTES], const unsigned char b[TOKEN_DIGEST_BYTES]);
