// DeleteOptions: from the query and from the body, which may say the same.
#pragma once
#include "api/operator/internal.h"

struct delete_options {
    const char *uid; // precondition, borrowed from the call's body; NULL = none
    int64_t resource_version; // precondition; 0 = none
    bool is_dry_run;
};
// ERROR_USAGE, or ERROR_INVALID with causes. What a propagation policy means here is the README's "Deleting records".
int delete_options_read(const struct call *call, struct delete_options *ret, json_t *causes, struct error *err);
int delete_check_uid(const struct delete_options *options, const struct record *record, struct error *err);
