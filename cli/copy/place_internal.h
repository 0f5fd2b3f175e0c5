#pragma once
#include "cli/copy/place.h"

int place_fail(struct error *err, int number, const char *path, const char *what);
char *place_temp_name(void); // the caller's
// Puts what is ready into its place.
int place_rename(int dir_fd, const char *temp_name, const char *name, const char *path, struct error *err);
