#include "tests/support/support.h"
#include "controller/config.h"
#include "controller/config_path.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *home; // a temporary directory

static int set_up(void **state)
{
    (void)state;
    const struct config_variable *at;
    for (size_t i = 0; (at = config_variable(i)); i++)
        unsetenv(at->name);
    home = support_make_dir();
    setenv("HOME", home, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_remove_dir(home);
    return 0;
}

static void assert_below_home(const char *path, const char *rest)
{
    CLEANUP_FREE char *expected = mem_format("%s/%s", home, rest);
    assert_string_equal(path, expected);
}

static void an_empty_environment_gives_the_documented_defaults(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP(config_free) struct config config = {0};
    assert_ok(config_load(&config, &err));
    assert_string_equal(config.host, "127.0.0.1");
    assert_int_equal(config.port, 18788);
    assert_int_equal(config.kube_port, 18789);
    assert_int_equal(config.max_sandboxes, 64);
    assert_below_home(config.data_root, ".chat2shell");
    assert_below_home(config.state_dir, ".chat2shell/state");
    assert_below_home(config.workspace_root, ".chat2shell/workspaces");
    assert_int_equal(config.allowed_host_roots.count, 1);
    assert_below_home(config.allowed_host_roots.items[0], "repositories");
    assert_string_equal(config.driver, "auto");
    assert_true(config.is_tunnel_enabled);
    assert_below_home(config.secret_dir, ".secrets/tunnel-client");
    assert_below_home(config.tunnel_client, ".local/bin/tunnel-client");
    assert_int_equal(config.program_dir[0], '/');
    assert_int_equal(access(config.program_dir, X_OK), 0);
}

static void state_and_workspaces_follow_the_data_root(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    setenv("CHAT2SHELL_DATA_ROOT", "/srv//chat/./data/", 1);
    setenv("CHAT2SHELL_ALLOWED_HOST_ROOTS", "/srv/repositories:~/code:", 1);
    CLEANUP(config_free) struct config config = {0};
    assert_ok(config_load(&config, &err));
    assert_string_equal(config.data_root, "/srv/chat/data");
    assert_string_equal(config.state_dir, "/srv/chat/data/state");
    assert_string_equal(config.workspace_root, "/srv/chat/data/workspaces");
    assert_int_equal(config.allowed_host_roots.count, 2);
    assert_string_equal(config.allowed_host_roots.items[0], "/srv/repositories");
    assert_below_home(config.allowed_host_roots.items[1], "code");
}

static void an_empty_list_of_roots_allows_no_host_path(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    setenv("CHAT2SHELL_ALLOWED_HOST_ROOTS", "", 1);
    CLEANUP(config_free) struct config config = {0};
    assert_ok(config_load(&config, &err));
    assert_int_equal(config.allowed_host_roots.count, 0);
}

static void each_wrong_value_is_refused_and_named(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
    } wrong[] = {
        {"CHAT2SHELL_HOST", "0.0.0.0"},
        {"CHAT2SHELL_HOST", "192.168.1.5"},
        {"CHAT2SHELL_HOST", "localhost"},
        {"CHAT2SHELL_HOST", "::"},
        {"CHAT2SHELL_HOST", ""},
        {"CHAT2SHELL_HOST", "127.0.0.1 "},
        {"CHAT2SHELL_MAX_SANDBOXES", "0"},
        {"CHAT2SHELL_MAX_SANDBOXES", "4097"},
        {"CHAT2SHELL_MAX_SANDBOXES", "many"},
        {"CHAT2SHELL_PORT", "65536"},
        {"CHAT2SHELL_KUBE_PORT", "65536"},
        {"CHAT2SHELL_PORT", "-1"},
        {"CHAT2SHELL_PORT", "80x"},
        {"CHAT2SHELL_PORT", " 80"},
        {"CHAT2SHELL_PORT", ""},
        {"CHAT2SHELL_PORT", "99999999999999999999"},
        {"CHAT2SHELL_DATA_ROOT", "data"},
        {"CHAT2SHELL_DATA_ROOT", "/"},
        {"CHAT2SHELL_DATA_ROOT", "//"},
        {"CHAT2SHELL_DATA_ROOT", "/a/../b"},
        {"CHAT2SHELL_DATA_ROOT", "/a\nb"},
        {"CHAT2SHELL_DATA_ROOT", "/a\xff"},
        {"CHAT2SHELL_STATE_DIR", "~other/x"},
        {"CHAT2SHELL_STATE_DIR", ""},
        {"CHAT2SHELL_WORKSPACE_ROOT", "./x"},
        {"CHAT2SHELL_ALLOWED_HOST_ROOTS", "/ok:relative"},
        {"CHAT2SHELL_ALLOWED_HOST_ROOTS", "/"},
        {"CHAT2SHELL_ALLOWED_HOST_ROOTS", "~"},
        {"CHAT2SHELL_DRIVER", "docker"},
        {"CHAT2SHELL_DRIVER", "Auto"},
        {"CHAT2SHELL_ENABLE_TUNNEL", "yes"},
        {"CHAT2SHELL_ENABLE_TUNNEL", "01"},
        {"CHAT2SHELL_SECRET_DIR", "x"},
        {"CHAT2SHELL_TUNNEL_CLIENT", "tunnel-client"},
        {"CHAT2SHELL_AUTH", ""},
        {"CHAT2SHELL_AUTH", "Token"},
        {"CHAT2SHELL_AUTH", "oauth,token"},
        {"CHAT2SHELL_PUBLIC_URL", "box.example"},
        {"CHAT2SHELL_PUBLIC_URL", "ftp://box.example"},
        {"CHAT2SHELL_PUBLIC_URL", "https://"},
        {"CHAT2SHELL_PUBLIC_URL", "https://a:b@box.example/mcp"},
        {"CHAT2SHELL_PUBLIC_URL", "https://box.example/mcp?x"},
        {"CHAT2SHELL_PUBLIC_URL", "https://box.example/mcp#x"},
        {"CHAT2SHELL_PUBLIC_URL", "https://box.example/\"x"},
        {"CHAT2SHELL_PUBLIC_URL", "https://box.example/\r\nX: y"},
        {"CHAT2SHELL_PUBLIC_URL", "https://box.example:port/"},
        {"CHAT2SHELL_PUBLIC_URL", "https://[::1/"},
        {"CHAT2SHELL_PUBLIC_URL", "https://b\xc3\xb6x.example/"},
        {"CHAT2SHELL_OAUTH_ISSUER", "http://login.example"},
        {"CHAT2SHELL_OAUTH_JWKS", "http://10.0.0.1/keys"},
        {"CHAT2SHELL_OAUTH_JWKS", "keys.json"},
        {"CHAT2SHELL_MCP_TOKEN_FILE", "token"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct error err = ERROR_INIT;
        struct config config = {.port = 5};
        setenv(wrong[i].name, wrong[i].value, 1);
        if (config_load(&config, &err) == 0)
            fail_msg("%s=%s was taken", wrong[i].name, wrong[i].value);
        if (!strstr(err.message, wrong[i].name) || !err.hint[0])
            fail_msg("%s=%s: no name or hint in: %s", wrong[i].name, wrong[i].value, err.message);
        assert_int_equal(config.port, 5); // outputs are untouched
        unsetenv(wrong[i].name);
    }
}

static void another_address_is_taken_only_where_callers_are_asked_who_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *host, *auth;
        bool is_taken;
    } rows[] = {{"0.0.0.0", "none", false}, {"192.168.1.5", "none", false}, {"127.8.8.8", "none", true}, {"0.0.0.0", "token", true}, {"192.168.1.5", "token", true},
                {"0.0.0.0", "oauth", true}, {"10.0.0.1", "token,oauth", true}};
    setenv("CHAT2SHELL_PUBLIC_URL", "https://box.example/mcp", 1);
    setenv("CHAT2SHELL_OAUTH_ISSUER", "https://login.example", 1);
    setenv("CHAT2SHELL_OAUTH_JWKS", "https://login.example/keys", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = ERROR_INIT;
        CLEANUP(config_free) struct config config = {0};
        setenv("CHAT2SHELL_HOST", rows[i].host, 1);
        setenv("CHAT2SHELL_AUTH", rows[i].auth, 1);
        if ((config_load(&config, &err) == 0) != rows[i].is_taken)
            fail_msg("%s with %s: %s", rows[i].host, rows[i].auth, err.message);
        assert_true(rows[i].is_taken || err.code == ERROR_REFUSED);
    }
}

