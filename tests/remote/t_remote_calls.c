/* t_remote_calls.c - tests reading tool calls and texts in the formats of different servers. A case is the
 * events of a stream and the text for the dialect's parser: "click{"x": 5}" for each call.
 */
#include "check.h"

#include "actions/action.h"

#include "far.h"

#include <stdlib.h>
#include <string.h>

#define DELTA(json) "data: {\"choices\": [{\"delta\": " json "}]}\n\n"
#define MESSAGE(json)                                                                                        \
    "data: {\"choices\": [{\"delta\": {}, \"message\": " json ", \"finish_reason\": \"stop\"}]}\n\n"
#define CALLS(list)     DELTA("{\"tool_calls\": [" list "]}")
#define FN(name, args)  "\"function\": {\"name\": \"" name "\", \"arguments\": \"" args "\"}"
#define ARGS(args)      "\"function\": {\"arguments\": \"" args "\"}"
#define AT(index, rest) "{\"index\": " index ", " rest "}"
#define ID(id, rest)    "\"id\": \"" id "\", " rest
#define NULLID(rest)    "\"id\": null, " rest
#define X(n)            "{\\\"x\\\": " n "}"
#define WHOLE(calls)    FAR_JSON "{\"choices\": [{\"message\": {\"content\": null, " calls "}}]}"

struct shape {
    const char *about, *reply, *calls;
};

