// What the daemon finds when it looks at itself: its driver, its store, its state directory, and runtimes
// that no record owns. The looking may block, so it runs on a worker of its own; the driver's list of runtimes
// ends it.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/world.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LOW_BYTES (1LL << 30) // less than this is worth a warning

struct look {
    struct world *world;
    bool is_driver_only;
    struct finding_list findings;
    findings_request_fn done;
    void *arg;
};

static void finish(struct look *look)
{
    look->done(look->arg, 0, &look->findings, NULL);
    finding_list_free(&look->findings);
    free(look);
}

const char *request_driver_name(const struct world *world)
{
    return world->driver->ops->name;
}

// ---- the store
// --------------------------------------------------------------------------------------------------
static void look_at_store(struct look *look)
{
    struct store *store = look->world->store;
    struct error err = ERROR_INIT;
    if (store_check(store, &err) < 0)
        finding_add(&look->findings, FINDING_FAIL, "store", err.hint[0] ? err.hint : NULL, "%s", err.message);
    else
        finding_add(&look->findings, FINDING_PASS, "store", NULL, "the database passes SQLite's quick check");
    int64_t free_bytes = store_free_bytes(store);
    if (store_is_low_on_disk(store))
        finding_add(&look->findings, FINDING_FAIL, "disk",
                    "free space there, for example by destroying sandboxes",
                    "only %" PRId64 " MiB are free for the state directory: nothing new is created",
                    free_bytes >> 20);
    else if (free_bytes < LOW_BYTES)
        finding_add(&look->findings, FINDING_WARN, "disk", "free space there soon",
                    "only %" PRId64 " MiB are free for the state directory", free_bytes >> 20);
    else
        finding_add(&look->findings, FINDING_PASS, "disk", NULL,
                    "%" PRId64 " MiB are free for the state directory", free_bytes >> 20);
}

// ---- the state directory
// --------------------------------------------------------------------------------------------
static void look_at_mode(struct look *look, int dir_fd, const char *name, const char *shown, mode_t allowed)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0) {
        finding_add(&look->findings, FINDING_FAIL, "modes", "restart the daemon", "cannot look at %s: %s",
                    shown, strerrordesc_np(errno));
        return;
    }
    mode_t mode = st.st_mode & 07777;
    CLEANUP_FREE char *fix = mem_format("chmod %o %s", (unsigned)allowed, shown);
    if (st.st_uid != geteuid())
        finding_add(&look->findings, FINDING_FAIL, "modes", "give it back to the user that runs the daemon",
                    "%s belongs to uid %u", shown, (unsigned)st.st_uid);
    else if (mode & ~allowed)
        finding_add(&look->findings, FINDING_FAIL, "modes", fix, "%s has mode %04o: others can reach it",
                    shown, (unsigned)mode);
    else
        finding_add(&look->findings, FINDING_PASS, "modes", NULL, "%s is the daemon's alone (mode %04o)",
                    shown, (unsigned)mode);
}

static void look_at_lock(struct look *look, int dir_fd)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(64);
    struct error err = ERROR_INIT;
    if (fd < 0 || fs_read_all(fd, &text, &err) < 0) {
        finding_add(&look->findings, FINDING_FAIL, "lock", "restart the daemon",
                    "the lock file of the state directory cannot be read");
        return;
    }
    long holder = strtol(buffer_text(&text), NULL, 10);
    if (holder == (long)getpid())
        finding_add(&look->findings, FINDING_PASS, "lock", NULL, "process %ld holds the state directory",
                    holder);
    else
        finding_add(&look->findings, FINDING_FAIL, "lock", "stop the other process and restart the daemon",
                    "the lock file names process %ld, but this daemon is process %ld", holder,
                    (long)getpid());
}

static void look_at_directory(struct look *look)
{
    const char *dir = look->world->config->state_dir;
    CLEANUP_FREE char *database = mem_format("%s/%s", dir, STORE_DATABASE_NAME);
    CLEANUP_CLOSE int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        finding_add(&look->findings, FINDING_FAIL, "modes", "restart the daemon", "cannot open %s: %s", dir,
                    strerrordesc_np(errno));
        return;
    }
    look_at_mode(look, dir_fd, "", dir, 0700);
    look_at_mode(look, dir_fd, STORE_DATABASE_NAME, database, 0600);
    look_at_lock(look, dir_fd);
}

// ---- runtimes that no record owns
// --------------------------------------------------------------------------------------
static bool is_owned(const struct record_list *sandboxes, const char *runtime)
{
    for (size_t i = 0; i < sandboxes->count; i++) {
        const char *name = sandboxes->items[i]->status.sandbox.runtime_name;
        if (name && strcmp(name, runtime) == 0)
            return true;
    }
    return false;
}

static void on_list(void *arg, int result, const struct text_list *runtimes, const struct error *err)
{
    struct look *look = arg;
    struct record_list sandboxes = {0};
    size_t orphans = 0;
    struct error why = ERROR_INIT;
    if (result < 0 || store_list(look->world->store, KIND_SANDBOX, &sandboxes, NULL, &why) < 0) {
        finding_add(&look->findings, FINDING_WARN, "orphans", NULL, "the runtimes cannot be listed: %s",
                    result < 0 ? err->message : why.message);
        finish(look);
        return;
    }
    for (size_t i = 0; i < runtimes->count; i++)
        if (!is_owned(&sandboxes, runtimes->items[i])) {
            orphans++;
            finding_add(&look->findings, FINDING_WARN, "orphans",
                        "restart the daemon: what its records own and no longer use is removed then",
                        "the runtime %s belongs to no sandbox", runtimes->items[i]);
        }
    if (!orphans)
        finding_add(&look->findings, FINDING_PASS, "orphans", NULL,
                    "every runtime belongs to a sandbox (%zu)", runtimes->count);
    record_list_free(&sandboxes);
    finish(look);
}

static void look_around(void *arg)
{
    struct look *look = arg;
    struct driver *driver = look->world->driver;
    driver_choice_tell(&look->world->driver_choice, driver->ops->name, &look->findings);
    driver->ops->probe(driver, &look->findings);
    if (look->is_driver_only) {
        finish(look);
        return;
    }
    look_at_store(look);
    look_at_directory(look);
    driver->ops->list(driver, on_list, look);
}

static void begin(struct world *world, bool is_driver_only, findings_request_fn done, void *arg)
{
    struct look *look = mem_alloc(sizeof(*look));
    *look = (struct look){.world = world, .is_driver_only = is_driver_only, .done = done, .arg = arg};
    if (request_worker_add(world->reconcilers->looker, look_around, look))
        return;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_LIMIT, "try again in a moment", "too many requests at once");
    done(arg, -1, NULL, &err);
    free(look);
}

void request_findings(struct world *world, findings_request_fn done, void *arg)
{
    begin(world, false, done, arg);
}

void request_driver_findings(struct world *world, findings_request_fn done, void *arg)
{
    begin(world, true, done, arg);
}
