// The file data_root/templates/.sbx-setup: one line "NAME MILLISECONDS" for each sandbox that a setup made or was about to
// make. It is written before the sandbox is, so a setup that was killed at any instant leaves nothing that nobody knows of.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "reconcilers/drivers/sbx/template.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOTES_NAME ".sbx-setup"
#define NOTES_MAX_BYTES 4096

bool note_is_name(const char *text)
{
    size_t prefix = strlen(BOOTSTRAP_PREFIX);
    return strlen(text) == prefix + BOOTSTRAP_RANDOM && strncmp(text, BOOTSTRAP_PREFIX, prefix) == 0 &&
           strspn(text + prefix, "abcdefghijklmnopqrstuvwxyz234567") == BOOTSTRAP_RANDOM;
}

void note_make_name(struct note *note)
{
    char random[BOOTSTRAP_RANDOM + 1];
    random_base32(random, BOOTSTRAP_RANDOM);
    snprintf(note->name, sizeof(note->name), BOOTSTRAP_PREFIX "%s", random);
    note->since = wall_time_now();
}

static void take_line(struct notes *notes, char *line)
{
    char *blank = strchr(line, ' ');
    if (!blank || notes->count == BOOTSTRAP_NOTES_MAX)
        return;
    *blank = '\0';
    if (!note_is_name(line))
        return;
    struct note *note = &notes->items[notes->count++];
    snprintf(note->name, sizeof(note->name), "%s", line);
    note->since.ms = strtoll(blank + 1, NULL, 10);
}

int notes_read(int dir_fd, struct notes *ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(NOTES_MAX_BYTES);
    CLEANUP_CLOSE int fd = openat(dir_fd, NOTES_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *ret = (struct notes){0};
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot read templates/" NOTES_NAME " below the data root");
    if (fs_read_all(fd, &text, err) < 0)
        return error_context(err, "cannot read templates/" NOTES_NAME " below the data root");
    char *rest = NULL;
    for (char *line = text.len ? strtok_r(text.data, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        take_line(ret, line);
    return 0;
}

int notes_write(int dir_fd, const struct notes *notes, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(NOTES_MAX_BYTES);
    for (size_t i = 0; i < notes->count; i++)
        buffer_format(&text, "%s %" PRId64 "\n", notes->items[i].name, notes->items[i].since.ms);
    if (notes->count == 0)
        return unlinkat(dir_fd, NOTES_NAME, 0) == 0 || errno == ENOENT ? 0 : error_errno(err, errno, NULL, "cannot remove templates/" NOTES_NAME);
    if (fs_replace_file(dir_fd, NOTES_NAME, buffer_text(&text), text.len, 0600, err) < 0)
        return error_context(err, "cannot note the sandbox that setup uses");
    return 0;
}