static const struct shape shapes[] = {
    {"whole calls, all at index 0",
     CALLS(AT("0", ID("a", FN("click", X("1"))))) CALLS(AT("0", ID("b", FN("press", X("2"))))),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"the same tool twice at index 0, with ids",
     CALLS(AT("0", ID("a", FN("click", X("1"))))) CALLS(AT("0", ID("b", FN("click", X("2"))))),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"the same tool twice at index 0, without ids",
     CALLS(AT("0", FN("click", X("1")))) CALLS(AT("0", FN("click", X("2")))),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"one id and index for all calls",
     CALLS(AT("0", ID("a", FN("click", X("1"))))) CALLS(AT("0", ID("a", FN("press", X("2"))))),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"a new id at the same index, the arguments in parts",
     CALLS(AT("0", ID("a", FN("click", "")))) CALLS(AT("0", ARGS("{\\\"x\\\":"))) CALLS(AT("0", ARGS(" 1}")))
         CALLS(AT("0", ID("b", FN("click", "")))) CALLS(AT("0", ARGS("{\\\"x\\\":")))
             CALLS(AT("0", ARGS(" 2}"))),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"a name after complete arguments, the arguments in parts, no ids",
     CALLS(AT("0", FN("click", ""))) CALLS(AT("0", ARGS(X("1")))) CALLS(AT("0", FN("click", "")))
         CALLS(AT("0", ARGS("{\\\"x\\\":"))) CALLS(AT("0", ARGS(" 2}"))),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"a call without arguments before another at index 0",
     CALLS(AT("0", ID("a", FN("shot", "")))) CALLS(AT("0", ID("b", FN("click", X("2"))))),
     "shot{} click{\"x\": 2}"},
    {"the name in each piece",
     CALLS(AT("0", ID("a", FN("click", "{\\\"x\\\"")))) CALLS(AT("0", ID("a", FN("click", ": "))))
         CALLS(AT("0", ID("a", FN("click", "1}")))) CALLS(AT("0", ID("a", FN("click", "")))),
     "click{\"x\": 1}"},
    {"the name in each piece, null ids",
     CALLS(AT("0", ID("a", FN("click", "{\\\"x\\\"")))) CALLS(AT("0", NULLID(FN("click", ": 1"))))
         CALLS(AT("0", NULLID(FN("click", "}")))),
     "click{\"x\": 1}"},
    {"a name in parts",
     CALLS(AT("0", ID("a", FN("cli", "")))) CALLS(AT("0", FN("ck", ""))) CALLS(AT("0", ARGS(X("1")))),
     "click{\"x\": 1}"},
    {"a name that grows",
     CALLS(AT("0", ID("a", FN("cli", "")))) CALLS(AT("0", FN("click", ""))) CALLS(AT("0", ARGS(X("1")))),
     "click{\"x\": 1}"},
    {"first index 1", CALLS(AT("1", ID("a", FN("click", "{\\\"x\\\"")))) CALLS(AT("1", ARGS(": 1}"))),
     "click{\"x\": 1}"},
    {"first index 7, then 9",
     CALLS(AT("7", ID("a", FN("click", X("1"))))) CALLS(AT("9", ID("b", FN("press", X("2"))))),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"index 20", CALLS(AT("20", ID("a", FN("click", X("1"))))), "click{\"x\": 1}"},
    {"a text as index",
     CALLS(AT("\"0\"", ID("a", FN("click", "{")))) CALLS(AT("\"0\"", ARGS("\\\"x\\\": 1}"))),
     "click{\"x\": 1}"},
    {"no index, ids", CALLS("{" ID("a", FN("click", X("1"))) "}") CALLS("{" ID("b", FN("press", X("2"))) "}"),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"no index, an id at the start only",
     CALLS("{" ID("a", FN("click", "")) "}") CALLS("{" ARGS("{\\\"x\\\"") "}") CALLS("{" ARGS(": 1}") "}")
         CALLS("{" ID("b", FN("press", "")) "}") CALLS("{" ARGS("{\\\"x\\\"") "}")
             CALLS("{" ARGS(": 2}") "}"),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"no index, interleaved by id",
     CALLS("{" ID("a", FN("click", "{\\\"x\\\"")) "}") CALLS("{" ID("b", FN("press", "{\\\"x\\\"")) "}")
         CALLS("{" ID("a", ARGS(": 1}")) "}") CALLS("{" ID("b", ARGS(": 2}")) "}"),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"all at index 0, interleaved by id",
     CALLS(AT("0", ID("a", FN("click", "{\\\"x\\\"")))) CALLS(AT("0", ID("b", FN("press", "{\\\"x\\\""))))
         CALLS(AT("0", ID("a", ARGS(": 1}")))) CALLS(AT("0", ID("b", ARGS(": 2}")))),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"interleaved by index, null ids",
     CALLS(AT("0", ID("a", FN("click", ""))) ", " AT("1", ID("b", FN("press", ""))))
         CALLS(AT("1", NULLID(ARGS("{\\\"x\\\"")))) CALLS(AT("0", NULLID(ARGS("{\\\"x\\\""))))
             CALLS(AT("1", ARGS(": 2}"))) CALLS(AT("0", ARGS(": 1}"))),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"a larger index first",
     CALLS(AT("1", ID("b", FN("press", X("2"))))) CALLS(AT("0", ID("a", FN("click", X("1"))))),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"another id in each piece of one call",
     CALLS(AT("0", ID("a1", FN("click", "{\\\"x\\\"")))) CALLS(AT("0", ID("a2", ARGS(": 1}"))))
         CALLS(AT("0", ID("a3", ARGS("")))),
     "click{\"x\": 1}"},
    {"null and empty members",
     CALLS("{\"index\": 0, \"id\": \"\", \"function\": {\"name\": \"click\", \"arguments\": null}}") CALLS(
         "{\"index\": 0, \"id\": \"\", \"function\": {\"name\": null, \"arguments\": \"{\\\"x\\\": 1}\"}}"),
     "click{\"x\": 1}"},
    {"empty slots",
     CALLS(AT("0", FN("", ""))) CALLS("{\"index\": 1}, null, {}")
         CALLS(AT("2", ID("a", FN("click", X("1"))))),
     "click{\"x\": 1}"},
    {"an object as arguments",
     CALLS("{\"index\": 0, \"id\": \"a\", \"function\": {\"name\": \"click\", \"arguments\": {\"x\": 1}}}"),
     "click{\"x\": 1}"},
    {"two objects as arguments at index 0",
     CALLS("{\"index\": 0, \"function\": {\"name\": \"click\", \"arguments\": {\"x\": 1}}}")
         CALLS("{\"index\": 0, \"function\": {\"name\": \"click\", \"arguments\": {\"x\": 2}}}"),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"name and arguments beside the id",
     CALLS("{\"id\": \"a\", \"name\": \"click\", \"arguments\": {\"x\": 1}}"), "click{\"x\": 1}"},
    {"two whole calls in one event without ids",
     CALLS("{" FN("click", X("1")) "}, {" FN("click", X("2")) "}"), "click{\"x\": 1} click{\"x\": 2}"},
    {"two calls without arguments in one event", CALLS("{" FN("shot", "") "}, {" FN("wait", "") "}"),
     "shot{} wait{}"},
    {"a legacy function_call in parts",
     DELTA("{\"function_call\": {\"name\": \"click\", \"arguments\": \"\"}}")
         DELTA("{\"function_call\": {\"arguments\": \"{\\\"x\\\"\"}}")
             DELTA("{\"function_call\": {\"arguments\": \": 1}\"}}"),
     "click{\"x\": 1}"},
    {"a legacy function_call beside tool_calls",
     DELTA("{\"tool_calls\": [{\"index\": 0, \"id\": \"a\", " FN(
         "click", X("1")) "}], \"function_call\": {\"name\": "
                          "\"click\", \"arguments\": \"{\\\"x\\\": 1}\"}}"),
     "click{\"x\": 1}"},
    {"the calls again in a final message",
     CALLS(AT("0", ID("a", FN("click", "{\\\"x\\\"")))) CALLS(AT("0", ARGS(": 1}")))
         MESSAGE("{\"tool_calls\": [{" ID("a", FN("click", X("1"))) "}]}"),
     "click{\"x\": 1}"},
    {"cut arguments, whole in the final message",
     CALLS(AT("0", ID("a", FN("click", "{\\\"x\\\"")))) MESSAGE(
         "{\"tool_calls\": [{" ID("a", FN("click", X("1"))) "}, {" ID("b", FN("press", X("2"))) "}]}"),
     "click{\"x\": 1} press{\"x\": 2}"},
    {"the calls again in a final message without ids",
     CALLS(AT("0", FN("click", X("1")))) CALLS(AT("1", FN("click", X("2"))))
         MESSAGE("{\"tool_calls\": [{" FN("click", X("1")) "}, {" FN("click", X("2")) "}]}"),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"the call again in a last delta",
     CALLS(AT("0", ID("a", FN("click", "{\\\"x\\\"")))) CALLS(AT("0", ARGS(": 1}")))
         CALLS(AT("0", ID("a", FN("click", "{\\\"x\\\":1}")))),
     "click{\"x\": 1}"},
    {"the call again in a last delta without an id",
     CALLS(AT("0", FN("click", "{\\\"x\\\""))) CALLS(AT("0", ARGS(": 1}")))
         CALLS(AT("0", FN("click", X("1")))),
     "click{\"x\": 1}"},
    {"blanks after the arguments", CALLS(AT("0", ID("a", FN("click", X("1"))))) CALLS(AT("0", ARGS("\\n"))),
     "click{\"x\": 1}"},
};

