#include "reconcilers/egress/hosts.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(struct hosts *hosts, const char *name, const struct address *address)
{
    char canonical[NAME_SIZE];
    if (hosts->count == HOSTS_MAX_ENTRIES || !name_normalize(name, strlen(name), canonical))
        return;
    if (hosts->count % 64 == 0)
        hosts->entries = mem_realloc_array(hosts->entries, hosts->count + 64, sizeof(*hosts->entries));
    hosts->entries[hosts->count++] = (struct hosts_entry){mem_strdup(canonical), *address};
}

static void take_line(struct hosts *hosts, char *line)
{
    char *rest, *word;
    struct address address;
    line[strcspn(line, "#")] = '\0';
    word = strtok_r(line, " \t\r", &rest);
    if (!word || !address_parse(word, &address))
        return;
    while ((word = strtok_r(NULL, " \t\r", &rest)))
        add(hosts, word, &address);
}

void hosts_parse(const char *text, struct hosts *ret)
{
    *ret = (struct hosts){0};
    CLEANUP_FREE char *copy = mem_strdup(text);
    char *rest;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(ret, line);
}

void hosts_read(const char *path, struct hosts *ret)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(HOSTS_MAX_BYTES);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *room;
    ssize_t len = 0;
    while (fd >= 0 && text.len < HOSTS_MAX_BYTES && (room = buffer_reserve(&text, 4096)) &&
           (len = read(fd, room, 4096)) > 0)
        text.len += (size_t)len;
    hosts_parse(buffer_text(&text), ret);
}

void hosts_free(struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        free(hosts->entries[i].name);
    free(hosts->entries);
    *hosts = (struct hosts){0};
}
