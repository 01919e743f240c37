/* replies.h - scripted replies in the dialect holo3: string literals, one per line, to be concatenated.
 *
 *     CLICK(300, 300) TYPE("abc") ANSWER("Done.")
 */
#pragma once

/* call: the tool's name in quotes, and its arguments. */
#define STEP(call)    "{\"note\": null, \"thought\": \"as planned\", \"tool_call\": {\"tool_name\": " call "}}\n"
#define CLICK(x, y)   CLICK_ON("it", x, y)
#define TYPE(text)    STEP("\"write_desktop\", \"content\": \"" text "\"")
#define WAIT(seconds) STEP("\"wait_desktop\", \"seconds\": " #seconds)
#define ANSWER(text)  STEP("\"answer\", \"content\": \"" text "\"")
#define SHIFT_DOWN    STEP("\"key_down_desktop\", \"key\": \"shift\"")
#define DRAG          STEP(DRAG_CALL)
#define CTRL_DRAG     STEP(DRAG_CALL ", \"hold_keys\": [\"ctrl\"]")
#define HELD_DRAG     SHIFT_DOWN CTRL_DRAG ANSWER("Done.")
#define CLICK_ON(element, x, y)                                                                              \
    STEP("\"click_desktop\", \"element\": \"" element "\", \"x\": " #x ", \"y\": " #y)
#define DRAG_CALL                                                                                            \
    "\"drag_and_drop\", \"description\": \"it\", \"x1\": 200, \"y1\": 200, \"x2\": 600, \"y2\": 600"

/* Text that takes long to type: letters without a key alternate with normal ones. */
#define TEN       "ab\xc5\x91 cd\xce\xa9 ef"
#define HUNDRED   TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define TYPE_LONG TYPE(HUNDRED HUNDRED HUNDRED HUNDRED)
