// What a file is for, by its path alone.
#pragma once
#include <stdbool.h>

enum file_kind { FILE_SOURCE, FILE_TEST, FILE_CONFIGURATION, FILE_DOCUMENTATION, FILE_OTHER };
enum file_kind file_kind_of(const char *path);
bool file_is_generated(const char *path);
