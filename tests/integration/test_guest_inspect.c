// inspect_workspace, and the analysis of search, of the real chat2shell-guest.
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "tests/support/guest_rig.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *usual_path; // where programs are looked for

static int start(void **state)
{
    struct guest_rig *rig = mem_alloc(sizeof(*rig));
    setenv("PATH", usual_path, 1);
    guest_rig_start(rig);
    *state = rig;
    return 0;
}

static int start_without_ctags(void **state)
{
    struct guest_rig *rig = mem_alloc(sizeof(*rig));
    setenv("PATH", "/nonexistent", 1);
    guest_rig_start(rig);
    setenv("PATH", usual_path, 1);
    *state = rig;
    return 0;
}

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    if (!value)
        fail_msg("the test's own JSON is wrong: %s", text);
    return value;
}

static json_t *inspect(struct guest_rig *rig, const char *args)
{
    return guest_rig_tool(rig, "inspect_workspace", parse(args));
}

static void assert_texts(const json_t *result, const char *name, const char *wanted)
{
    CLEANUP_FREE char *text = json_dumps(json_object_get(result, name), JSON_COMPACT);
    if (strcmp(text, wanted) != 0)
        fail_msg("%s is %s", name, text);
}

static void arguments_out_of_bounds_are_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {"{\"path\":5}", "at path"},
        {"{\"max_files\":0}", "at max_files"},
        {"{\"max_files\":100001}", "at max_files"},
        {"{\"max_symbols\":0}", "at max_symbols"},
        {"{\"max_symbols\":100001}", "at max_symbols"},
        {"{\"max_relationships\":0}", "at max_relationships"},
        {"{\"max_relationships\":250001}", "at max_relationships"},
        {"{\"include_symbols\":\"no\"}", "at include_symbols"},
        {"{\"include_relationships\":0}", "at include_relationships"},
        {"{\"path\":\"../x\"}", "Path escapes workspace root"},
        {"{\"path\":\"node_modules/x\"}", "Path is blocked by safety rules"},
        {"{\"path\":\"a\\u0000b\"}", "TypeError"},
        {"{\"path\":\"out\"}", "resolves outside workspace root"},
    };
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *out = mem_format("%s/out", rig->dir);
    assert_int_equal(symlink("/etc", out), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *args = json_loads(cases[i][0], JSON_ALLOW_NUL, NULL);
        CLEANUP_FREE char *text = guest_rig_tool_error(rig, "inspect_workspace", args);
        if (!strstr(text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], text);
    }
}

static void make_project(struct guest_rig *rig)
{
    guest_rig_put_text(rig, "package.json", "{}\n");
    guest_rig_put_text(rig, "README.md", "# x\n");
    guest_rig_put_text(rig, "Makefile", "all:\n");
    guest_rig_put_text(rig, "src/index.ts",
        "import { a } from './lib/a';\nexport function main() {}\nexport class App {}\n");
    guest_rig_put_text(rig, "src/lib/a.ts", "export const a = 1;\nexport interface Shape {}\n");
    guest_rig_put_text(rig, "src/lib/a.test.ts", "import { a } from './a.js';\nimport x from 'left-pad';\n");
    guest_rig_put_text(rig, "native/x.c", "#include \"x.h\"\n#include <stdio.h>\nint run(int a)\n{\n    return a;\n}\n");
    guest_rig_put_text(rig, "native/x.h", "struct thing {\n    int a;\n};\nint run(int a); // {a}\n");
    guest_rig_put_text(rig, "py/app/__init__.py", "");
    guest_rig_put_text(rig, "py/app/core.py",
        "from . import util\nfrom .util import helper\nclass Core:\n    def go(self): pass\n");
    guest_rig_put_text(rig, "py/app/util.py", "def helper():\n    pass\n");
    guest_rig_put_text(rig, "docs/guide.txt", "words\n");
    guest_rig_put_text(rig, "deploy/x.yaml", "a: 1\n");
    guest_rig_put_text(rig, "vendor/v.go", "package v\nfunc Vendored() {}\n");
    guest_rig_put_text(rig, "node_modules/m/index.js", "function hidden() {}\n");
    guest_rig_put(rig, "src/blob.bin", "a\0b", 3);
}

