// cp: files and directories into a sandbox and out of it, with docker cp's rules. What comes out is hostile (cli/copy/extract.h).
#include "cli/command.h"
#include "cli/copy/extract.h"
#include "cli/copy/pack.h"
#include "cli/copy_inside.h"
#include "cli/copy_report.h"
#include "cli/copy_where.h"
#include "cli/exec_stream.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/fields/fields.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXIT_INTERRUPTED 130
#define EXIT_PARTLY 1
#define EXIT_LEFT 141 // nobody read on: we did not

struct copy {
    struct invocation *in;
    const struct rest *rest;
    struct copy_place from, to;
    struct copy_name from_name, to_name;
    struct copy_report report;
    bool follows;
};

static void copy_clear(struct copy *copy)
{
    copy_place_clear(&copy->from);
    copy_place_clear(&copy->to);
    copy_name_clear(&copy->from_name);
    copy_name_clear(&copy->to_name);
}

static int refuse_missing_parent(const char *path, struct error *err)
{
    return error_set(err, ERROR_NOT_FOUND, "make the directory first", "cannot copy to %s: the directory that would hold it does not exist", path);
}

static int refuse_missing_directory(const char *path, struct error *err)
{
    return error_set(err, ERROR_NOT_FOUND, "make it first, or leave the slash out", "cannot copy into %s: there is no such directory", path);
}

// How the program inside ended. r: what became of our own side, with its error.
static int conclude(struct copy *copy, struct inside *inside, const char *sandbox, int r, const struct error *own, struct error *err)
{
    int exit_code = 0;
    struct error its = ERROR_INIT;
    int waited = inside_wait(inside, &exit_code, &its);
    if (!inside->has_words_thread)
        copy_report_words(&copy->report, sandbox, &inside->words);
    bool is_ours = r < 0 && own->code != ERROR_STATE; // STATE: it took no more, and says itself why
    bool has_failed = waited < 0 || (exit_code && exit_code != EXIT_LEFT);
    if (is_ours && !(own->code == ERROR_INVALID && has_failed))
        return error_copy(err, own);
    if (waited < 0)
        return error_copy(err, &its);
    if (exit_code)
        return error_set(err, ERROR_IO, "its words are above; what was copied before is whole", "tar ended with exit code %d in the sandbox %s", exit_code, sandbox);
    return r < 0 ? error_copy(err, own) : 0;
}

static int finish(struct copy *copy, int r)
{
    copy_report_end(&copy->report, copy->in->arguments[0], copy->in->arguments[1], r == 0);
    if (r == 0 && copy->report.tally.troubles)
        copy->in->exit_code = EXIT_PARTLY;
    return r;
}

// ---- what `logs` calls it
static char *label_out(const struct copy *copy)
{
    return mem_format("cp: tar out of %s", copy->from.path);
}

static char *label_into(const struct copy *copy)
{
    return mem_format("cp: tar into %s", copy->to.path);
}

// ---- tar streams: nothing of them is looked at here -------------------------------------------------------------------------
static int run_stream(struct copy *copy, const char *sandbox, const char *label, const char *const *argv, int input_fd, struct error *err)
{
    const struct exec_stream stream = {.sandbox = sandbox, .label = label, .argv = argv, .input_fd = input_fd, .output_fd = STDOUT_FILENO, .error_fd = STDERR_FILENO};
    int exit_code;
    if (exec_stream_run(copy->rest, &stream, &exit_code, err) < 0)
        return -1;
    return exit_code ? error_set(err, ERROR_IO, "its words are above", "tar ended with exit code %d in the sandbox %s", exit_code, sandbox) : 0;
}

static int check_source(struct copy *copy, enum copy_kind kind, struct error *err)
{
    if (kind == COPY_NOTHING || kind == COPY_NO_PARENT)
        return error_set(err, ERROR_NOT_FOUND, "relative paths are below the workspace", "there is no %s in the sandbox %s", copy->from.path, copy->from.sandbox);
    return 0;
}

// The arguments of the tar that reads: of a directory's content where that is meant, else of the one name.
struct reading {
    char *path, *directory, *member;
    const char *argv[9];
};

static void reading_clear(struct reading *reading)
{
    free(reading->path);
    free(reading->directory);
    free(reading->member);
}

