#include "controller/base/error.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct error_meaning meanings[ERROR_CODE_COUNT] = {
    [ERROR_NONE] = {"None", 200, "", 0},
    [ERROR_INVALID] = {"Invalid", 422, "Invalid", 2},
    [ERROR_USAGE] = {"Usage", 400, "BadRequest", 2},
    [ERROR_NOT_FOUND] = {"NotFound", 404, "NotFound", 3},
    [ERROR_EXISTS] = {"AlreadyExists", 409, "AlreadyExists", 4},
    [ERROR_CONFLICT] = {"Conflict", 409, "Conflict", 4},
    [ERROR_REFUSED] = {"Refused", 403, "Forbidden", 5},
    [ERROR_STATE] = {"WrongState", 409, "Conflict", 5},
    [ERROR_TOO_LARGE] = {"TooLarge", 413, "RequestEntityTooLarge", 1},
    [ERROR_LIMIT] = {"LimitReached", 429, "TooManyRequests", 1},
    [ERROR_TIMEOUT] = {"Timeout", 504, "Timeout", 6},
    [ERROR_UNAVAILABLE] = {"Unavailable", 503, "ServiceUnavailable", 1},
    [ERROR_CANCELLED] = {"Cancelled", 503, "ServiceUnavailable", 1},
    [ERROR_EXPIRED] = {"Expired", 410, "Expired", 1},
    [ERROR_UNSUPPORTED] = {"Unsupported", 501, "NotImplemented", 1},
    [ERROR_DISK] = {"DiskPressure", 507, "InsufficientStorage", 1},
    [ERROR_CORRUPT] = {"Corrupt", 500, "InternalError", 1},
    [ERROR_IO] = {"InputOutput", 500, "InternalError", 1},
    [ERROR_UNREACHABLE] = {"Unreachable", 503, "ServiceUnavailable", 7},
    [ERROR_INTERNAL] = {"Internal", 500, "InternalError", 1},
};

const struct error_meaning *error_meaning(enum error_code code)
{
    assert(code >= 0 && code < ERROR_CODE_COUNT);
    return &meanings[code];
}

static void put_text(char *to, size_t size, const char *format, va_list args)
{
    vsnprintf(to, size, format, args);
    to[utf8_cut(to, strlen(to))] = '\0';
}

static void put_hint(struct error *err, const char *hint)
{
    snprintf(err->hint, sizeof(err->hint), "%s", hint ? hint : "");
    err->hint[utf8_cut(err->hint, strlen(err->hint))] = '\0';
}

int error_set(struct error *err, enum error_code code, const char *hint, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    char message[sizeof(err->message)]; // arguments may point into err itself
    put_text(message, sizeof(message), format, args);
    va_end(args);
    put_hint(err, hint);
    err->code = code;
    memcpy(err->message, message, sizeof(message));
    return -1;
}

static enum error_code code_of_errno(int errno_value)
{
    static const struct {
        int errno_value;
        enum error_code code;
    } table[] = {
        {ENOENT, ERROR_NOT_FOUND},  {ESRCH, ERROR_NOT_FOUND},    {EEXIST, ERROR_EXISTS},
        {ENOSPC, ERROR_DISK},       {EDQUOT, ERROR_DISK},        {ETIMEDOUT, ERROR_TIMEOUT},
        {EACCES, ERROR_REFUSED},    {EPERM, ERROR_REFUSED},      {ENOSYS, ERROR_UNSUPPORTED},
        {EFBIG, ERROR_TOO_LARGE},   {ECANCELED, ERROR_CANCELLED}, {ECONNREFUSED, ERROR_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].errno_value == errno_value)
            return table[i].code;
    return ERROR_IO;
}

int error_errno(struct error *err, int errno_value, const char *hint, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    char message[sizeof(err->message)];
    put_text(message, sizeof(message), format, args);
    va_end(args);
    return error_set(err, code_of_errno(errno_value), hint, "%s: %s", message, strerrordesc_np(errno_value) ?: "unknown error");
}

int error_context(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    char context[sizeof(err->message)];
    put_text(context, sizeof(context), format, args);
    va_end(args);
    CLEANUP_FREE char *joined = mem_format("%s: %s", context, err->message);
    size_t keep = strnlen(joined, sizeof(err->message) - 1);
    keep = utf8_cut(joined, keep);
    memcpy(err->message, joined, keep);
    err->message[keep] = '\0';
    return -1;
}

int error_hint(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    char hint[sizeof(err->hint)];
    put_text(hint, sizeof(hint), format, args);
    va_end(args);
    put_hint(err, hint);
    return -1;
}

int error_copy(struct error *err, const struct error *from)
{
    if (err && err != from)
        *err = *from;
    return -1;
}