static const json_t *find(const json_t *list, const char *member, const char *text)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        const char *own = json_get_text(entry, member);
        if (own && strcmp(own, text) == 0)
            return entry;
    }
    return NULL;
}

static void assert_symbol(const json_t *result, const char *name, const char *kind, const char *path,
                          int line, bool is_exported)
{
    const json_t *symbol = find(json_object_get(result, "symbols"), "name", name);
    if (!symbol)
        fail_msg("no symbol %s", name);
    assert_string_equal(json_get_text(symbol, "kind"), kind);
    assert_string_equal(json_get_text(symbol, "path"), path);
    assert_int_equal(json_get_int(symbol, "line", 0), line);
    assert_int_equal(json_get_bool(symbol, "exported", !is_exported), is_exported);
    assert_string_equal(json_get_text(symbol, "confidence"), "strong");
}

static bool has_relation(const json_t *result, const char *from, const char *to, const char *kind)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(result, "relationships"), i,
                       entry) if (strcmp(json_get_text(entry, "from"), from) == 0 &&
                                  strcmp(json_get_text(entry, "to"), to) == 0 &&
                                  strcmp(json_get_text(entry, "kind"), kind) == 0) return true;
    return false;
}

static void assert_project_symbols(const json_t *result)
{
    assert_symbol(result, "main", "function", "src/index.ts", 2, true);
    assert_symbol(result, "App", "class", "src/index.ts", 3, true);
    assert_symbol(result, "a", "variable", "src/lib/a.ts", 1, true);
    assert_symbol(result, "Shape", "interface", "src/lib/a.ts", 2, true);
    assert_symbol(result, "run", "function", "native/x.c", 3, false);
    assert_symbol(result, "thing", "struct", "native/x.h", 1, false);
    assert_symbol(result, "Core", "class", "py/app/core.py", 3, false);
    assert_symbol(result, "go", "function", "py/app/core.py", 4, false);
    assert_null(
        find(json_object_get(result, "symbols"), "name", "Vendored")); // generated files are not scanned
    assert_null(find(json_object_get(result, "symbols"), "name", "hidden"));
}

static void a_project_is_mapped(void **state)
{
    struct guest_rig *rig = *state;
    make_project(rig);
    CLEANUP_JSON json_t *result = inspect(rig, "{}");
    assert_texts(result, "languages",
                 "[\"c\",\"go\",\"json\",\"markdown\",\"python\",\"typescript\",\"yaml\"]");
    assert_texts(result, "project_types", "[\"node\",\"native\"]");
    assert_texts(result, "entrypoints", "[\"src/index.ts\"]");
    assert_texts(result, "important_files", "[\"package.json\",\"README.md\"]");
    assert_project_symbols(result);
    assert_true(has_relation(result, "src/index.ts", "src/lib/a.ts", "imports"));
    assert_true(has_relation(result, "src/lib/a.test.ts", "src/lib/a.ts", "tests"));
    assert_true(has_relation(result, "native/x.c", "native/x.h", "imports"));
    assert_true(has_relation(result, "py/app/core.py", "py/app/util.py", "imports"));
    assert_int_equal(json_array_size(json_object_get(result, "relationships")), 4);
    const json_t *files = json_object_get(result, "files");
    assert_string_equal(json_get_text(find(files, "path", "vendor/v.go"), "role"), "generated");
    assert_true(json_get_bool(find(files, "path", "vendor/v.go"), "generated", false));
    assert_string_equal(json_get_text(find(files, "path", "docs/guide.txt"), "role"), "docs");
    assert_string_equal(json_get_text(find(files, "path", "deploy/x.yaml"), "role"), "infrastructure");
    assert_string_equal(json_get_text(find(files, "path", "src/lib/a.test.ts"), "role"), "test");
    assert_null(find(files, "path", "src/blob.bin"));
    const json_t *area = find(json_object_get(result, "areas"), "path", "src");
    assert_int_equal(json_get_int(area, "files", 0), 3);
    assert_string_equal(json_get_text(area, "role"), "source");
    assert_false(json_get_bool(result, "output_limited", true));
    assert_int_equal(json_get_int(json_object_get(result, "coverage"), "inventoryFiles", 0), 14);
}

