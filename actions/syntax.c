/* syntax.c - the rows of syntax.h.  A new row goes to the end: fuzz seeds count by this order. */
#include "actions/grammar_impl.h"
#include "actions/parse.h"
#include "actions/pocket_impl.h"

#include <string.h>

static const struct syntax holo3 = {
    .name = "holo3",
    .parse = parse_holo,
    .call = grammar_json_call,
    .step = grammar_holo_step,
    .tag = "tool_name",
    .action = "tool_call",
    .schema = schema_step,
};

static const struct syntax holo1 = {
    .name = "holo1",
    .parse = parse_holo,
    .call = grammar_json_call,
    .step = grammar_holo_step,
    .ground = grammar_holo1_ground,
    .tag = "action",
    .action = "action",
    .schema = schema_step_python,
};

static const struct syntax uitars = {
    .name = "uitars",
    .parse = parse_uitars,
    .call = grammar_text_call,
    .step = grammar_uitars_step,
    .ground = grammar_uitars_ground,
    .single_quotes = true,
    .native_points = true,
};

static const struct syntax anthropic = {
    .name = "anthropic",
    .parse = parse_anthropic,
    .call = grammar_json_call,
    .tag = "action",
    .list_as_json = true,
};

static const struct syntax openai = {
    .name = "openai",
    .parse = parse_openai,
    .call = grammar_json_call,
    .tag = "type",
    .list_as_json = true,
};

static const struct syntax pyautogui = {
    .name = "pyautogui",
    .parse = parse_pyautogui,
    .call = grammar_text_call,
    .step = grammar_pyautogui_step,
    .single_quotes = true,
    .script = true,
};

static const struct syntax function = {
    .name = "function",
    .parse = parse_calls,
    .call = grammar_function_call,
    .tag = "name",
    .schema = schema_functions,
};

static const struct syntax xml = {
    .name = "xml",
    .parse = parse_calls,
    .call = grammar_xml_call,
    .step = grammar_xml_step,
    .schema = schema_functions_utf8,
};

static const struct syntax qwen = {
    .name = "qwen",
    .parse = parse_calls,
    .call = grammar_json_call,
    .step = grammar_qwen_step,
    .tag = "action",
    .schema = schema_computer_use,
};

const struct syntax *const syntaxes[] = {&holo3,         &holo1,    &uitars, &anthropic, &openai, &pyautogui,
                                         &syntax_pocket, &function, &xml,    &qwen,      NULL};

bool syntax_is(const struct dialect *d, const char *name)
{
    return !strcmp(d->syntax->name, name);
}