static const struct shape wholes[] = {
    {"two calls",
     WHOLE("\"tool_calls\": [{" ID("a", FN("click", X("1"))) "}, {" ID("b", FN("click", X("2"))) "}]"),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"two calls with one id",
     WHOLE("\"tool_calls\": [{" ID("a", FN("click", X("1"))) "}, {" ID("a", FN("click", X("2"))) "}]"),
     "click{\"x\": 1} click{\"x\": 2}"},
    {"a legacy call", WHOLE("\"function_call\": {\"name\": \"click\", \"arguments\": \"{\\\"x\\\": 1}\"}"),
     "click{\"x\": 1}"},
    {"one call without a list", WHOLE("\"tool_calls\": {" ID("a", FN("click", X("1"))) "}"),
     "click{\"x\": 1}"},
    {"no call", WHOLE("\"tool_calls\": []"), ""},
    {"null", WHOLE("\"tool_calls\": null, \"function_call\": null"), ""},
};

/* Returns the calls for the dialect's parser as "name{arguments} ..."; the caller frees it. */
static char *calls_in(const char *text)
{
    char *out = xstrdup("");
    for (const char *at = strchr(text, '{'); at; at = strchr(at, '{')) {
        json_error_t why;
        json_t *call = json_loads(at, JSON_DISABLE_EOF_CHECK, &why),
               *args = json_object_get(call, "arguments");
        char *shown = json_dumps(args, JSON_ENCODE_ANY),
             *more = xasprintf("%s%s%s%s", out, *out ? " " : "",
                               json_string_value(json_object_get(call, "name")), shown ? shown : "?");
        free(shown);
        free(out);
        out = more;
        at += call ? why.position : 1;
        json_decref(call);
    }
    return out;
}

