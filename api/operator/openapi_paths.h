// The paths of an OpenAPI document: one item a path, one operation a verb.
#pragma once
#include "api/operator/discovery.h"

#define OPENAPI_OWN_PREFIX "dev.chat2shell.v1."

json_t *openapi_paths(const struct api_group *group); // new reference
