// One command in a new sandbox tells what the control plane needs to know of it: where the workspace is, and what is there.
// A private marker shows that the words come from inside: a missing sandbox exits with 1 like a command that failed.
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>

#define ROOT_MAX_BYTES 4096

static const char script[] = "printf '%s\\n' \"$1\"; pwd; printf '%s\\n' \"$1\"\n"
                             "for p in codexpro-mcp-http git docker sudo; do command -v \"$p\" > /dev/null 2>&1 && echo \"has $p\"; done\n"
                             "[ -e .git ] && echo 'has a checkout'\n"
                             "printf '%s\\n' \"$1\"\n";

void sbx_inside_words(struct words *words, const char *name, const char *marker)
{
    const char *const texts[] = {"exec", name, "sh", "-c", script, "sh", marker, NULL};
    sbx_words_add_all(words, texts);
}

static const char *find_marker(const char *from, const char *marker)
{
    return from ? strstr(from, marker) : NULL;
}

// The three markers part the root from the rest. The root may hold any byte but NUL, newlines included.
static int split(const char *text, const char *marker, char **ret_root, char **ret_rest)
{
    size_t len = strlen(marker);
    const char *one = find_marker(text, marker), *two = find_marker(one ? one + len : NULL, marker);
    const char *three = find_marker(two ? two + len : NULL, marker);
    if (three == NULL || two - one < (long)len + 2)
        return -1;
    *ret_root = mem_strndup(one + len + 1, (size_t)(two - one) - len - 2); // without the newlines around it
    *ret_rest = mem_strndup(two + len, (size_t)(three - two) - len);
    return 0;
}

static bool has(const char *rest, const char *what)
{
    CLEANUP_FREE char *line = mem_format("\nhas %s\n", what);
    return strstr(rest, line) != NULL;
}

int sbx_inside_read(const struct call_result *result, const char *marker, struct inside *ret, struct error *err)
{
    CLEANUP_FREE char *root = NULL, *rest = NULL;
    if (split(result->printed, marker, &root, &rest) < 0 && split(result->output, marker, &root, &rest) < 0) {
        if (sbx_call_judge(result, err) == 0)
            error_set(err, ERROR_UNAVAILABLE, "run: sbx diagnose", "a command in the sandbox printed something else than it should");
        return error_context(err, "the new sandbox runs no commands");
    }
    size_t len = strlen(root);
    if (root[0] != '/' || len > ROOT_MAX_BYTES || !utf8_is_valid(root, len))
        return error_set(err, ERROR_INVALID, "choose another template", "the sandbox told no usable path for its workspace");
    ret->root = TAKE_PTR(root);
    ret->has_codexpro = has(rest, SBX_CODEXPRO_PROGRAM);
    ret->has_docker = has(rest, "docker");
    ret->has_git = has(rest, "git");
    ret->has_sudo = has(rest, "sudo");
    ret->is_checkout = has(rest, "a checkout");
    return 0;
}

void sbx_inside_free(struct inside *inside)
{
    free(inside->root);
    *inside = (struct inside){0};
}
