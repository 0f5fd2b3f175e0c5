#include "reconcilers/egress/options.h"
#include "controller/base/cleanup.h"
#include <string.h>

static int take_fd(const char *flag, const char *value, int *ret, struct error *err)
{
    char *end;
    long fd = strtol(value, &end, 10);
    if (end == value || *end || fd < 3 || fd > 1 << 20)
        return error_set(err, ERROR_USAGE, NULL, "%s %s is not a descriptor number from 3 on", flag, value);
    *ret = (int)fd;
    return 0;
}

static int take_control(struct options *options, const char *value, struct error *err)
{
    return take_fd("--control-fd", value, &options->control_fd, err);
}

static int take_proxy(struct options *options, const char *value, struct error *err)
{
    return take_fd("--proxy-fd", value, &options->proxy_fd, err);
}

static int take_connector(struct options *options, const char *value, struct error *err)
{
    return take_fd("--connector-fd", value, &options->connector_fd, err);
}

static int take_deny(struct options *options, const char *value, struct error *err)
{
    return name_list_add(&options->denied, value, err);
}

static int take_upstream(struct options *options, const char *value, struct error *err)
{
    const char *problem = "only http:// is supported";
    size_t len = strlen(value);
    if (len && value[len - 1] == '/')
        len--;
    if (strncmp(value, "http://", 7) != 0 || len < 8 ||
        endpoint_parse(value + 7, len - 7, 0, &options->upstream, &problem) < 0)
        return error_set(err, ERROR_USAGE, "write http://host:port", "--upstream %s: %s", value, problem);
    options->has_upstream = true;
    return 0;
}

static const struct option_row {
    const char *name;
    int (*take)(struct options *options, const char *value, struct error *err);
} rows[] = {
    {"--control-fd", take_control}, {"--proxy-fd", take_proxy},    {"--connector-fd", take_connector},
    {"--deny", take_deny},          {"--upstream", take_upstream},
};

static const struct option_row *find_row(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

int options_parse(int argc, char **argv, struct options *ret, struct error *err)
{
    *ret = (struct options){.control_fd = -1, .proxy_fd = -1, .connector_fd = -1};
    for (int i = 1; i < argc; i += 2) {
        const struct option_row *row = find_row(argv[i]);
        if (!row)
            return error_set(err, ERROR_USAGE, NULL, "unknown option %s", argv[i]);
        if (i + 1 == argc)
            return error_set(err, ERROR_USAGE, NULL, "%s needs a value", argv[i]);
        if (row->take(ret, argv[i + 1], err) < 0)
            return -1;
    }
    if (ret->control_fd < 0 || ret->proxy_fd < 0 || ret->connector_fd < 0)
        return error_set(err, ERROR_USAGE, "chat2shell-egress is started by chat2shell, not by hand",
                         "--control-fd, --proxy-fd and --connector-fd are all needed");
    return 0;
}
