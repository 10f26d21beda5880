#ifndef CSHIMS_TEXT_H
#define CSHIMS_TEXT_H
#include <stdint.h>

// Columns that a Unicode scalar takes on a terminal, whatever the locale of the process: 0, 1, 2, or -1 for what cannot be printed.
int CShims_character_width(uint32_t scalar);
#endif
