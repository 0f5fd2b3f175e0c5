#include "api/guest/terminal.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

// ---- what is asked for ----------------------------------------------------------------------------------------------
static int read_cells(const json_t *tty, const char *name, uint16_t *ret, struct error *err)
{
    const json_t *value = json_object_get(tty, name);
    json_int_t number = json_integer_value(value);
    if (value && (!json_is_integer(value) || number < 0 || number > UINT16_MAX))
        return error_set(err, ERROR_INVALID, NULL, "tty.%s must be an integer from 0 to %d", name, UINT16_MAX);
    *ret = (uint16_t)number;
    return 0;
}

// It becomes a file's name in terminfo.
static bool is_term(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-+._", text[i]))
            return false;
    return len > 0 && len <= TERMINAL_TERM_MAX && text[0] != '.';
}

int terminal_read(const json_t *tty, struct terminal_size *ret_size, const char **ret_term, struct error *err)
{
    struct terminal_size size;
    if (!json_is_object(tty))
        return error_set(err, ERROR_INVALID, NULL, "tty must be an object");
    if (read_cells(tty, "columns", &size.columns, err) < 0 || read_cells(tty, "rows", &size.rows, err) < 0)
        return -1;
    const char *term = json_get_text(tty, "term");
    *ret_size = size;
    *ret_term = term && is_term(term) ? term : TERMINAL_DEFAULT_TERM;
    return 0;
}

void terminal_set_environment(struct environment *environment, const char *term)
{
    environment_unset(environment, "NO_COLOR");
    environment_unset(environment, "CI");
    environment_set(environment, "TERM", term);
}

// ---- the terminal ---------------------------------------------------------------------------------------------------
int terminal_resize(int master, const struct terminal_size *size)
{
    const struct winsize cells = {.ws_row = size->rows, .ws_col = size->columns};
    return ioctl(master, TIOCSWINSZ, &cells);
}

// Erasing a character erases all its bytes.
static void set_modes(int master)
{
    struct termios modes;
    if (tcgetattr(master, &modes) < 0)
        return;
    modes.c_iflag |= IUTF8;
    tcsetattr(master, TCSANOW, &modes);
}

int terminal_open(const struct terminal_size *size, int *ret_master, char **ret_slave, struct error *err)
{
    char slave[PATH_MAX];
    CLEANUP_CLOSE int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, slave, sizeof(slave)) != 0 || fs_set_nonblocking(master, true) < 0)
        return error_errno(err, errno, "the sandbox needs /dev/ptmx and /dev/pts", "cannot open a terminal");
    set_modes(master);
    terminal_resize(master, size);
    *ret_slave = mem_strdup(slave);
    *ret_master = TAKE_FD(master);
    return 0;
}

// ---- the end --------------------------------------------------------------------------------------------------------
// The session's number stands in /proc/PID/stat behind the name: state, parent, group, session.
static pid_t session_of(const char *pid_text)
{
    char path[64], line[512], state;
    int parent, group, session;
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid_text);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    line[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(line, ')');
    return end && sscanf(end + 1, " %c %d %d %d", &state, &parent, &group, &session) == 4 ? session : -1;
}

void terminal_kill_session(pid_t leader, bool is_reaped)
{
    if (leader <= 0 || (is_reaped && kill(leader, 0) == 0))
        return;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));)
        if (isdigit((unsigned char)entry->d_name[0]) && session_of(entry->d_name) == leader)
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    if (proc)
        closedir(proc);
}
