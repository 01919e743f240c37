/* syntax_pocket.c - the row of the syntax "pocket": a verb, an element and a place, each after a mark of one
 * token (parse_pocket.c). */
#include "actions/pocket_impl.h"

const struct syntax syntax_pocket = {
    .name = "pocket",
    .parse = parse_pocket,
    .call = pocket_call,
    .step = pocket_step,
    .ground = pocket_ground,
    .slots = pocket_slots,
    .slot_end = pocket_slot_end,
    .point = pocket_point,
    .word_slot = pocket_word_slot,
    .word_end = {[SLOT_NAME] = "<at>", [SLOT_TEXT] = "\n"},
    .step_begin = pocket_step_begin,
    .read_place = pocket_read_place,
    .one_line = true,
    .question_first = true,
    .says_absent = true,
    .spread_points = true,
};
