// The directories that serve and setup keep for themselves. They are made private, which would lock everybody out of one
// that was given by mistake (/tmp, /usr, a home that others use): such a one is refused instead.
#pragma once
#include "controller/config.h"

// Makes what is missing of data root, state and workspace directory, all with mode 0700.
int own_directories_make(const struct config *config, struct error *err);
