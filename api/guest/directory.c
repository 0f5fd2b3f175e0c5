#include "api/guest/directory.h"
#include "api/guest/collate.h"
#include "controller/base/memory.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

void directory_free(struct directory *directory)
{
    for (size_t i = 0; i < directory->count; i++)
        free(directory->entries[i].name);
    free(directory->entries);
    *directory = (struct directory){0};
}

static unsigned char type_of(int dir_fd, const struct dirent *entry)
{
    struct stat meta;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    return fstatat(dir_fd, entry->d_name, &meta, AT_SYMLINK_NOFOLLOW) < 0 ? DT_REG : IFTODT(meta.st_mode);
}

static int by_kind(const void *a, const void *b)
{
    const struct directory_entry *x = a, *y = b;
    if ((x->type == DT_DIR) != (y->type == DT_DIR))
        return x->type == DT_DIR ? -1 : 1;
    return collate_names(x->name, y->name);
}

static int by_bytes(const void *a, const void *b)
{
    const struct directory_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void add_entry(struct directory *directory, size_t *room, int fd, const struct dirent *entry)
{
    if (directory->count == *room) {
        *room = *room ? *room * 2 : 32;
        directory->entries = mem_realloc_array(directory->entries, *room, sizeof(struct directory_entry));
    }
    directory->entries[directory->count++] =
        (struct directory_entry){mem_strdup(entry->d_name), type_of(fd, entry)};
}

int directory_read(int fd, bool dirs_first, struct directory *ret)
{
    CLEANUP_CLOSE int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    if (!stream)
        return -1;
    own = -1;
    rewinddir(stream);
    struct directory directory = {0};
    size_t room = 0;
    for (struct dirent *entry; !directory.is_cut && (entry = readdir(stream));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (directory.count == DIRECTORY_MAX_NAMES)
            directory.is_cut = true;
        else
            add_entry(&directory, &room, fd, entry);
    }
    closedir(stream);
    if (directory.count)
        qsort(directory.entries, directory.count, sizeof(struct directory_entry),
              dirs_first ? by_kind : by_bytes);
    *ret = directory;
    return 0;
}
