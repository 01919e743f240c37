/* fuzz_elements.c - the answers of programs to a reader of elements. Byte 0 chooses: 0 to 127 a message as
 * D-Bus sends it, the reply to one of the calls about a node; else an answer of the child process, as JSON.
 *
 * For any input no memory error occurs, and parents precede their children. */
#include "atspi/answer_impl.h"
#include "atspi/elements_impl.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives the reply to each call of a node in turn: first role, name, number of children and rectangle. */
static void reply(int call, DBusMessage *m)
{
    static struct reader r;
    struct program p = {.bus = ":1.1", .path = "/root"};
    struct xwindow window = {
        .id = 1, .pid = 1, .title = "W", .rect = {10, 20, 400, 300}, .frame = {9, 0, 402, 321}};
    if (!r.known)
        r.known = g_hash_table_new_full(g_str_hash, g_str_equal, free, free);
    reader_begin(&r, &p, 5, 5);
    for (int i = 0; i < r.n && i < 50; i++)
        for (enum call c = CALL_STATE; c <= CALL_COUNT + 1; c++)
            reader_take(&r, &(struct slot){.node = i, .call = c}, m);
    for (int i = 0; i < r.n && i < 50; i++)
        reader_take(&r, &(struct slot){.node = i, .call = (enum call)call, .x = 3, .y = 4}, m);
    place_nodes(r.nodes, r.n, &p, &window, 1);
    json_t *out = json_array();
    answer_put(&r, out);
    json_decref(out);
    reader_end(&r);
}

static void search(struct snapshot *s)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < s->n; i++)
        if (s->e[i].parent >= i || !s->e[i].name || !s->e[i].role || !s->e[i].value)
            bug("element %d is malformed", i);
    elements_text(s, true, &text);
    if (snapshot_at(s, 10, 10) >= s->n)
        bug("an element that is not there");
    buf_free(&text);
    snapshot_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot s;
    if (size < 1)
        return 0;
    if (data[0] >= 128) {
        json_t *answer = json_loadb((const char *)data + 1, size - 1, 0, NULL);
        if (answer && snapshot_read(answer, &s) == 0)
            search(&s);
        return 0;
    }
    DBusMessage *m = dbus_message_demarshal((const char *)data + 1, (int)size - 1, NULL);
    if (!m)
        return 0;
    reply(data[0] % (CALL_POINT + 1), m);
    dbus_message_unref(m);
    return 0;
}