static void without_ctags_the_scanner_finds_the_same(void **state)
{
    make_project(*state);
    CLEANUP_JSON json_t *result = inspect(*state, "{}");
    assert_string_equal(json_get_text(result, "symbol_source"), "built-in scanner");
    assert_project_symbols(result);
}

static void the_scanner_knows_the_documented_declarations(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a.js",
        "async function* gen(x) {}\nexport default class {}\n  function inner() {}\n  const local = 1;\n"
        "/* function no1() {}\nfunction no2() {}\n*/\n// function no3() {}\nlet {x} = y;\n");
    guest_rig_put_text(rig, "b.go", "func (r *T) Method(a int) {\nfunc Plain[T any]() {\ntype T struct {\n");
    guest_rig_put_text(rig, "c.rs",
        "pub(crate) async unsafe fn f1<T>() {}\npub extern \"C\" fn f2() {}\npub struct S1;\nenum E1 {\n"
        "pub trait T1: Sized {\n");
    guest_rig_put_text(rig, "d.sh", "one() {\n:\n}\nfunction two {\n:\n}\nthree () \n{\n}\necho four()\n");
    guest_rig_put_text(rig, "e.swift",
        "public final class K1: NSObject {\nprotocol P1 {\nclass func cf() {}\nfunc f3() {}\n");
    guest_rig_put_text(rig, "f.java", "public abstract class J1 extends X {\ninterface I1 {\nenum E2 {\n");
    guest_rig_put_text(rig, "g.cs", "public sealed class C1 : B\n{\ninternal struct S2 {}\n");
    guest_rig_put_text(rig, "h.c",
        "static inline unsigned long\nlong_one(int a,\n         int b)\n{\n}\n"
        "__attribute__((noreturn)) void die(const char *f, ...) {\nint x = call(1);\nMACRO(z)\n{\n}\n"
        "int proto(int);\nif (x) {\ntypedef enum e3 {\nint *ptr(void) { return 0; }\n");
    guest_rig_put_text(rig, "i.py", "async def co(a): pass\nclass Q(object):\n    pass\ndefine x\nclassic = 1\n");
    CLEANUP_JSON json_t *result = inspect(rig, "{}");
    CLEANUP(buffer_free) struct buffer names = BUFFER_INIT(10000);
    size_t i;
    json_t *symbol;
    json_array_foreach(json_object_get(result, "symbols"), i, symbol)
        buffer_format(&names, "%s:%s ", json_get_text(symbol, "name"), json_get_text(symbol, "kind"));
    assert_string_equal(
        buffer_text(&names),
        "gen:function inner:function Method:function Plain:function T:type f1:function f2:function "
        "S1:struct E1:enum T1:trait one:function two:function three:function K1:class P1:protocol "
        "cf:function f3:function J1:class I1:interface E2:enum C1:class S2:struct "
        "long_one:function die:function e3:enum ptr:function co:function Q:class ");
}

static void lists_are_narrowed_by_path_and_cut_at_their_maxima(void **state)
{
    struct guest_rig *rig = *state;
    make_project(rig);
    CLEANUP_JSON json_t *narrow = inspect(rig, "{\"path\":\"./src/lib/\"}");
    assert_string_equal(json_get_text(narrow, "path"), "./src/lib/");
    assert_int_equal(json_array_size(json_object_get(narrow, "files")), 2);
    assert_texts(narrow, "entrypoints", "[]");
    assert_texts(narrow, "project_types", "[\"node\",\"native\"]");
    assert_true(has_relation(narrow, "src/index.ts", "src/lib/a.ts", "imports")); // one end is inside
    assert_int_equal(json_array_size(json_object_get(narrow, "relationships")), 2);
    CLEANUP_JSON json_t *file = inspect(rig, "{\"path\":\"src/index.ts\"}");
    assert_int_equal(json_array_size(json_object_get(file, "files")), 1);
    CLEANUP_JSON json_t *nothing = inspect(rig, "{\"path\":\"no/such\"}");
    assert_texts(nothing, "files", "[]");
    assert_false(json_get_bool(nothing, "output_limited", true));
    CLEANUP_JSON json_t *cut = inspect(rig, "{\"max_files\":1,\"max_symbols\":2,\"max_relationships\":3}");
    assert_true(json_get_bool(cut, "output_limited", false));
    assert_texts(cut, "returned", "{\"files\":1,\"symbols\":2,\"relationships\":3}");
    assert_int_equal(json_array_size(json_object_get(cut, "warnings")), 1);
    CLEANUP_JSON json_t *none = inspect(rig, "{\"include_symbols\":false,\"include_relationships\":false}");
    assert_texts(none, "symbols", "[]");
    assert_texts(none, "relationships", "[]");
    assert_false(json_get_bool(none, "output_limited", true));
}

