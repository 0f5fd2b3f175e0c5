// Syntax of label and annotation keys and label values, as Kubernetes has it (record_check_name is in
// record.h).
#pragma once
#include <stdbool.h>

bool name_is_qualified(
    const char *key); // "tier", "example.com/tier": optional DNS prefix, name of at most 63
// Of the server's own annotations and finalizers, which no caller may set: it begins with API_GROUP "/".
bool name_is_own(const char *key);
bool name_is_label_value(const char *value); // empty, or at most 63 of letters, digits, '-', '_', '.'
