// chat2shell-egress: the one way out of a sandbox (controller/base/egress_protocol.h).
#include "reconcilers/egress/egress.h"
#include <stdio.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
// Leak detection needs ptrace, which the lock-down rules out. The unit tests look for leaks.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

// With write(2) alone: after the lock-down stdio could not even ask what stderr is.
static int report(const struct error *err)
{
    char text[sizeof(err->message) + sizeof(err->hint) + 32];
    int len = snprintf(text, sizeof(text), "chat2shell-egress: %s%s%s\n", err->message, err->hint[0] ? "; " : "",
                       err->hint);
    if (write(STDERR_FILENO, text, (size_t)len) < 0)
        return 1; // nobody listens
    return error_meaning(err->code)->exit_code;
}

int main(int argc, char **argv)
{
    static struct egress egress;
    struct error err = ERROR_INIT;
    if (options_parse(argc, argv, &egress.options, &err) < 0 || egress_prepare(&egress, &err) < 0 ||
        egress_lock_down(&egress, &err) < 0)
        return report(&err);
    int status = egress_run(&egress, &err);
    return status < 0 ? report(&err) : status;
}
