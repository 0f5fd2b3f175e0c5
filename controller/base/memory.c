#include "controller/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void out_of_memory(void)
{
    static const char text[] = "chat2shell: out of memory; the process ends and its store recovers at restart\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    abort();
}

static void *checked(void *ptr)
{
    if (!ptr)
        out_of_memory();
    return ptr;
}

void *mem_alloc(size_t size_bytes)
{
    return checked(calloc(1, size_bytes ? size_bytes : 1));
}

void *mem_realloc(void *ptr, size_t size_bytes)
{
    return checked(realloc(ptr, size_bytes ? size_bytes : 1));
}

void *mem_realloc_array(void *ptr, size_t count, size_t size_bytes)
{
    return checked(reallocarray(ptr, count ? count : 1, size_bytes ? size_bytes : 1));
}

char *mem_strdup(const char *text)
{
    return checked(strdup(text));
}

char *mem_strdup_or_null(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

char *mem_strndup(const char *text, size_t len)
{
    return checked(strndup(text, len));
}

char *mem_vformat(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        out_of_memory();
    return text;
}

char *mem_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = mem_vformat(format, args);
    va_end(args);
    return text;
}

void mem_replace(char **at, const char *text)
{
    char *copy = mem_strdup_or_null(text); // before the free: text may lie inside *at
    free(*at);
    *at = copy;
}
