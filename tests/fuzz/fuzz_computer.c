/* fuzz_computer.c - any bytes as what OSWorld's machine answers, and any text as what is typed there: each line of
 * the Python program is one call, whose literals end where they should. */
#include "base/utf8.h"
#include "computer/machine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_text(const char *s)
{
    return utf8_valid_prefix(s, strlen(s)) == strlen(s) && !strchr(s, '\n');
}

static void answers(const char *json, size_t n)
{
    struct err e = ERR_INIT;
    struct screen_window w;
    char *output;
    int width = 1, height = 1;
    if ((machine_read_execute(json, n, &output, &e) == 0) != (output != NULL) || !is_text(e.text))
        bug("no output and no reason");
    free(output);
    e = (struct err)ERR_INIT;
    if (machine_read_size(json, n, &width, &height, &e) == 0 && (width < 1 || height < 1))
        bug("a screen of %dx%d", width, height);
    machine_read_window(json, n, &w);
    if (utf8_valid_prefix(w.title, strlen(w.title)) != strlen(w.title) || w.pid)
        bug("a window without a title");
}

/* Outside of literals a program has these characters only. */
static void check_program(const char *p)
{
    for (bool inside = false; *p; p++) {
        if (*p == '\\' && inside && p[1])
            p++;
        else if (*p == '\'')
            inside = !inside;
        else if (inside && (*p == '\n' || (unsigned char)*p >= 0x7f))
            bug("a literal over the end of its line");
        else if (!inside &&
                 !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,=()- \n", *p))
            bug("'%c' outside of literals", *p);
    }
}

static void types(const char *text, size_t n)
{
    struct computer_event v[2] = {{.kind = COMPUTER_TEXT, .text = text, .len = n},
                                  {.kind = COMPUTER_KEY_DOWN, .keysym = n ? (unsigned char)text[0] : 0}};
    struct err e = ERR_INIT;
    struct buf program;
    buf_init(&program, 1 << 20);
    if (machine_program(v, 2, &program, &e) == 0)
        check_program(program.data);
    buf_free(&program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    answers(text, size);
    types(text, size);
    free(text);
    return 0;
}
