// What to do after a failure that a tool server in a sandbox reports, in words that name a tool and an argument. The
// sentences on the left are those of the servers' contract; the first that is found in the text counts.
#include "api/tools/result.h"
#include "controller/base/memory.h"
#include <string.h>

#define OTHER_PATH "give a path relative to the workspace root; tree shows what is there. For places outside the workspace use bash"
#define NO_FILE "check the path with tree or search"
#define READ_AGAIN "read the file again, and repeat the call with its present text and sha256"
#define ONLY_CHAT "only attachments of the chat can be imported; fetch other files with curl in bash"
#define ONE_MORE "call import_file again; if it stays, ask the person to attach the file once more"
#define FRESH_PATCH "read the files again and make the patch from their present text, or use edit for each change"

#define CWD "give as cwd a directory that exists (tree shows them), or leave it out to run in the workspace root"

static const struct {
    const char *found, *hint;
    const char *tool; // NULL: any
} hints[] = {
    {"ENOENT", CWD, "bash"},
    {"Path escapes workspace root", "cwd must lie in the workspace: for other places write `cd DIR && ...` in command", "bash"},
    {"ENOTDIR", CWD, "bash"},
    {"ENOENT", "the parent directory is missing: leave create_dirs out, or check the path with tree", "write"},
    {"Unknown Bash session", "use the session_id that bash returned for this sandbox, or start the command again with bash"},
    {"Path is blocked by safety rules", "the file tools leave such paths alone (server_config lists them in blockedGlobs); bash in the sandbox reaches them"},
    {"Path escapes workspace root", OTHER_PATH},
    {"resolves outside workspace root through a symlink", OTHER_PATH},
    {"parent outside the workspace", OTHER_PATH},
    {"without null bytes", "take the NUL character out of path"},
    {"Refusing to write through a symlink", "give the path of the file that the link names, or replace the link with bash"},
    {"Symlink patches are blocked", "make symbolic links with ln -s in bash, and leave them out of the patch"},
    {"Refusing to read binary file", "look at images with view_image and at other binary files with bash (file, xxd, strings)"},
    {"Refusing to", "do it with bash"},
    {"File changed during write", READ_AGAIN},
    {"File changed since it was read", READ_AGAIN},
    {"File does not exist, so expected_sha256", "leave out expected_sha256 to make a new file, or check the path with tree"},
    {"File already exists and overwrite=false", "choose another path, or set overwrite to true"},
    {"Destination already exists and overwrite=false", "choose another destination, or set overwrite to true"},
    {"File is too large", "read a part with start_line and end_line, or find the place with search"},
    {"Selected line range is too large", "ask for fewer lines with start_line and end_line"},
    {"end_line (", "give an end_line that is not below start_line and a start_line within the file (totalLines of read)"},
    {"Not a file", "give the path of a regular file; tree shows what is in a directory"},
    {"Not a directory", "give the path of a directory, or use read for a file"},
    {"old_text must not be empty", "give the text to replace in old_text, or the whole file with write"},
    {"old_text was not found", "read the file, and copy old_text from it exactly, without the line numbers"},
    {"old_text matched", "add lines around it to old_text until it stands only once, or set replace_all to true"},
    {"replacements but would perform", "correct expected_replacements, or make old_text more exact"},
    {"Secret-looking content is blocked", "write the file with bash instead if the secret belongs there"},
    {"patch is required", "give one unified diff in patch"},
    {"Patch must include at least one file path", "give a unified diff with --- a/PATH and +++ b/PATH headers, as git diff makes it"},
    {"Patch is too large", "apply it in parts"},
    {"is too large", "make it smaller, or write it in parts with bash"},
    {"corrupt patch", "end the patch with a newline, and correct the line counts in its @@ headers"},
    {"No valid patches in input", "give a unified diff with --- a/PATH and +++ b/PATH headers, as git diff makes it"},
    {"patch failed", FRESH_PATCH},
    {"patch does not apply", FRESH_PATCH},
    {"already exists in working directory", "patch the existing file instead of creating it, or delete it first with bash"},
    {"Unsupported image format", "convert it to PNG, JPEG, GIF or WebP with bash"},
    {"Image is too large", "raise max_bytes (at most 2000000), or make a smaller copy with bash"},
    {"must use HTTPS", ONLY_CHAT},
    {"not an approved", ONLY_CHAT},
    {"blocked host", ONLY_CHAT},
    {"blocked address", ONLY_CHAT},
    {"must not include credentials", ONLY_CHAT},
    {"Unsupported attachment reference", "pass the file object as the chat gives it, with its https download_url"},
    {"Invalid URL", "pass the file object as the chat gives it, with its https download_url"},
    {"could not be resolved", ONE_MORE},
    {"failed with HTTP", ONE_MORE},
    {"download failed", ONE_MORE},
    {"redirect limit", ONE_MORE},
    {"exceeded import size limit", "ask the person for a smaller file, or fetch it with curl in bash from where it is public"},
    {"SHA-256 mismatch", "correct expected_sha256 or leave it out; nothing was kept"},
    {"spawn /bin/bash", CWD},
    {"spawn ENOTDIR", CWD},
    {"command is required", "give a shell command line in command"},
    {"plan must not be empty", "give the plan in Markdown"},
    {"agent must use only", "give a short id such as codex: lower-case letters, digits, dots, dashes, underscores"},
    {"Skill name is required", "call open_current_workspace with include_skills true, and give one of the names it lists"},
    {"Skill not found", "call open_current_workspace with include_skills true, and give one of the names it lists"},
    {"regex parse error", "escape special characters with a backslash, or leave regex out to search the text literally"},
    {"regex search requires ripgrep", "leave regex out to search the text literally, or use grep -rE in bash"},
    {"ENOENT", NO_FILE},
    {"No such file or directory", NO_FILE},
    {"ENOTDIR", "a part of the path is a file: " NO_FILE},
    {"EISDIR", "it is a directory: give the path of a file"},
    {"EEXIST", "a part of the path is a file: choose another path"},
    {"EACCES", "the permissions do not allow it: look with ls -l in bash, and change them with chmod or sudo there"},
    {"EPERM", "the permissions do not allow it: look with ls -l in bash, and change them with chmod or sudo there"},
    {"ENOSPC", "the disk is full: remove files with bash"},
    {"EDQUOT", "the disk is full: remove files with bash"},
    {"ENAMETOOLONG", "choose a shorter path"},
    {"EROFS", "this place is read-only: write below the workspace root"},
    {"Input validation error", "correct the arguments that it names"},
};