static void the_second_look_is_from_memory_until_something_changes(void **state)
{
    struct guest_rig *rig = *state;
    make_project(rig);
    CLEANUP_JSON json_t *first = inspect(rig, "{}");
    CLEANUP_JSON json_t *second = inspect(rig, "{}");
    json_t *cache = json_object_get(first, "cache"), *again = json_object_get(second, "cache");
    assert_false(json_get_bool(cache, "hit", true));
    assert_true(json_get_bool(again, "hit", false));
    assert_string_equal(json_get_text(cache, "key"), json_get_text(again, "key"));
    assert_memory_equal(json_get_text(cache, "key"), json_get_text(first, "workspace_id"), 27);
    json_object_del(first, "cache");
    json_object_del(second, "cache");
    assert_true(json_equal(first, second));
    guest_rig_put_text(rig, "src/lib/a.ts", "export const b = 1;\nexport function later() {}\n");
    CLEANUP_JSON json_t *third = inspect(rig, "{}");
    assert_false(json_get_bool(json_object_get(third, "cache"), "hit", true));
    assert_symbol(third, "later", "function", "src/lib/a.ts", 2, true);
    assert_null(find(json_object_get(third, "symbols"), "name", "Shape"));
    CLEANUP_FREE char *path = mem_format("%s/src/lib/a.ts", rig->dir);
    assert_int_equal(unlink(path), 0);
    CLEANUP_JSON json_t *fourth = inspect(rig, "{}");
    assert_null(find(json_object_get(fourth, "symbols"), "name", "later"));
    assert_false(has_relation(fourth, "src/index.ts", "src/lib/a.ts", "imports"));
}

