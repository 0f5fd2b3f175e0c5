#include "cli/raw_terminal.h"
#include "controller/base/cleanup.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct {
    volatile sig_atomic_t is_raw;
    int fd;
    struct termios before, raw;
} terminal = {.fd = -1};

static void set_modes(const struct termios *modes)
{
    while (tcsetattr(terminal.fd, TCSADRAIN, modes) < 0 && errno == EINTR)
        ;
}

void raw_terminal_leave(void)
{
    if (terminal.is_raw)
        set_modes(&terminal.before);
    terminal.is_raw = 0;
}

void raw_terminal_again(void)
{
    if (terminal.fd < 0)
        return;
    terminal.is_raw = 1;
    set_modes(&terminal.raw);
}

// A fault of ours must not leave a terminal that shows no keys: tcsetattr may be called in a handler.
static void on_fault(int number)
{
    if (terminal.is_raw)
        tcsetattr(terminal.fd, TCSANOW, &terminal.before);
    raise(number); // SA_RESETHAND: as it would have been
}

static void catch_faults(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    const struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_RESETHAND};
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        sigaction(faults[i], &action, NULL);
}

int raw_terminal_enter(int fd, struct error *err)
{
    if (tcgetattr(fd, &terminal.before) < 0)
        return error_errno(err, errno, NULL, "cannot read the modes of the terminal");
    terminal.raw = terminal.before;
    cfmakeraw(&terminal.raw);
    terminal.fd = fd;
    catch_faults();
    raw_terminal_again();
    return 0;
}

bool raw_terminal_size(int fd, uint16_t *ret_columns, uint16_t *ret_rows)
{
    struct winsize cells;
    if (ioctl(fd, TIOCGWINSZ, &cells) < 0)
        return false;
    *ret_columns = cells.ws_col;
    *ret_rows = cells.ws_row;
    return true;
}
