// Scope-bound ownership: a local declared with one of these attributes is released when its scope ends,
// whichever way it ends. Ownership leaves a scope only through TAKE_PTR or TAKE_FD, so every move is visible.
//
//     CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
//     if (fd < 0) return error_errno(err, errno, NULL, "cannot open %s", path);
//     *ret_fd = TAKE_FD(fd);
#pragma once
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define CLEANUP_FREE CLEANUP(cleanup_free)
#define CLEANUP_SECRET CLEANUP(cleanup_secret) // a text that is wiped first
#define CLEANUP_CLOSE CLEANUP(cleanup_close)

// Moves a pointer out of its variable: the variable becomes NULL, the value is the caller's.
#define TAKE_PTR(ptr)                                                                                        \
    ({                                                                                                       \
        __auto_type take_ptr_at_ = &(ptr);                                                                   \
        __auto_type take_ptr_value_ = *take_ptr_at_;                                                         \
        *take_ptr_at_ = NULL;                                                                                \
        take_ptr_value_;                                                                                     \
    })
// Moves a descriptor out of its variable: the variable becomes -1.
#define TAKE_FD(fd)                                                                                          \
    ({                                                                                                       \
        int *take_fd_at_ = &(fd);                                                                            \
        int take_fd_value_ = *take_fd_at_;                                                                   \
        *take_fd_at_ = -1;                                                                                   \
        take_fd_value_;                                                                                      \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void cleanup_free(void *at)
{
    free(*(void **)at);
}

static inline void cleanup_secret(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