// The name is passed with ./ before it, so that no tar takes it for an option.
static int reading_make(struct copy *copy, struct reading *reading, enum copy_kind *ret_kind, struct error *err)
{
    if (copy_look_inside(copy->rest, &copy->from, copy->follows, ret_kind, &reading->path, err) < 0 || check_source(copy, *ret_kind, err) < 0)
        return -1;
    CLEANUP(copy_name_clear) struct copy_name name = {0};
    copy_name_split(reading->path, &name);
    bool is_content = name.means_content || (name.ends_in_slash && *ret_kind == COPY_DIRECTORY);
    reading->directory = mem_strdup(is_content ? reading->path : name.directory);
    reading->member = is_content ? mem_strdup(".") : mem_format("./%s", name.name);
    const char *const argv[] = {"tar", "-c", "-f", "-", "-C", reading->directory, "--", reading->member, NULL};
    memcpy(reading->argv, argv, sizeof(argv));
    return 0;
}

static int copy_to_stream(struct copy *copy, struct error *err)
{
    CLEANUP(reading_clear) struct reading reading = {0};
    enum copy_kind kind;
    if (isatty(STDOUT_FILENO))
        return error_set(err, ERROR_USAGE, "redirect it: chat2shell cp dev:src - > src.tar", "a tar stream is not written to a terminal");
    CLEANUP_FREE char *label = label_out(copy);
    return reading_make(copy, &reading, &kind, err) < 0 ? -1 : run_stream(copy, copy->from.sandbox, label, reading.argv, -1, err);
}

static int copy_from_stream(struct copy *copy, struct error *err)
{
    enum copy_kind kind;
    const char *const argv[] = {"tar", "-x", "-p", "-o", "-f", "-", "-C", copy->to.path, NULL};
    if (copy_look_inside(copy->rest, &copy->to, true, &kind, NULL, err) < 0)
        return -1;
    if (kind != COPY_DIRECTORY)
        return refuse_missing_directory(copy->to.path, err);
    CLEANUP_FREE char *label = label_into(copy);
    return run_stream(copy, copy->to.sandbox, label, argv, STDIN_FILENO, err);
}

// ---- out of a sandbox ----------------------------------------------------------------------------------------------------------
struct landing { // where it goes on the host
    int fd;
    const char *as; // NULL: into the directory itself
};

// docker's rules; the operator's own words are followed through links, the archive's are not.
static int find_landing(struct copy *copy, enum copy_kind kind, const char *source_name, struct landing *ret, struct error *err)
{
    const char *path = copy->to.path;
    bool is_content = copy->from_name.means_content;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        *ret = (struct landing){fd, is_content ? NULL : source_name};
        return 0;
    }
    if (errno != ENOENT && errno != ENOTDIR)
        return error_errno(err, errno, NULL, "cannot open %s", path);
    struct stat info;
    bool is_there = lstat(path, &info) == 0;
    if (is_there && kind == COPY_DIRECTORY)
        return error_set(err, ERROR_EXISTS, "name a directory, or something that does not exist", "cannot copy a directory to %s: it is a file", path);
    if (copy->to_name.means_content || (copy->to_name.ends_in_slash && kind != COPY_DIRECTORY))
        return refuse_missing_directory(path, err);
    fd = open(copy->to_name.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? refuse_missing_parent(path, err) : error_errno(err, errno, NULL, "cannot open %s", copy->to_name.directory);
    *ret = (struct landing){fd, copy->to_name.name};
    return 0;
}

static int read_max_bytes(const struct invocation *in, int64_t *ret, struct error *err)
{
    const char *text = invocation_option(in, "max-bytes");
    *ret = EXTRACT_BYTES_DEFAULT;
    if (text && (quantity_parse(text, ret) < 0 || *ret < 0))
        return error_set(err, ERROR_USAGE, "give a number of bytes like 500Mi or 200Gi", "--max-bytes cannot be '%.40s'", text);
    return 0;
}

