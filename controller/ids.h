// Public ids: prefix and 26 lower-case base-32 characters (130 bits) from the system's random source.
#pragma once
#include "schemas/kinds/kinds.h"
#include <stdbool.h>

#define ID_TEXT_SIZE 48
void id_make(enum kind kind, char text[ID_TEXT_SIZE]);        // "sbx_…"
void id_make_bash_session(char text[ID_TEXT_SIZE]);           // "bash_" + 32 hex digits
bool id_is_of(enum kind kind, const char *text);              // right prefix, length and alphabet
// The DNS-1123 name of a record made without one: "sbx-" + the uid's characters.
void id_to_name(const char *uid, char text[ID_TEXT_SIZE]);
