// doctor: what is wrong here, and how to mend it; with a daemon or without.
#include "cli/command.h"
#include "cli/findings.h"
#include "cli/objects.h"

static int collect(struct invocation *in, struct finding_list *ret, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    struct error unreachable = ERROR_INIT;
    CLEANUP_JSON json_t *answer = NULL;
    if (!rest)
        return -1;
    if (rest_get(rest, REST_OWN "/doctor", &answer, &unreachable) < 0) {
        if (unreachable.code != ERROR_UNREACHABLE)
            return error_copy(err, &unreachable);
        findings_without_daemon(&in->config, ret);
        return 0;
    }
    return findings_from_json(answer, ret) < 0 ? error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer holds no findings") : 0;
}

static int run(struct invocation *in, struct error *err)
{
    CLEANUP(finding_list_free) struct finding_list list = {0};
    if (collect(in, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++)
        in->exit_code |= list.items[i].level == FINDING_FAIL;
    CLEANUP_JSON json_t *document = findings_to_json(&list);
    if (!object_print(in, document))
        findings_print(&list);
    return 0;
}

static const struct option_row options[] = {OPTION_OUTPUT(output_documents, "how to print them")};
const struct command command_doctor = {
    .name = "doctor", .synopsis = "", .summary = "Check what sandboxes need on this machine; exit code 1 if something fails", .run = run, COMMAND_OPTIONS(options),
};