static void hostile_files_neither_hold_nor_crash_it(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_CLOSE int dir = open(rig->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_FREE char *line = mem_alloc(700001);
    memset(line, '(', 700000);
    guest_rig_put_text(rig, "endless.c", line);
    memset(line, 'x', 700000);
    guest_rig_put_text(rig, "endless.js", line);
    guest_rig_put_text(rig, "bad.py", "def caf\xe9(): pass\ndef fine(): pass\n\xff\xfe\n");
    guest_rig_put_text(rig, "-L.c", "int option(void)\n{\n}\n");
    guest_rig_put_text(rig, "--options=x.c", "int option2(void)\n{\n}\n");
    guest_rig_put_text(rig, "new\nline.c", "int odd(void)\n{\n}\n");
    guest_rig_put_text(rig, "blank.c ", "int blank(void)\n{\n}\n");
    guest_rig_put_text(rig, "bad\xff.c", "int badname(void)\n{\n}\n");
    guest_rig_put_text(rig, ".ctags.d/x.ctags", "--map-C=+.md\n--kinddef-C=z,zz,zz\n--regex-C=/(.*)/\\1/z/\n");
    assert_int_equal(mkfifoat(dir, "fifo.c", 0600), 0);
    assert_int_equal(symlinkat("/etc", dir, "etc"), 0);
    assert_int_equal(symlinkat("/dev/zero", dir, "zero.c"), 0);
    assert_int_equal(symlinkat(".", dir, "loop"), 0);
    for (int i = 0; i < 300; i++) {
        CLEANUP_FREE char *name = mem_format("storm%d.c", i);
        assert_int_equal(symlinkat(i % 2 ? "endless.c" : name, dir, name), 0);
    }
    CLEANUP_JSON json_t *result = inspect(rig, "{}");
    const json_t *symbols = json_object_get(result, "symbols"), *files = json_object_get(result, "files");
    assert_non_null(find(symbols, "name", "fine"));
    assert_non_null(find(symbols, "name", "option"));
    assert_non_null(find(symbols, "name", "option2"));
    assert_non_null(find(symbols, "name", "odd"));
    assert_non_null(find(symbols, "name", "badname"));
    assert_non_null(find(files, "path", "bad\xef\xbf\xbd.c"));
    assert_null(find(files, "path", "fifo.c"));
    assert_null(find(files, "path", "zero.c"));
    assert_null(find(files, "path", "etc/passwd"));
    assert_null(find(files, "path", "storm1.c"));
    assert_int_equal(json_array_size(files), 9);
}

static void a_ctags_that_fails_or_lies_leaves_the_scanners_symbols(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\necho 'not json'\necho "
        "'{\"name\":\"x\",\"path\":\"../../etc/passwd\",\"kind\":\"function\",\"line\":1}'\n"
        "echo '{\"name\":\"x\",\"path\":\"./a.c\",\"kind\":\"function\",\"line\":-1}'\n"
        "echo '{\"name\":\"x\",\"path\":\"./a.c\",\"kind\":7,\"line\":1}'\necho '[]'\nprintf '\\377\\n{'\n",
        "#!/bin/sh\nwhile :; do echo "
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; "
        "done\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        CLEANUP_FREE char *dir = support_make_dir();
        CLEANUP_FREE char *path = mem_format("%s:%s", dir, usual_path);
        CLEANUP_FREE char *program = mem_format("%s/ctags", dir);
        FILE *file = fopen(program, "we");
        fputs(programs[i], file);
        fclose(file);
        assert_int_equal(chmod(program, 0755), 0);
        setenv("PATH", path, 1);
        struct guest_rig rig;
        guest_rig_start(&rig);
        setenv("PATH", usual_path, 1);
        guest_rig_put_text(&rig, "a.c", "int here(void)\n{\n}\n");
        CLEANUP_JSON json_t *result = inspect(&rig, "{}");
        assert_symbol(result, "here", "function", "a.c", 1, false);
        assert_int_equal(json_array_size(json_object_get(result, "symbols")), 1);
        assert_int_equal(json_array_size(json_object_get(result, "warnings")), i != 1);
        assert_int_equal(guest_rig_stop(&rig), 0);
        support_remove_dir(TAKE_PTR(dir));
    }
}

static void make_tree(struct guest_rig *rig, int files)
{
    CLEANUP_JSON json_t *made =
        guest_rig_tool(rig, "bash",
                       json_pack("{s:o s:i}", "command",
                                 json_sprintf("i=0; while [ $i -lt %d ]; do d=d$((i / 500)); mkdir -p $d; "
                                              "j=0; while [ $j -lt 500 ]; do printf 'int "
                                              "f%%d(void)\\n{\\n}\\n' $j >$d/f$j.c; j=$((j+1)); done; "
                                              "i=$((i+500)); done",
                                              files),
                                 "timeout_ms", 600000));
    assert_int_equal(json_get_int(made, "exitCode", -1), 0);
}

// On a busy machine one look may end at its time limit; what it read is kept for the next.
static json_t *inspect_to_the_end(struct guest_rig *rig, const char *args)
{
    for (int i = 0; i < 50; i++) {
        json_t *result = inspect(rig, args);
        CLEANUP_FREE char *warnings = json_dumps(json_object_get(result, "warnings"), 0);
        if (!strstr(warnings, "ask again"))
            return result;
        json_decref(result);
    }
    fail_msg("it never comes to an end");
    return NULL;
}