static void check_shape(const struct shape *s, const char *reply)
{
    const struct far_turn turn = {reply, 0};
    struct talk t;
    talk_open(&t, &turn, 1, NULL, "gemini", "{\"tries\": 1}");
    if (talk_ask(&t, "Hello"))
        fail_msg("%s: %s", s->about, t.e.text);
    char *calls = calls_in(t.g.text.data);
    if (strcmp(calls, s->calls) != 0)
        fail_msg("%s: %s", s->about, t.g.text.data);
    free(calls);
    talk_close(&t);
}

static void t_calls(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char *reply = xasprintf(FAR_OK "%s%s" FAR_DONE, shapes[i].reply,
                                strstr(shapes[i].reply, "\"message\"") ? "" : FAR_STOP);
        check_shape(&shapes[i], reply);
        free(reply);
    }
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        check_shape(&wholes[i], wholes[i].reply);
    check_note("%zu shapes", (sizeof shapes + sizeof wholes) / sizeof *shapes);
}

/* ---- texts and thoughts
 * ------------------------------------------------------------------------------------ */

static void t_texts(void **state)
{
    static const struct {
        const char *reply, *text, *thought;
    } cases[] = {
        {DELTA("{\"role\": \"assistant\", \"content\": null}") DELTA("{\"content\": \"\"}")
             DELTA("{\"content\": \"a\"}"),
         "a", NULL},
        {DELTA(
             "{\"content\": [{\"type\": \"text\", \"text\": \"a\"}, \"b\", {\"type\": \"output_text\", \"text\": "
             "\"c\"}]}"),
         "abc", NULL},
        {DELTA("{\"reasoning\": \"hm\", \"content\": \"a\"}"), "a", "\"hm\""},
        {DELTA("{\"reasoning_content\": \"hm\", \"content\": \"a\"}"), "a", "\"hm\""},
        {DELTA("{\"thinking\": \"hm\", \"content\": \"a\"}"), "a", "\"hm\""},
        {DELTA("{\"reasoning\": null, \"reasoning_content\": \"hm\", \"content\": \"a\"}"), "a", "\"hm\""},
        {DELTA("{\"reasoning\": \"\", \"reasoning_content\": \"hm\", \"content\": \"a\"}"), "a", "\"hm\""},
        {DELTA("{\"reasoning\": \"hm\", \"reasoning_content\": \"hm\", \"content\": \"a\"}"), "a", "\"hm\""},
        {DELTA("{\"reasoning\": {\"content\": \"hm\"}, \"content\": \"a\"}"), "a", "\"hm\""},
        {DELTA(
             "{\"reasoning_details\": [{\"type\": \"reasoning.text\", \"text\": \"hm\"}], \"content\": \"a\"}"),
         "a", "\"hm\""},
        {DELTA(
             "{\"content\": [{\"type\": \"thinking\", \"thinking\": [{\"type\": \"text\", \"text\": \"hm\"}]}, "
             "{\"type\": \"text\", \"text\": \"a\"}]}"),
         "a", "\"hm\""},
        {DELTA("{\"content\": \"a\"}") MESSAGE("{\"content\": \"a\"}"), "a", NULL},
        {MESSAGE("{\"content\": \"a\"}"), "a", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *reply = xasprintf(FAR_OK "%s" FAR_STOP FAR_DONE, cases[i].reply);
        const struct far_turn turns[] = {{reply, 0}, {FAR_OK FAR_SAYS("b") FAR_STOP, 0}};
        struct talk t;
        talk_open(&t, turns, 2, NULL, "gemini", "{\"tries\": 1, \"send_reasoning\": \"reasoning\"}");
        if (talk_ask(&t, "Hello") || talk_ask(&t, "More"))
            fail_msg("case %zu: %s", i, t.e.text);
        char *said = talk_at(&t, 1, "messages.2.content"), *thought = talk_at(&t, 1, "messages.2.reasoning");
        char *wanted = xasprintf("\"%s\"", cases[i].text);
        if (strcmp(said, wanted) != 0 ||
            strcmp(thought, cases[i].thought ? cases[i].thought : "(nothing)") != 0)
            fail_msg("case %zu: %s, %s", i, said, thought);
        free(wanted);
        free(said);
        free(thought);
        free(reply);
        talk_close(&t);
    }
}

/* ---- Messages ------------------------------------------------------------------------------------------------ */

#define EVENT(json)     "data: " json "\n\n"
#define BLOCK(at, json) EVENT("{\"type\": \"content_block_start\"" at ", \"content_block\": " json "}")
#define USE(id, name, input)                                                                                 \
    "{\"type\": \"tool_use\", \"id\": " id ", \"name\": \"" name "\", \"input\": " input "}"
#define PART(at, text)                                                                                       \
    EVENT("{\"type\": \"content_block_delta\"" at ", \"delta\": {\"type\": \"input_json_delta\", "           \
          "\"partial_json\": \"" text "\"}}")
#define END(at) EVENT("{\"type\": \"content_block_stop\"" at "}")
#define I(n)    ", \"index\": " n
#define STOP                                                                                                 \
    EVENT("{\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"tool_use\"}}")                       \
    EVENT("{\"type\": \"message_stop\"}")
#define C(n) "{\\\"c\\\": " n "}"

static const struct shape messages[] = {
    {"pieces", BLOCK(I("0"), USE("\"a\"", "click", "{}")) PART(I("0"), "") PART(I("0"), C("1")) END(I("0")),
     "a click{\"c\": 1}"},
    {"all at index 0",
     BLOCK(I("0"), USE("\"a\"", "click", "{}")) PART(I("0"), C("1")) END(I("0"))
         BLOCK(I("0"), USE("\"b\"", "press", "{}")) PART(I("0"), C("2")) END(I("0")),
     "a click{\"c\": 1} b press{\"c\": 2}"},
    {"first index 1", BLOCK(I("1"), USE("\"a\"", "click", "{}")) PART(I("1"), C("1")) END(I("1")),
     "a click{\"c\": 1}"},
    {"no index",
     BLOCK("", USE("\"a\"", "click", "{}")) PART("", C("1")) END("") BLOCK("", USE("\"b\"", "press", "{}"))
         PART("", C("2")) END(""),
     "a click{\"c\": 1} b press{\"c\": 2}"},
    {"the input in the first event", BLOCK(I("0"), USE("\"a\"", "click", "{\"c\": 1}")) END(I("0")),
     "a click{\"c\": 1}"},
    {"the input in the first event and an empty piece",
     BLOCK(I("0"), USE("\"a\"", "click", "{\"c\": 1}")) PART(I("0"), "") END(I("0")), "a click{\"c\": 1}"},
    {"the input twice", BLOCK(I("0"), USE("\"a\"", "click", "{\"c\": 1}")) PART(I("0"), C("1")) END(I("0")),
     "a click{\"c\": 1}"},
    {"the input as a text", BLOCK(I("0"), USE("\"a\"", "click", "\"{\\\"c\\\": 1}\"")) END(I("0")),
     "a click{\"c\": 1}"},
    {"no input", BLOCK(I("0"), "{\"type\": \"tool_use\", \"id\": \"a\", \"name\": \"shot\"}"), "a shot{}"},
    {"no end of the block", BLOCK(I("0"), USE("\"a\"", "click", "{}")) PART(I("0"), C("1")),
     "a click{\"c\": 1}"},
    {"no id", BLOCK(I("0"), USE("null", "click", "{}")) PART(I("0"), C("1")) END(I("0")),
     "toolu_0 click{\"c\": 1}"},
    {"a block again once it is complete",
     BLOCK(I("0"), USE("\"a\"", "click", "{}")) PART(I("0"), C("1")) END(I("0"))
         BLOCK(I("1"), USE("\"a\"", "click", "{\"c\": 1}")) END(I("1")),
     "a click{\"c\": 1}"},
    {"an empty slot",
     BLOCK(I("0"), USE("\"z\"", "", "{}")) END(I("0")) BLOCK(I("1"), USE("\"a\"", "click", "{}"))
         PART(I("1"), C("1")) END(I("1")),
     "a click{\"c\": 1}"},
};

static char *uses_in(const char *text)
{
    json_t *list = json_loads(text, 0, NULL), *use;
    char *out = xstrdup("");
    size_t i;
    json_array_foreach(list, i, use)
    {
        char *input = json_dumps(json_object_get(use, "input"), JSON_ENCODE_ANY);
        char *more =
            xasprintf("%s%s%s %s%s", out, *out ? " " : "", json_string_value(json_object_get(use, "id")),
                      json_string_value(json_object_get(use, "name")), input);
        free(input);
        free(out);
        out = more;
    }
    json_decref(list);
    return out;
}

static void t_messages(void **state)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        char *reply = xasprintf(FAR_OK "%s" STOP, messages[i].reply);
        const struct far_turn turns[] = {{reply, 0}, {reply, 0}};
        struct talk t;
        talk_open(&t, turns, 2, "messages", "anthropic-computer", "{\"tries\": 1}");
        if (talk_show(&t, "Hello", 64, 48))
            fail_msg("%s: %s", messages[i].about, t.e.text);
        char *uses = uses_in(t.g.text.data);
        if (strcmp(uses, messages[i].calls) != 0)
            fail_msg("%s: %s", messages[i].about, t.g.text.data);
        if (talk_show(&t, "More", 64, 48))
            fail_msg("%s: %s", messages[i].about, t.e.text);
        char *back = talk_at(&t, 1, "messages.1.content"), *again = uses_in(back);
        assert_string_equal(again, uses); /* each use is returned once, with its input */
        assert_null(strstr(back, "index"));
        free(again);
        free(back);
        free(uses);
        free(reply);
        talk_close(&t);
    }
}

