/* drawn_maps.h - builds outputs of the vision encoder (src/pocket/patch_map.h): text, labels with their
 * targets, and elements.
 */
#pragma once

#include "pocket/patch_map.h"

#include <stdbool.h>

enum { DRAWN_SIDE = 16 };

extern float drawn_faint; /* probability of each letter */

/* Returns a map without text or elements; free it with patch_map_free(). */
struct patch_map empty_map(int rows, int cols);

/* Writes text; x is the centre of its first letter. */
void put_text(struct patch_map *m, const char *text, double x, double y);

/* Writes text that labels the element at a patch. halves: the label points between this patch and the
 * next. */
void put_name(struct patch_map *m, const char *text, double x, double y, int row, int col, bool halves);

/* Adds an element that covers patches [row, row + rows) and [col, col + cols). */
void put_element(struct patch_map *m, enum element_kind kind, float p, int row, int col, int rows, int cols);
