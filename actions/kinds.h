/* kinds.h - the table of actions: one row per kind.
 *
 *     ACTION(kind, execute, describe, tell, python, members of struct action_entry)
 *
 * Included where a part of the row is needed, each time with another definition of ACTION:
 *
 *     kind, members   action.h, registry.c (registry.h explains the members)
 *     execute         screen/exec.c: performs the action; NULL: it cannot be performed
 *     describe        describe.c: one line for users
 *     tell            told.c: a few words for the last line of a run
 *     python          replay/export_actions.c: the action as pyautogui calls
 *
 * A function that does not exist is a compile error there.  Every kind is in all tables, because this file is
 * the only list of kinds. */
/* clang-format off */
ACTION(ACT_NONE, NULL, describe_plain, tell_words, python_wait,
       .name = "none", .help = "Nothing")

ACTION(ACT_MOVE, run_move, describe_plain, tell_target, python_move,
       .name = "move", .help = "Move the pointer to an element without clicking",
       .words = {"move the pointer to", "moved the pointer to"},
       .classes = MOVES | ACTION_NEEDS_POINT | ACTION_CARRIES | ACTION_RECORDED,
       PARAMS(NEED(ELEMENT), NEED(X), NEED(Y), MAY(POINT)))

ACTION(ACT_CLICK, run_click, describe_click, tell_click, python_click,
       .name = "click", .help = "Click an element",
       .classes = PRESSES | ACTION_CHANGES | ACTION_CLICKS | ACTION_RECORDED,
       PARAMS(NEED(ELEMENT), NEED(X), NEED(Y), MAY(POINT), OR(BUTTON, "\"left\""), OR(COUNT, "1"), MAY(HOLD)))

ACTION(ACT_MDOWN, run_button_down, describe_button, tell_words, python_button_down,
       .name = "mouse_down", .help = "Press a mouse button where the pointer is and keep it down",
       .words = {"hold a mouse button down", "held a mouse button down"},
       .classes = PRESSES | ACTION_HOLDS,
       PARAMS(OR(BUTTON, "\"left\""), MAY(X), MAY(Y), MAY(POINT), MAY(ELEMENT)))

ACTION(ACT_MUP, run_button_up, describe_button, tell_words, python_button_up,
       .name = "mouse_up", .help = "Release a mouse button where the pointer is",
       .words = {"release a mouse button", "released a mouse button"},
       .classes = PRESSES | ACTION_RELEASES | ACTION_CARRIES,
       PARAMS(OR(BUTTON, "\"left\""), MAY(X), MAY(Y), MAY(POINT), MAY(ELEMENT)))

ACTION(ACT_DRAG, run_drag, describe_plain, tell_target, python_drag,
       .name = "drag", .help = "Press the left button at one place, move to another, release",
       .words = {"drag", "dragged"},
       .classes = PRESSES | ACTION_CHANGES | ACTION_DRAGS | ACTION_RECORDED,
       PARAMS(NEED(ELEMENT), NEED(X), NEED(Y), NEED(X2), NEED(Y2), MAY(POINT), MAY(POINT2), MAY(PATH),
              MAY(HOLD), OR(BUTTON, "\"left\"")))

ACTION(ACT_SCROLL, run_scroll, describe_scroll, tell_scroll, python_scroll,
       .name = "scroll", .help = "Turn the mouse wheel over an element",
       .words = {"scroll", "scrolled"},
       .classes = MOVES | ACTION_CHANGES | ACTION_RECORDED,
       PARAMS(NEED(ELEMENT), NEED(X), NEED(Y), MAY(POINT), NEED(DIRECTION), OR(AMOUNT, "5"), MAY(DISTANCE),
              MAY(SCROLL_X), MAY(SCROLL_Y), MAY(SCROLL_UP), MAY(HOLD)))

ACTION(ACT_TYPE, run_type, describe_type, tell_type, python_type,
       .name = "type", .help = "Type text where the keyboard focus is",
       .words = {"type ", "typed "},
       .classes = CHORD | ACTION_CHARACTERS | ACTION_TYPES | ACTION_RECORDED,
       PARAMS(NEED(TEXT), OR(PRESS_ENTER, "false"), OR(OVERWRITE, "false"), MAY(AT_END), MAY(ELEMENT), MAY(X),
              MAY(Y), MAY(POINT)))