static int run_extract(struct copy *copy, const struct extract *extract, const char *const *argv, struct error *err)
{
    CLEANUP_FREE char *label = label_out(copy);
    CLEANUP(inside_clear) struct inside inside = INSIDE_INIT;
    struct error own = ERROR_INIT;
    if (inside_start(&inside, copy->rest, copy->from.sandbox, label, argv, INSIDE_OUTPUT, err) < 0)
        return -1;
    struct tar_reader *reader = tar_reader_new(inside_read, &inside);
    int r = extract_run(extract, reader, &own);
    if (r == 0)
        r = inside_drain(&inside, &own);
    tar_reader_free(reader);
    return conclude(copy, &inside, copy->from.sandbox, r, &own, err);
}

static int copy_out(struct copy *copy, struct error *err)
{
    CLEANUP(reading_clear) struct reading reading = {0};
    CLEANUP(copy_name_clear) struct copy_name source = {0};
    struct landing landing = {.fd = -1};
    enum copy_kind kind;
    struct extract extract = {.umask = umask(0), .tally = &copy->report.tally};
    umask(extract.umask);
    if (read_max_bytes(copy->in, &extract.max_bytes, err) < 0 || reading_make(copy, &reading, &kind, err) < 0)
        return -1;
    copy_name_split(copy->from.path, &source);
    if (find_landing(copy, kind, source.name, &landing, err) < 0)
        return -1;
    CLEANUP_CLOSE int root_fd = landing.fd;
    extract.root_fd = root_fd;
    extract.as = landing.as;
    extract.expected = strcmp(reading.member, ".") == 0 ? NULL : reading.member + 2;
    return finish(copy, run_extract(copy, &extract, reading.argv, err));
}