/* ---- Responses ------------------------------------------------------------------------------------------------ */

#define CALL                                                                                                 \
    "{\"type\": \"computer_call\", \"id\": \"i\", \"call_id\": \"c\", \"action\": {\"type\": \"wait\"}, "    \
    "\"pending_safety_checks\": []}"
#define DONE(output)                                                                                         \
    EVENT("{\"type\": \"response.completed\", \"response\": {\"status\": \"completed\"" output "}}")

static const char *const responses[] = {
    DONE(", \"output\": [" CALL "]"),
    EVENT("{\"type\": \"response.output_item.done\", \"item\": " CALL "}") DONE(", \"output\": []"),
    EVENT("{\"type\": \"response.output_item.done\", \"item\": " CALL "}") DONE(""),
    EVENT("{\"type\": \"response.output_item.done\", \"item\": " CALL "}") DONE(", \"output\": [" CALL "]"),
    DONE(", \"output\": [" CALL ", " CALL "]"),
    DONE(
        ", \"output\": [{\"type\": \"computer_call\", \"id\": \"c\", \"action\": \"{\\\"type\\\": \\\"wait\\\"}\"}]"),
    DONE(
        ", \"output\": [{\"type\": \"computer_call\", \"id\": \"c\", \"call_id\": null, \"actions\": [{\"type\": "
        "\"wait\"}]}]"),
};