static void several_wrong_values_are_all_named_at_once(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct config config;
    setenv("CHAT2SHELL_PORT", "x", 1);
    setenv("CHAT2SHELL_DRIVER", "y", 1);
    setenv("CHAT2SHELL_DATA_ROOT", "z", 1);
    assert_error(config_load(&config, &err), ERROR_INVALID);
    assert_non_null(strstr(err.message, "CHAT2SHELL_PORT: 'x' is not a port"));
    assert_non_null(strstr(err.message, "CHAT2SHELL_DRIVER"));
    assert_non_null(strstr(err.message, "CHAT2SHELL_DATA_ROOT"));
}

static void nothing_of_ours_overlaps_an_allowed_root_even_through_a_symlink(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct config config;
    CLEANUP_FREE char *target = mem_format("%s/data", home), *link = mem_format("%s/link", home);
    assert_ok(fs_make_private_dir(target, NULL, &err));
    assert_int_equal(symlink(target, link), 0);
    setenv("CHAT2SHELL_DATA_ROOT", target, 1);
    setenv("CHAT2SHELL_ALLOWED_HOST_ROOTS", link, 1);
    assert_error(config_load(&config, &err), ERROR_REFUSED);
    setenv("CHAT2SHELL_ALLOWED_HOST_ROOTS", "~/data/state/deeper", 1);
    assert_error(config_load(&config, &err), ERROR_REFUSED);
    setenv("CHAT2SHELL_ALLOWED_HOST_ROOTS", "~/elsewhere", 1);
    setenv("CHAT2SHELL_STATE_DIR", "~/elsewhere/x/state", 1);
    assert_error(config_load(&config, &err), ERROR_REFUSED);
    assert_non_null(strstr(err.message, "CHAT2SHELL_STATE_DIR"));
    setenv("CHAT2SHELL_STATE_DIR", "~/data/workspaces/state", 1);
    assert_error(config_load(&config, &err), ERROR_REFUSED);
}

