// label and annotate: the two maps of an object's metadata that people write.
#include "cli/apply.h"
#include "cli/label.h"
#include "cli/manifests.h"
#include "cli/objects.h"
#include "cli/removal.h"
#include "cli/selection.h"
#include "cli/targets.h"

static const struct label_words label_words = {.part = "labels", .one = "label", .done = "labeled", .taken = "unlabeled", .nothing = "not labeled",
                                               .manager = "chat2shell-label"};
static const struct label_words annotate_words = {.part = "annotations", .one = "annotation", .done = "annotated", .manager = "chat2shell-annotate"};

static int run_label(struct invocation *in, struct error *err)
{
    return label_run(in, &label_words, err);
}

static int run_annotate(struct invocation *in, struct error *err)
{
    return label_run(in, &annotate_words, err);
}

static const char *const outputs[] = {"name", "json", "yaml", NULL};
static const struct option_row options[] = {
    {.name = "overwrite", .doc = "change what has another value already"},
    {.name = "list", .doc = "print what there is, one a line, after the changes"},
    OPTION_ALL,
    OPTION_SELECTOR,
    OPTION_FIELD_SELECTOR,
    OPTION_FILENAME,
    OPTION_RECURSIVE,
    {.name = "resource-version", .value = "VERSION", .doc = "only if the object still has this version"},
    OPTION_FIELD_MANAGER,
    OPTION_DRY_RUN,
    OPTION_OUTPUT(outputs, "print the objects instead of what happened to them"),
    OPTION_SHOW_MANAGERS,
    OPTIONS_NAMESPACE,
};
static const struct example label_examples[] = {
    {"chat2shell label sandbox dev team=web", "set a label"},
    {"chat2shell label sandbox/dev workspace/demo team=infra --overwrite", "change one of several objects"},
    {"chat2shell label sandboxes -l team=web team-", "remove it from all that have it"},
    {"chat2shell label sandbox dev --list", "what labels there are"},
};
static const struct example annotate_examples[] = {
    {"chat2shell annotate sandbox dev note='for the demo on Friday'", "set an annotation"},
    {"chat2shell annotate sandboxes --all note-", "remove it everywhere"},
};
#define DETAILS "Nothing is lost that others change meanwhile: a change that comes in between is looked at anew. A value that is there already is changed with --overwrite only."
const struct command command_label = {
    .name = "label", .synopsis = "KIND NAME… KEY=VALUE… KEY-…", .summary = "Set and remove labels", .max_arguments = -1, .run = run_label, .details = DETAILS,
    COMMAND_EXAMPLES(label_examples), COMMAND_OPTIONS(options),
};
const struct command command_annotate = {
    .name = "annotate", .synopsis = "KIND NAME… KEY=VALUE… KEY-…", .summary = "Set and remove annotations", .max_arguments = -1, .run = run_annotate,
    .details = DETAILS, COMMAND_EXAMPLES(annotate_examples), COMMAND_OPTIONS(options),
};
