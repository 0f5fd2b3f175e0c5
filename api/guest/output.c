#include "api/guest/output.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct output_line {
    char *text;
    size_t len, sent; // len counts the newline, which is not in text
    struct output_line *next;
};

static void drop_first(struct output *output)
{
    struct output_line *line = output->first;
    output->first = line->next;
    if (!output->first)
        output->last = NULL;
    output->pending_bytes -= line->len - line->sent;
    free(line->text);
    free(line);
}

static void mark_broken(struct output *output)
{
    output->is_broken = true;
    while (output->first)
        drop_first(output);
}

static ssize_t write_line(int fd, const struct output_line *line)
{
    struct iovec parts[2] = {{(char *)"", 0}, {(char *)"\n", 1}};
    if (line->sent < line->len - 1)
        parts[0] = (struct iovec){line->text + line->sent, line->len - 1 - line->sent};
    return writev(fd, parts, 2);
}

static void flush(struct output *output)
{
    while (output->first) {
        ssize_t n = write_line(output->source.fd, output->first);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            mark_broken(output);
            break;
        }
        output->first->sent += (size_t)n;
        output->pending_bytes -= (size_t)n;
        if (output->first->sent == output->first->len)
            drop_first(output);
    }
    guest_loop_set_events(output->loop, &output->source, output->first ? EPOLLOUT : 0);
    output->changed(output);
}

static void writable(struct loop_source *source, uint32_t events)
{
    struct output *output = CONTAINER_OF(source, struct output, source);
    if ((events & (EPOLLERR | EPOLLHUP)) && !output->first) {
        mark_broken(output);
        guest_loop_remove(output->loop, source);
        output->changed(output);
        return;
    }
    flush(output);
}

int output_init(struct output *output, struct loop *loop, int fd, struct error *err)
{
    output->loop = loop;
    output->source = (struct loop_source){.fd = fd, .events = 0, .ready = writable};
    fs_set_nonblocking(fd, true);
    struct stat meta; // files and devices other than terminals cannot be watched and never block
    bool can_wait =
        isatty(fd) || (fstat(fd, &meta) == 0 && (S_ISFIFO(meta.st_mode) || S_ISSOCK(meta.st_mode)));
    return can_wait ? guest_loop_add(loop, &output->source, err) : 0;
}

void output_free(struct output *output)
{
    mark_broken(output);
    guest_loop_remove(output->loop, &output->source);
}

void output_send(struct output *output, char *text, size_t len)
{
    if (output->is_broken) {
        free(text);
        return;
    }
    struct output_line *line = mem_alloc(sizeof(*line));
    *line = (struct output_line){.text = text, .len = len + 1};
    if (output->last)
        output->last->next = line;
    else
        output->first = line;
    output->last = line;
    output->pending_bytes += line->len;
    flush(output);
}
