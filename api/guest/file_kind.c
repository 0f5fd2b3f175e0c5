#include "api/guest/file_kind.h"
#include "api/guest/glob.h"
#include "controller/base/cleanup.h"
#include <stddef.h>
#include <string.h>

struct rule {
    const char *glob; // without a slash: on the name; else on the path
    enum file_kind kind;
};

// The first that matches.
static const struct rule rules[] = {
    {"**/{test,tests,__tests__,spec,specs}/**", FILE_TEST},
    {"{test_*,*_test.*,*.test.*,*.spec.*,*_spec.*,*Test.java,*Tests.cs}", FILE_TEST},
    {"{*.md,*.markdown,*.rst,*.adoc,*.txt,LICENSE*,COPYING*}", FILE_DOCUMENTATION},
    {"{docs,doc}/**", FILE_DOCUMENTATION},
    {"{*.json,*.yaml,*.yml,*.toml,*.ini,*.cfg,*.conf,*.properties,*.env,*.xml,*.plist}", FILE_CONFIGURATION},
    {"{Makefile,*.mk,Dockerfile*,CMakeLists.txt,*.cmake,*.gradle,.gitignore,.editorconfig}",
     FILE_CONFIGURATION},
    {"{*.c,*.h,*.cc,*.cpp,*.cxx,*.hh,*.hpp,*.m,*.mm,*.rs,*.go,*.py,*.rb,*.php,*.java,*.kt,*.swift,*.scala,*."
     "cs}",
     FILE_SOURCE},
    {"{*.js,*.jsx,*.mjs,*.cjs,*.ts,*.tsx,*.vue,*.svelte,*.sh,*.bash,*.pl,*.lua,*.zig,*.ex,*.exs,*.erl,*.hs,*."
     "ml}",
     FILE_SOURCE},
    {"{*.sql,*.proto,*.graphql,*.css,*.scss,*.html,*.s,*.S,*.dart,*.r,*.R,*.jl,*.clj,*.el,*.vim}",
     FILE_SOURCE},
};

static bool matches(const char *text, const char *path)
{
    struct glob glob;
    bool is_match = glob_compile(text, &glob) && glob_accepts(&glob, path);
    glob_free(&glob);
    return is_match;
}

enum file_kind file_kind_of(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (matches(rules[i].glob, path))
            return rules[i].kind;
    return FILE_OTHER;
}

bool file_is_generated(const char *path)
{
    return matches(
        "{*.min.js,*.min.css,*.map,*.lock,package-lock.json,pnpm-lock.yaml,*.generated.*,*.pb.*,*_pb2.py}",
        path);
}