const char *tool_failure_hint(const char *tool, const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(hints); i++)
        if ((!hints[i].tool || strcmp(hints[i].tool, tool) == 0) && strstr(text, hints[i].found))
            return hints[i].hint;
    return NULL;
}

// Where neither who failed nor the table knows better.
static const char *hint_of_code(enum error_code code)
{
    static const struct {
        enum error_code code;
        const char *hint;
    } table[] = {
        {ERROR_INVALID, "correct the arguments and call it again"},
        {ERROR_NOT_FOUND, "call sandbox_list for the sandboxes that there are"},
        {ERROR_STATE, "call sandbox_get and see its status and notes"},
        {ERROR_LIMIT, "wait until other calls have ended, then call it again"},
        {ERROR_TIMEOUT, "look whether it was done before you call it again"},
        {ERROR_REFUSED, "tell the person; the operator decides about it"},
        {ERROR_TOO_LARGE, "ask for less at once, or send it in smaller pieces"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].code == code)
            return table[i].hint;
    return "call it again; if it keeps failing, call sandbox_destroy and sandbox_create";
}

// Names of tools and arguments are told apart from words by their underscores, and stay as they are.
static bool begins_with_name(const char *hint)
{
    size_t word = strcspn(hint, " ,;:.");
    return memchr(hint, '_', word) || *hint == '`';
}

char *tool_failure_words(const char *tool, const struct error *err)
{
    const char *hint = err->hint[0] ? err->hint : tool_failure_hint(tool, err->message);
    if (!hint)
        hint = hint_of_code(err->code);
    size_t len = strlen(err->message);
    const char *stop = len && strchr(".!?", err->message[len - 1]) ? "" : ".";
    bool is_word = *hint >= 'a' && *hint <= 'z' && !begins_with_name(hint);
    return mem_format("%s%s %c%s%s", err->message, stop, is_word ? *hint - 32 : *hint, hint + 1,
                      strchr(".!?", hint[strlen(hint) - 1]) ? "" : ".");
}
