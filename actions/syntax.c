/* syntax.c - the rows of syntax.h.  A new row goes to the end: fuzz seeds count by this order. */
#include "actions/grammar_impl.h"
#include "actions/parse.h"
#include "actions/pocket_impl.h"

#include <string.h>

static const struct syntax holo3 = {.name = "holo3",
                                    .parse = parse_holo,
                                    .call = grammar_json_call,
                                    .step = grammar_holo_step,
                                    .tag = "tool_name",
                                    .action = "tool_call",
                                    .schema = schema_step},
                           holo1 = {.name = "holo1",
                                    .parse = parse_holo,
                                    .call = grammar_json_call,
                                    .step = grammar_holo_step,
                                    .ground = grammar_holo1_ground,
                                    .tag = "action",
                                    .action = "action",
                                    .schema = schema_step_python},
                           uitars = {.name = "uitars",
                                     .parse = parse_uitars,
                                     .call = grammar_text_call,
                                     .step = grammar_uitars_step,
                                     .ground = grammar_uitars_ground,
                                     .single_quotes = true,
                                     .native_points = true},
                           anthropic = {.name = "anthropic",
                                        .parse = parse_anthropic,
                                        .call = grammar_json_call,
                                        .tag = "action",
                                        .list_as_json = true},
                           openai = {.name = "openai",
                                     .parse = parse_openai,
                                     .call = grammar_json_call,
                                     .tag = "type",
                                     .list_as_json = true},
                           pyautogui = {.name = "pyautogui",
                                        .parse = parse_pyautogui,
                                        .call = grammar_text_call,
                                        .step = grammar_pyautogui_step,
                                        .single_quotes = true,
                                        .script = true},
                           function = {.name = "function",
                                       .parse = parse_calls,
                                       .call = grammar_function_call,
                                       .tag = "name",
                                       .schema = schema_functions},
                           xml = {.name = "xml",
                                  .parse = parse_calls,
                                  .call = grammar_xml_call,
                                  .step = grammar_xml_step,
                                  .schema = schema_functions_utf8},
                           qwen = {.name = "qwen",
                                   .parse = parse_calls,
                                   .call = grammar_json_call,
                                   .step = grammar_qwen_step,
                                   .tag = "action",
                                   .schema = schema_computer_use};

#define ROWS(ROW)                                                                                            \
    ROW(holo3)                                                                                               \
    ROW(holo1)                                                                                               \
    ROW(uitars)                                                                                              \
    ROW(anthropic) ROW(openai) ROW(pyautogui) ROW(pocket) ROW(function) ROW(xml) ROW(qwen)
#define pocket           syntax_pocket /* in syntax_pocket.c */
#define ROW_ADDRESS(row) &row,
const struct syntax *const syntaxes[] = {ROWS(ROW_ADDRESS) NULL};
#undef pocket
#define ROW_NAME(row) #row,
const char *const syntax_names[] = {ROWS(ROW_NAME) NULL};

bool syntax_is(const struct dialect *d, const char *name)
{
    return !strcmp(d->syntax->name, name);
}
