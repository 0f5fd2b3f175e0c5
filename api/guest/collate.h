// The order of names in a listing: close to Unicode's root collation for ASCII (punctuation, digits, letters
// without case, lower case first where all else is equal); other characters stand behind, by code point.
#pragma once
int collate_names(const char *a, const char *b);