// ---- into a sandbox --------------------------------------------------------------------------------------------------------------
static int open_source(struct copy *copy, int *ret_dir_fd, bool *ret_is_directory, struct error *err)
{
    const struct copy_name *name = &copy->from_name;
    struct stat info;
    CLEANUP_CLOSE int dir_fd = open(name->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *below = name->means_content ? "." : name->name;
    bool follows = copy->follows || name->ends_in_slash;
    if (dir_fd < 0 || fstatat(dir_fd, below, &info, follows ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return error_errno(err, errno, NULL, "cannot read %s", copy->from.path);
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode))
        return error_set(err, ERROR_INVALID, "name a file or a directory", "%s is neither a file nor a directory", copy->from.path);
    if (name->ends_in_slash && !S_ISDIR(info.st_mode))
        return error_set(err, ERROR_INVALID, "leave the slash out", "%s is not a directory", copy->from.path);
    *ret_is_directory = S_ISDIR(info.st_mode);
    *ret_dir_fd = TAKE_FD(dir_fd);
    return 0;
}

// Into which directory inside, and as what.
static int find_target(struct copy *copy, bool is_directory, const char **ret_directory, const char **ret_as, struct error *err)
{
    enum copy_kind kind;
    const struct copy_name *to = &copy->to_name;
    if (copy_look_inside(copy->rest, &copy->to, true, &kind, NULL, err) < 0)
        return -1;
    *ret_directory = to->directory;
    *ret_as = to->name;
    if (kind == COPY_DIRECTORY) {
        *ret_directory = copy->to.path;
        *ret_as = copy->from_name.means_content ? NULL : copy->from_name.name;
        return 0;
    }
    if (kind == COPY_NO_PARENT)
        return refuse_missing_parent(copy->to.path, err);
    if (kind == COPY_FILE && is_directory)
        return error_set(err, ERROR_EXISTS, "name a directory, or something that does not exist", "cannot copy a directory to %s: it is a file in the sandbox", copy->to.path);
    if (to->means_content || (to->ends_in_slash && !is_directory))
        return refuse_missing_directory(copy->to.path, err);
    return 0;
}

static int run_pack(struct copy *copy, const struct pack *pack, const char *directory, struct error *err)
{
    CLEANUP_FREE char *label = label_into(copy);
    CLEANUP(inside_clear) struct inside inside = INSIDE_INIT;
    struct error own = ERROR_INIT;
    struct tar_writer writer = {.write = inside_write, .arg = &inside};
    const char *const argv[] = {"tar", "-x", "-p", "-o", "-f", "-", "-C", directory, NULL};
    if (inside_start(&inside, copy->rest, copy->to.sandbox, label, argv, INSIDE_INPUT, err) < 0)
        return -1;
    int r = pack_run(pack, &writer, &own);
    return conclude(copy, &inside, copy->to.sandbox, r, &own, err);
}

static int copy_in(struct copy *copy, struct error *err)
{
    CLEANUP_CLOSE int dir_fd = -1;
    const char *directory;
    bool is_directory = false;
    struct pack pack = {.name = copy->from_name.means_content ? "." : copy->from_name.name, .tally = &copy->report.tally,
                        .follows = copy->follows || copy->from_name.ends_in_slash};
    if (open_source(copy, &dir_fd, &is_directory, err) < 0 || find_target(copy, is_directory, &directory, &pack.as, err) < 0)
        return -1;
    pack.dir_fd = dir_fd;
    return finish(copy, run_pack(copy, &pack, directory, err));
}

// ---- the command -----------------------------------------------------------------------------------------------------------------
static int check_places(const struct copy *copy, struct error *err)
{
    if (copy->from.sandbox && copy->to.sandbox)
        return error_set(err, ERROR_UNSUPPORTED, "copy to a directory of the host first, or: chat2shell cp a:src - | chat2shell cp - b:.",
                         "cp does not copy from one sandbox to another");
    if (!copy->from.sandbox && !copy->to.sandbox)
        return error_set(err, ERROR_USAGE, "write SANDBOX:PATH for the one in a sandbox, such as dev:src", "neither %s nor %s is in a sandbox",
                         copy->in->arguments[0], copy->in->arguments[1]);
    return 0;
}

static int run_copy(struct invocation *in, struct error *err)
{
    CLEANUP(copy_clear) struct copy copy = {.in = in, .follows = invocation_switch(in, "follow-link", false)};
    if (copy_place_parse(in->arguments[0], &copy.from, err) < 0 || copy_place_parse(in->arguments[1], &copy.to, err) < 0 || check_places(&copy, err) < 0)
        return -1;
    copy_name_split(copy.from.path, &copy.from_name);
    copy_name_split(copy.to.path, &copy.to_name);
    copy_report_init(&copy.report);
    copy.rest = invocation_rest(in, err);
    if (!copy.rest)
        return -1;
    if (copy.from.sandbox)
        return copy_place_is_stream(&copy.to) ? copy_to_stream(&copy, err) : copy_out(&copy, err);
    return copy_place_is_stream(&copy.from) ? copy_from_stream(&copy, err) : copy_in(&copy, err);
}

static int run(struct invocation *in, struct error *err)
{
    int r = run_copy(in, err);
    if (r < 0 && inside_was_interrupted())
        in->exit_code = EXIT_INTERRUPTED;
    return r;
}

static const struct example examples[] = {
    {"chat2shell cp dev:src ./here", "the directory src of the workspace, as ./here or, if that is a directory, into it"},
    {"chat2shell cp ./src/. dev:/opt/app", "what is in ./src into a directory of the sandbox"},
    {"chat2shell cp dev:/var/log - | tar t", "as a tar stream"},
};
static const struct option_row options[] = {
    {.name = "follow-link", .letter = 'L', .doc = "if SRC is a symbolic link: copy what it leads to"},
    {.name = "max-bytes", .value = "SIZE", .doc = "copy out at most that much (64Gi)"},
};
const struct command command_cp = {
    .name = "cp", .synopsis = "SRC DST", .summary = "Copy files and directories into a sandbox or out of it", .min_arguments = 2, .max_arguments = 2, .run = run,
    .details = "One of SRC and DST is SANDBOX:PATH; relative paths are below its workspace. The other is a path here (write ./NAME if it\n"
               "has a colon), or - for a tar stream on standard input or output. The rules are docker cp's: where DST is a directory SRC goes\n"
               "into it under its name, else SRC becomes DST, whose parent must be there; of SRC/. only the content is copied, into a\n"
               "directory DST. DST/ must be a directory unless SRC is one. Existing files are replaced, each as a whole or not at all.\n"
               "Modes (less the umask, when copying out), times to the second, symbolic and hard links are kept; owners and set-id bits are not.\n"
               "Copying out makes nothing outside DST: links that lead out, devices, pipes and sockets are skipped with a warning, an archive that\n"
               "tries to get out is refused. tar must be in the sandbox; after five minutes without a byte it is given up. Exit code 1: something\n"
               "could not be copied as it was; 130: interrupted.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
