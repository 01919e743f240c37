/* drawn_maps.h - maps of patches (src/pocket/patch_map.h) as a tower would give them, drawn by tests: names,
 * what they name, and elements. */
#ifndef HOLORUN_TESTS_DRAWN_MAPS_H
#define HOLORUN_TESTS_DRAWN_MAPS_H

#include "pocket/patch_map.h"

#include <stdbool.h>

enum { DRAWN_SIDE = 16 };

extern float drawn_faint; /* probability of each letter */

/* Bare ground, all of whose text is plain; patch_map_free. */
struct patch_map empty_map(int rows, int cols);

/* Text whose first letter's middle is at x. */
void put_text(struct patch_map *m, const char *text, double x, double y);

/* Text that names what is at a patch, or, by halves, between it and the next one. */
void put_name(struct patch_map *m, const char *text, double x, double y, int row, int col, bool halves);

/* An element of patches [row, row + rows) and [col, col + cols). */
void put_element(struct patch_map *m, enum element_kind kind, float p, int row, int col, int rows, int cols);

#endif