static void a_large_tree_stays_within_the_limits_and_says_so(void **state)
{
    struct guest_rig *rig = *state;
    make_tree(rig, 21000);
    CLEANUP_JSON json_t *result =
        inspect_to_the_end(rig, "{\"max_files\":100000,\"max_symbols\":100000,\"max_relationships\":250000}");
    json_t *coverage = json_object_get(result, "coverage");
    assert_int_equal(json_get_int(coverage, "inventoryFiles", 0), 20000);
    assert_int_equal(json_get_int(coverage, "analyzedFiles", 0), 5000);
    assert_int_equal(json_get_int(coverage, "symbolCount", 0), 5000);
    assert_true(json_get_bool(coverage, "truncated", false));
    assert_true(json_array_size(json_object_get(coverage, "warnings")) >= 2);
    assert_true(json_get_bool(result, "output_limited", false));
    CLEANUP_JSON json_t *again = inspect_to_the_end(rig, "{}");
    assert_true(json_get_bool(json_object_get(again, "cache"), "hit", false));
}

static void two_looks_at_once_both_answer(void **state)
{
    struct guest_rig *rig = *state;
    int64_t ids[8];
    make_project(rig);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        ids[i] = guest_rig_send(rig, "tools/call",
                                json_pack("{s:s s:{}}", "name", "inspect_workspace", "arguments"));
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        CLEANUP_JSON json_t *answer = guest_rig_wait(rig, ids[i]);
        assert_project_symbols(json_object_get(json_object_get(answer, "result"), "structuredContent"));
    }
}

// --- the analysis of search

static json_t *analyze(struct guest_rig *rig, const char *args)
{
    CLEANUP_JSON json_t *result = guest_rig_tool(rig, "search", parse(args));
    json_t *analysis = json_object_get(result, "analysis");
    assert_non_null(analysis);
    return json_incref(analysis);
}

static json_t *match_at(const json_t *list, size_t i, const char *path, int line, int score,
                        const char *confidence)
{
    json_t *match = json_array_get(list, i);
    if (!match)
        fail_msg("there is no match %zu", i);
    assert_string_equal(json_get_text(match, "path"), path);
    assert_int_equal(json_get_int(match, "line", 0), line);
    assert_int_equal(json_get_int(match, "score", 0), score);
    assert_string_equal(json_get_text(match, "confidence"), confidence);
    assert_int_equal(json_array_size(json_object_get(match, "reasons")), 1);
    return match;
}

static void a_name_is_followed_through_the_repository(void **state)
{
    struct guest_rig *rig = *state;
    make_project(rig);
    guest_rig_put_text(rig, "native/user.c", "#include \"x.h\"\nint y = RUN(1);\n");
    guest_rig_put_text(rig, "native/other.c", "#include \"x.h\"\nint z;\n");
    guest_rig_put_text(rig, "tests/check.c", "#include \"../native/x.h\"\nint t = run(2);\n");
    CLEANUP_JSON json_t *analysis =
        analyze(rig, "{\"query\":\"run\",\"intent\":\"impact\",\"include_tests\":true}");
    json_t *groups = json_object_get(analysis, "groups"), *matches = json_object_get(analysis, "matches");
    json_t *definitions = json_object_get(groups, "definitions");
    match_at(definitions, 0, "native/x.c", 3, 190, "strong");
    const json_t *references = json_object_get(groups, "references");
    match_at(references, json_array_size(references) - 1, "native/x.c", 1, 165, "strong");
    const json_t *importer = find(references, "path", "native/other.c");
    assert_int_equal(json_get_int(importer, "score", 0), 165);
    assert_string_equal(json_get_text(importer, "text"), "#include \"x.h\"");
    const json_t *tests = json_object_get(groups, "tests");
    match_at(tests, 0, "tests/check.c", 2, 160, "medium");
    match_at(tests, 1, "tests/check.c", 1, 170, "strong");
    match_at(matches, 0, "native/x.c", 3, 190, "strong");
    for (size_t i = 1; i < json_array_size(matches); i++)
        assert_true(json_get_int(json_array_get(matches, i), "score", 999) <=
                    json_get_int(json_array_get(matches, i - 1), "score", 0));
    json_t *coverage = json_object_get(analysis, "coverage");
    assert_true(json_get_int(coverage, "inventoryFiles", 0) > 10 &&
                json_get_int(coverage, "symbolCount", 0) > 5);
    CLEANUP_JSON json_t *again = analyze(rig, "{\"query\":\"\",\"symbol\":\"run\"}");
    assert_string_equal(json_get_text(again, "intent"), "symbol");
    assert_string_equal(json_get_text(again, "query"), "run");
    assert_true(json_get_bool(json_object_get(again, "cache"), "hit", false));
    assert_int_equal(json_array_size(json_object_get(json_object_get(again, "groups"), "tests")), 0);
    assert_null(
        find(json_object_get(again, "matches"), "path", "native/other.c")); // no importers were asked for
}

