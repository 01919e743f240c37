/* answer.c - writes the nodes of a read as elements, in reading order: parents first, siblings by rows. */
#include "atspi/answer_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct order {
    const struct reader *r;
    int *first, *next; /* children of a node, as lists */
    int *index;        /* of the element of a node; -1: not written */
    json_t *out;
};

static const struct node *sorted; /* the child has one thread */

static int by_number(int a, int b)
{
    return (a > b) - (a < b);
}

static int by_top(const void *a, const void *b)
{
    const struct node *p = &sorted[*(const int *)a], *q = &sorted[*(const int *)b];
    if (p->placed != q->placed)
        return p->placed - q->placed;
    if (p->placed && p->rect.y != q->rect.y)
        return p->rect.y < q->rect.y ? -1 : 1;
    return by_number(p->order, q->order);
}

static int by_left(const void *a, const void *b)
{
    const struct node *p = &sorted[*(const int *)a], *q = &sorted[*(const int *)b];
    if (p->rect.x != q->rect.x)
        return p->rect.x < q->rect.x ? -1 : 1;
    return by_number(p->order, q->order);
}

static int by_order(const void *a, const void *b)
{
    return by_number(sorted[*(const int *)a].order, sorted[*(const int *)b].order);
}

/* Sorts siblings by rows: elements that begin above the middle of the first of a row belong to it. */
static void sort_rows(const struct node *nodes, int *list, int n)
{
    sorted = nodes;
    qsort(list, (size_t)n, sizeof *list, by_top);
    for (int i = 0, k; i < n; i = k) {
        const struct node *head = &nodes[list[i]];
        for (k = i + 1; k < n && head->placed && nodes[list[k]].rect.y < head->rect.y + head->rect.h / 2;)
            k++;
        if (head->placed)
            qsort(list + i, (size_t)(k - i), sizeof *list, by_left);
    }
}

static json_t *element_of(const struct node *n, int parent)
{
    return json_pack("[I, s, s, s, I, i, i, i, i, i, i, i, I, f, f, o]", (json_int_t)n->ref,
                     role_name(n->role), n->name ? n->name : "", n->value ? n->value : "",
                     (json_int_t)n->states, n->rect.x, n->rect.y, n->rect.w, n->rect.h, n->trust, parent,
                     n->sampled ? n->children : 0, (json_int_t)n->window, n->least, n->most,
                     isfinite(n->number) ? json_real(n->number) : json_null());
}

/* Writes the children of a node. Pages keep the order of their text. */
static void put_children(struct order *o, int i, bool page)
{
    const struct node *nodes = o->r->nodes;
    int n = 0, *list;
    for (int k = o->first[i]; k >= 0; k = o->next[k])
        n += nodes[k].shown && !nodes[k].missing;
    if (!n)
        return;
    list = xcalloc((unsigned long)n, sizeof *list);
    n = 0;
    for (int k = o->first[i]; k >= 0; k = o->next[k])
        if (nodes[k].shown && !nodes[k].missing)
            list[n++] = k;
    page = page || nodes[i].role == ROLE_DOCUMENT_WEB || nodes[i].role == ROLE_DOCUMENT_FRAME;
    sorted = nodes;
    if (page)
        qsort(list, (size_t)n, sizeof *list, by_order);
    else
        sort_rows(nodes, list, n);
    for (int k = 0; k < n; k++) {
        int parent = nodes[list[k]].parent == 0 ? -1 : o->index[i];
        o->index[list[k]] = (int)json_array_size(o->out);
        json_array_append_new(o->out, element_of(&nodes[list[k]], parent));
        put_children(o, list[k], page);
    }
    free(list);
}

int answer_put(const struct reader *r, json_t *out)
{
    struct order o = {.r = r, .out = out};
    unsigned long size = (unsigned long)r->n + 1;
    o.first = xcalloc(size, sizeof *o.first);
    o.next = xcalloc(size, sizeof *o.next);
    o.index = xcalloc(size, sizeof *o.index);
    for (int i = 0; i < r->n; i++)
        o.first[i] = o.index[i] = -1;
    for (int i = r->n - 1; i > 0; i--) {
        o.next[i] = o.first[r->nodes[i].parent];
        o.first[r->nodes[i].parent] = i;
    }
    if (r->n)
        put_children(&o, 0, false);
    int hit = r->hit >= 0 ? o.index[r->hit] : -1;
    free(o.first);
    free(o.next);
    free(o.index);
    return hit;
}
