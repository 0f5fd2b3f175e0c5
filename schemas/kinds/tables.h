// The field tables of the kinds (schemas/kinds/NAME.c).
#pragma once
#include "controller/fields/fields.h"
#include "schemas/kinds/kinds.h"

const struct field_table *kind_spec_table(enum kind kind);
const struct field_table *kind_status_table(enum kind kind);
// {metadata: {labels, annotations, finalizers, ownerReferences}, spec}: what field managers own, for controller/fields/owned.h only.
const struct field_table *kind_owned_table(enum kind kind);
