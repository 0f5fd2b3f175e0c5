// The one kind of protobuf body that is read here: kubectl sends its access reviews so whatever discovery says.
#pragma once
#include "controller/base/error.h"
#include "controller/base/json.h"

#define REVIEW_MEDIA_TYPE "application/vnd.kubernetes.protobuf"
// {"spec": {"resourceAttributes"?, "nonResourceAttributes"?}}; ERROR_INVALID. ret: the caller's.
int review_body_read(const char *text, size_t len, json_t **ret, struct error *err);