static void t_responses(void **state)
{
    for (size_t i = 0; i < sizeof responses / sizeof *responses; i++) {
        char *reply = xasprintf(FAR_OK "%s", responses[i]);
        const struct far_turn turns[] = {{reply, 0}, {reply, 0}};
        struct talk t;
        struct step step;
        talk_open(&t, turns, 2, "responses", "openai-computer", "{\"tries\": 1}");
        if (talk_show(&t, "Hello", 64, 48))
            fail_msg("case %zu: %s", i, t.e.text);
        if (action_parse(t.g.text.data, t.g.text.len, t.dialect, 64, 48, &step, &t.e) || step.nactions != 1 ||
            step.actions[0].kind != ACT_WAIT)
            fail_msg("case %zu: %s, %s", i, t.g.text.data, t.e.text);
        step_free(&step);
        if (talk_show(&t, "More", 64, 48))
            fail_msg("case %zu: %s", i, t.e.text);
        char *id = talk_at(&t, 1, "input.2.call_id");
        assert_string_equal(id, "\"c\"");
        free(id);
        free(reply);
        talk_close(&t);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("streamed tool calls are assembled for any index, id, name and division into pieces", t_calls),
    CLAIM("texts and thoughts are read from each member and form that servers use", t_texts),
    CLAIM("Messages: blocks are assembled by index or order, with their inputs, once", t_messages),
    CLAIM("Responses: calls come from the items or the whole response, once, with an id", t_responses),
};

CHECK_MAIN()