ACTION(ACT_KEY, run_key, describe_chord, tell_keys, python_key,
       .name = "key", .help = "Press keys together and release them",
       .words = {"press ", "pressed "},
       .classes = KEYS | ACTION_CHANGES | ACTION_RECORDED,
       PARAMS(NEED(KEYS), MAY(KEY), OR(REPEAT, "1")))

ACTION(ACT_KEYDOWN, run_keys_down, describe_keys, tell_keys, python_key_down,
       .name = "key_down", .help = "Press a key and keep it down",
       .words = {"hold down ", "held down "},
       .classes = KEYS | ACTION_HOLDS,
       PARAMS(NEED(KEY)))

ACTION(ACT_KEYUP, run_keys_up, describe_keys, tell_keys, python_key_up,
       .name = "key_up", .help = "Release a key that is down",
       .words = {"release ", "released "},
       .classes = ACTION_TOUCHES | ACTION_FOCUS | ACTION_RELEASES,
       PARAMS(NEED(KEY)))

ACTION(ACT_HOLDTAP, run_holdtap, describe_holdtap, tell_keys, python_holdtap,
       .name = "hold_and_tap", .help = "Hold keys down, tap others, release",
       .words = {"press ", "pressed "},
       .classes = KEYS | ACTION_CHANGES,
       PARAMS(NEED(HOLD), NEED(TAP), MAY(SECONDS)))

ACTION(ACT_WAIT, run_wait, describe_wait, tell_words, python_sleep,
       .name = "wait", .help = "Wait, for example while something loads",
       .classes = ACTION_LOOKS, .result = "Waited.",
       PARAMS(OR(SECONDS, "2")))

ACTION(ACT_OBSERVE, run_nothing, describe_plain, tell_words, python_wait,
       .name = "observe", .help = "Look at the screen again",
       .classes = ACTION_LOOKS)

ACTION(ACT_ZOOM, NULL, describe_plain, tell_words, python_wait,
       .name = "zoom", .help = "Look at a part of the screen",
       .classes = ACTION_LOOKS,
       PARAMS(NEED(REGION)))

ACTION(ACT_PLAN, run_nothing, describe_plain, tell_words, python_wait,
       .name = "plan", .help = "Write down the plan, or update it",
       .classes = ACTION_LOOKS,
       PARAMS(NEED(GOALS)))

ACTION(ACT_GOTO, run_goto, describe_plain, tell_address, python_goto,
       .name = "goto", .help = "Open an address in the browser",
       .words = {"open ", "opened "},
       .classes = CHORD | ACTION_CHARACTERS | ACTION_ADDRESS, .shortcut = {XK_Control_L, XK_l},
       PARAMS(NEED(TEXT)))

ACTION(ACT_BACK, run_shortcut, describe_plain, tell_words, python_shortcut,
       .name = "back", .help = "Go back one page in the browser",
       .words = {"go back", "went back"},
       .classes = CHORD, .shortcut = {XK_Alt_L, XK_Left})

ACTION(ACT_FORWARD, run_shortcut, describe_plain, tell_words, python_shortcut,
       .name = "forward", .help = "Go forward one page in the browser",
       .words = {"go forward", "went forward"},
       .classes = CHORD, .shortcut = {XK_Alt_L, XK_Right})

ACTION(ACT_REFRESH, run_shortcut, describe_plain, tell_words, python_shortcut,
       .name = "refresh", .help = "Load the page again",
       .words = {"load the page again", "loaded the page again"},
       .classes = CHORD, .shortcut = {XK_F5})

ACTION(ACT_RESTART, NULL, describe_plain, tell_words, python_wait,
       .name = "restart", .help = "Start over from where the task began",
       .classes = ACTION_TOUCHES)

ACTION(ACT_ASK, run_nothing, describe_plain, tell_words, python_wait,
       .name = "ask", .help = "End the task because a person has to help",
       .classes = ACTION_ENDS_RUN,
       PARAMS(MAY(TEXT)))

ACTION(ACT_ANSWER, run_nothing, describe_plain, tell_words, python_done,
       .name = "answer", .help = "End the task and say what was done or found",
       .classes = ACTION_ENDS_RUN | ACTION_LOOKS,
       PARAMS(NEED(TEXT), MAY(STATUS)))

ACTION(ACT_INFEASIBLE, run_nothing, describe_plain, tell_words, python_fail,
       .name = "infeasible", .help = "End the task because it cannot be done",
       .classes = ACTION_ENDS_RUN | ACTION_LOOKS,
       PARAMS(MAY(TEXT)))
/* clang-format on */
#undef ACTION
