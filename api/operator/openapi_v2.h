// OpenAPI v2 in protobuf (gnostic's openapi.v2.Document): what kubectl before 1.29 reads for `explain`. Definitions only.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/json.h"

#define OPENAPI_V2_MEDIA_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" // with a dot: Go reads no media type with an at sign
#define OPENAPI_V2_MAX (4 << 20)
// schemas: {name: schema}, as OpenAPI v3 documents have them. Appends the document's bytes.
void openapi_v2_write(const json_t *schemas, struct buffer *to);