static void a_similar_name_is_no_overlap(void **state)
{
    (void)state;
    assert_false(config_path_overlaps("/srv/data", "/srv/data2"));
    assert_true(config_path_overlaps("/srv/data", "/srv/data"));
    assert_true(config_path_overlaps("/srv/data/x", "/srv/data"));
    assert_true(config_path_overlaps("/", "/srv/data"));
}

static void without_home_the_password_database_tells(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    unsetenv("HOME");
    CLEANUP_FREE char *found = NULL;
    assert_ok(config_path_home(&found, &err));
    assert_int_equal(found[0], '/');
}

// ---- deploy/env.example -------------------------------------------------------------------------

// Test programs are in build/X/tests.
static char *read_example(void)
{
    struct error err = ERROR_INIT;
    char exe[4096];
    ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    assert_true(len > 0);
    exe[len] = '\0';
    *strrchr(exe, '/') = '\0';
    CLEANUP_FREE char *path = mem_format("%s/../../../deploy/env.example", exe);
    struct buffer text = BUFFER_INIT(100000);
    assert_ok(fs_read_file(access(path, R_OK) == 0 ? path : "deploy/env.example", &text, &err));
    return buffer_take_string(&text);
}

static const struct config_variable *find(const char *line, size_t len)
{
    const struct config_variable *at;
    for (size_t i = 0; (at = config_variable(i)); i++)
        if (strlen(at->name) == len && strncmp(at->name, line, len) == 0)
            break;
    return at;
}

static void every_variable_stands_in_env_example_with_its_comment_and_the_reverse(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = read_example();
    size_t known = 0, listed = 0;
    for (const struct config_variable *at; (at = config_variable(known)); known++) {
        CLEANUP_FREE char *entry = mem_format("\n# %s\n#%s=", at->doc, at->name);
        if (!strstr(text, entry))
            fail_msg("%s or its line '%s' is missing in deploy/env.example", at->name, at->doc);
    }
    for (const char *at = text; (at = strstr(at, "\n#CHAT2SHELL_")); listed++) {
        at += 2;
        if (!find(at, strcspn(at, "=")))
            fail_msg("deploy/env.example lists an unknown variable: %.40s", at);
    }
    assert_int_equal(listed, known);
}

static void the_values_in_env_example_are_the_defaults(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP(config_free) struct config plain = {0};
    CLEANUP(config_free) struct config config = {0};
    assert_ok(config_load(&plain, &err));
    CLEANUP_FREE char *text = read_example();
    for (char *at = text; (at = strstr(at, "\n#CHAT2SHELL_"));) {
        at += 2;
        CLEANUP_FREE char *line = mem_strndup(at, strcspn(at, "\n"));
        char *value = strchr(line, '=');
        *value++ = '\0';
        setenv(line, value, 1);
    }
    assert_ok(config_load(&config, &err));
    assert_string_equal(config.host, plain.host);
    assert_int_equal(config.port, plain.port);
    assert_string_equal(config.data_root, plain.data_root);
    assert_string_equal(config.state_dir, plain.state_dir);
    assert_string_equal(config.workspace_root, plain.workspace_root);
    assert_int_equal(config.allowed_host_roots.count, 1);
    assert_string_equal(config.allowed_host_roots.items[0], plain.allowed_host_roots.items[0]);
    assert_string_equal(config.driver, plain.driver);
    assert_int_equal(config.is_tunnel_enabled, plain.is_tunnel_enabled);
    assert_string_equal(config.secret_dir, plain.secret_dir);
    assert_string_equal(config.tunnel_client, plain.tunnel_client);
}

#define IN_HOME(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_HOME(an_empty_environment_gives_the_documented_defaults),
        IN_HOME(state_and_workspaces_follow_the_data_root),
        IN_HOME(an_empty_list_of_roots_allows_no_host_path),
        IN_HOME(each_wrong_value_is_refused_and_named),
        IN_HOME(another_address_is_taken_only_where_callers_are_asked_who_they_are),
        IN_HOME(several_wrong_values_are_all_named_at_once),
        IN_HOME(nothing_of_ours_overlaps_an_allowed_root_even_through_a_symlink),
        IN_HOME(a_similar_name_is_no_overlap),
        IN_HOME(without_home_the_password_database_tells),
        IN_HOME(every_variable_stands_in_env_example_with_its_comment_and_the_reverse),
        IN_HOME(the_values_in_env_example_are_the_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
