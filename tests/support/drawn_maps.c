/* drawn_maps.c - see drawn_maps.h. */
#include "drawn_maps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_W = 4, SLOT_H = 8, ADVANCE = 9 };

struct patch_map empty_map(int rows, int cols)
{
    struct patch_map m = {rows, cols, DRAWN_SIDE, 1, calloc((size_t)(rows * cols), sizeof *m.patches)};
    for (int i = 0; i < rows * cols; i++) {
        m.patches[i].kind[ELEMENT_NONE] = 1;
        m.patches[i].pointer.nothing = 99; /* text there names nothing */
    }
    return m;
}

static void put_letter(struct patch_map *m, double x, double y, float probability, char c)
{
    struct patch_reading *p = &m->patches[(int)y / DRAWN_SIDE * m->cols + (int)x / DRAWN_SIDE];
    int slot = (int)y % DRAWN_SIDE / SLOT_H * PATCH_SLOTS_ACROSS + (int)x % DRAWN_SIDE / SLOT_W;
    p->present[slot] = probability;
    p->shift[slot] = (float)(fmod(x, SLOT_W) / SLOT_W);
    p->letter[slot] = (uint8_t)(c - 32);
}

float drawn_faint = 0.98f;

void put_text(struct patch_map *m, const char *text, double x, double y)
{
    for (; *text; text++, x += ADVANCE)
        if (*text != ' ')
            put_letter(m, x, y, drawn_faint, *text);
}

void put_name(struct patch_map *m, const char *text, double x, double y, int row, int col, bool halves)
{
    int from = (int)x / DRAWN_SIDE, to = (int)(x + ADVANCE * ((double)strlen(text) - 1)) / DRAWN_SIDE;
    put_text(m, text, x, y);
    for (int c = from; c <= to; c++) {
        struct patch_pointer *p = &m->patches[(int)y / DRAWN_SIDE * m->cols + c].pointer;
        p->nothing = 0;
        p->down[POINTER_FAR + row - (int)y / DRAWN_SIDE] = 20;
        for (int k = 0; k <= halves; k++)
            p->right[POINTER_FAR + col + k - c] = 20;
    }
}

void put_element(struct patch_map *m, enum element_kind kind, float p, int row, int col, int rows, int cols)
{
    for (int r = row; r < row + rows; r++)
        for (int c = col; c < col + cols; c++) {
            m->patches[r * m->cols + c].kind[kind] = p;
            m->patches[r * m->cols + c].kind[ELEMENT_NONE] = 1 - p;
        }
}
