// Allocation that cannot fail: out of memory aborts the process in one place. The store recovers the
// controller after a restart, so a half-handled allocation failure would only add untested paths.
#pragma once
#include <stdarg.h>
#include <stddef.h>

void *mem_alloc(size_t size_bytes) __attribute__((malloc, returns_nonnull)); // zero-filled
void *mem_realloc(void *ptr, size_t size_bytes) __attribute__((returns_nonnull));
// Like reallocarray: aborts on overflow of count * size_bytes.
void *mem_realloc_array(void *ptr, size_t count, size_t size_bytes) __attribute__((returns_nonnull));
char *mem_strdup(const char *text) __attribute__((malloc, returns_nonnull));
char *mem_strdup_or_null(const char *text); // NULL stays NULL
char *mem_strndup(const char *text, size_t len) __attribute__((malloc, returns_nonnull));
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2), malloc, returns_nonnull));
char *mem_vformat(const char *format, va_list args) __attribute__((malloc, returns_nonnull));
// Frees *at and puts a copy of text (or NULL) there.
void mem_replace(char **at, const char *text);