static void a_declaration_makes_room_for_itself_among_many_mentions(void **state)
{
    struct guest_rig *rig = *state;
    struct buffer text = BUFFER_INIT(100000);
    for (int i = 0; i < 300; i++)
        buffer_append_text(&text, "needle(1);\n");
    guest_rig_put_text(rig, "a.c", buffer_text(&text));
    guest_rig_put_text(rig, "z.c", "int needle(int a)\n{\n    return a;\n}\n");
    guest_rig_put_text(rig, "zz.h", "int needle(int a);\n");
    CLEANUP_JSON json_t *analysis =
        analyze(rig, "{\"query\":\"needle\",\"intent\":\"symbol\",\"max_results\":5}");
    json_t *matches = json_object_get(analysis, "matches");
    assert_int_equal(json_array_size(matches), 5);
    match_at(matches, 0, "z.c", 1, 190, "strong");
    assert_true(json_get_bool(json_object_get(analysis, "coverage"), "truncated", false));
    assert_int_equal(json_array_size(json_object_get(analysis, "warnings")), 1);
    buffer_free(&text);
}

static void a_regex_a_sentence_and_a_strange_name_are_answered_too(void **state)
{
    struct guest_rig *rig = *state;
    make_project(rig);
    CLEANUP_JSON json_t *regex = analyze(rig, "{\"query\":\"r.n\",\"regex\":true,\"intent\":\"symbol\"}");
    assert_texts(regex, "matches", "[]");
    assert_int_equal(json_array_size(json_object_get(regex, "warnings")), 1);
    CLEANUP_JSON json_t *text = analyze(rig, "{\"query\":\"return a\",\"intent\":\"auto\"}");
    assert_string_equal(json_get_text(text, "intent"), "text");
    match_at(json_object_get(text, "matches"), 0, "native/x.c", 5, 100, "low");
    CLEANUP_JSON json_t *strange = analyze(rig, "{\"query\":\"\\\\E(?:.*)+$\",\"intent\":\"references\"}");
    assert_texts(strange, "matches", "[]");
    CLEANUP_JSON json_t *tests = analyze(rig, "{\"query\":\"left-pad\",\"include_tests\":true}");
    match_at(json_object_get(tests, "matches"), 0, "src/lib/a.test.ts", 2, 160, "medium");
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, start, guest_rig_teardown)
#define WITHOUT_CTAGS(test) cmocka_unit_test_setup_teardown(test, start_without_ctags, guest_rig_teardown)

int main(void)
{
    usual_path = mem_strdup(getenv("PATH"));
    const struct CMUnitTest tests[] = {
        WITH_GUEST(arguments_out_of_bounds_are_refused_by_name),
        WITH_GUEST(a_project_is_mapped),
        WITHOUT_CTAGS(without_ctags_the_scanner_finds_the_same),
        WITHOUT_CTAGS(the_scanner_knows_the_documented_declarations),
        WITH_GUEST(lists_are_narrowed_by_path_and_cut_at_their_maxima),
        WITH_GUEST(the_second_look_is_from_memory_until_something_changes),
        WITH_GUEST(hostile_files_neither_hold_nor_crash_it),
        WITHOUT_CTAGS(hostile_files_neither_hold_nor_crash_it),
        cmocka_unit_test(a_ctags_that_fails_or_lies_leaves_the_scanners_symbols),
        WITH_GUEST(a_large_tree_stays_within_the_limits_and_says_so),
        WITH_GUEST(two_looks_at_once_both_answer),
        WITH_GUEST(a_name_is_followed_through_the_repository),
        WITHOUT_CTAGS(a_name_is_followed_through_the_repository),
        WITH_GUEST(a_declaration_makes_room_for_itself_among_many_mentions),
        WITH_GUEST(a_regex_a_sentence_and_a_strange_name_are_answered_too),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(usual_path);
    return failed;
}
