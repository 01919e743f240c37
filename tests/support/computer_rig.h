/* computer_rig.h - OSWorld's machine for tests: a server with its routes over a private X server.
 *
 * It takes its screenshots there and runs the programs that it is sent with a real Python.  pyautogui is
 * tests/computer/pyautogui.py, or the package itself where HOLORUN_PYAUTOGUI names a Python that has it and
 * Xlib.  What is asserted about input comes from a window on that X server.
 */
#ifndef HOLORUN_TESTS_COMPUTER_RIG_H
#define HOLORUN_TESTS_COMPUTER_RIG_H

#include "check.h"
#include "computer/machine.h"
#include "driven.h"
#include "far.h"

enum { PATIENCE_MS = 20000 };

struct rig {
    struct stage stage;  /* stage.s: the machine as a screen */
    struct screen *eyes; /* of the server, on the display */
    struct far_server server;
    struct machine *machine;
    char *picture, *python;
    const char *fault, *fault_at; /* in place of the answer to requests with fault_at */
    struct screen_rect claims;    /* the size that it says its screen has; w 0: the real one */
    int asked, executed;          /* requests, those to execute */
};

/* The answer with a JSON body; frees the object, the caller frees the text. */
char *rig_json_reply(json_t *object);

void rig_open(struct rig *g);
void rig_close(struct rig *g);

/* The server's address; the caller frees it. */
char *rig_address(const struct rig *g);

/* Opens the machine as g->stage.s.  -1: it could not be opened, with the reason in `why`. */
int rig_screen(struct rig *g);

/* n events of this kind since stage_clear(), when they have come. */
json_t *rig_await_events(struct stage *t, const char *name, size_t n);

/* The keys pressed since stage_clear() have typed this, when they have come. */
void rig_expect_typed(struct stage *t, const char *text);

#endif
