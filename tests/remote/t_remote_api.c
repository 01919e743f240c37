/* t_remote_api.c - tests the three protocols on the wire: requests for a conversation with screenshots,
 * replies of OpenAI Responses and Anthropic Messages, and the items returned to the server.
 *
 * The replies are those of the public references of both, with invented ids.
 */
#include "check.h"

#include "actions/action.h"
#include "far.h"

#include <stdlib.h>
#include <string.h>

#define EVENT(json) "event: x\ndata: " json "\n\n"

static void expect_begins(const struct talk *t, int request, const char *path, const char *begin)
{
    char *text = talk_at(t, request, path);
    if (strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("request %d, %s: %.300s", request, path, text);
    free(text);
}

/* Checks the actions that the dialect's parser reads from the last reply. */
static void expect_actions(struct talk *t, const char *thought, const char *described)
{
    struct step step;
    if (action_parse(t->g.text.data, t->g.text.len, t->dialect, 640, 480, &step, &t->e))
        fail_msg("%s: %s", t->g.text.data, t->e.text);
    char *what = actions_describe(step.actions, step.nactions);
    assert_string_equal(what, described);
    assert_string_equal(step.thought ? step.thought : "", thought);
    free(what);
    step_free(&step);
}

/* ---- OpenAI Responses -------------------------------------------------------------------------------- */

#define RESPONSE(items)                                                                                      \
    "{\"id\": \"resp_1\", \"object\": \"response\", \"status\": \"completed\", \"output\": [" items          \
    "], \"usage\": {\"input_tokens\": 900, \"input_tokens_details\": {\"cached_tokens\": 600}, "             \
    "\"output_tokens\": 40}}"
#define REASONING                                                                                             \
    "{\"type\": \"reasoning\", \"id\": \"rs_1\", \"encrypted_content\": \"gAAAA\", \"summary\": [{\"type\": " \
    "\"summary_text\", \"text\": \"Save is there.\"}]}"
#define CALL(checks)                                                                                         \
    "{\"type\": \"computer_call\", \"id\": \"cu_1\", \"call_id\": \"call_1\", \"status\": \"completed\", "   \
    "\"actions\": [{\"type\": \"click\", \"button\": \"left\", \"x\": 12, \"y\": 34}, {\"type\": \"type\", " \
    "\"text\": \"Paris\"}], \"pending_safety_checks\": [" checks "]}"
#define ANSWERED                                                                                             \
    "{\"type\": \"message\", \"role\": \"assistant\", \"content\": [{\"type\": \"output_text\", \"text\": "  \
    "\"It is saved.\", \"annotations\": []}]}"

static void t_responses(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_OK EVENT("{\"type\": \"response.created\", \"response\": {}}")
             EVENT("{\"type\": \"response.reasoning_summary_text.delta\", \"delta\": \"Save\"}") EVENT(
                 "{\"type\": \"response.completed\", \"response\": " RESPONSE(REASONING ", " CALL("")) "}"),
         5},
        {FAR_JSON RESPONSE(ANSWERED), 0}};
    struct talk t;
    talk_open(&t, turns, 2, "responses", "openai-computer", NULL);
    talk_ok(&t, talk_show(&t, "Save it.\n", 640, 480));
    expect_actions(&t, "Save is there.", "click at 12,34; type \"Paris\"");
    assert_int_equal(t.llm->ops->usage(t.llm)->cached, 600);
    talk_ok(&t, talk_show(&t, "", 640, 480));
    expect_actions(&t, "It is saved.", "answer \"It is saved.\"");
    talk_expect(&t, 0, "tools", "[{\"type\":\"computer\"}]");
    talk_expect(&t, 0, "instructions", "\"You are a test.\"");
    talk_expect(&t, 0, "input.0.content.0", "{\"type\":\"input_text\",\"text\":\"Save it.\\n\"}");
    expect_begins(&t, 0, "input.0.content.1",
                  "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,");
    talk_expect(&t, 1, "input.1.encrypted_content", "\"gAAAA\""); /* as it came */
    talk_expect(&t, 1, "input.2.call_id", "\"call_1\"");
    talk_expect(&t, 1, "input.3.type", "\"computer_call_output\"");
    talk_expect(&t, 1, "input.3.call_id", "\"call_1\"");
    expect_begins(&t, 1, "input.3.output",
                  "{\"type\":\"computer_screenshot\",\"image_url\":\"data:image/png");
    talk_expect(&t, 1, "input.3.acknowledged_safety_checks", "(nothing)");
    talk_expect(&t, 1, "input.4", "(nothing)");
    assert_non_null(strstr(t.server.requests[0], "POST /v1/responses HTTP"));
    talk_close(&t);
}

#define CHECK "{\"id\": \"sc_1\", \"code\": \"malicious_instructions\", \"message\": \"Look first.\"}"

static void t_safety(void **state)
{
    static const struct far_turn turns[] = {{FAR_JSON RESPONSE(CALL(CHECK)), 0},
                                            {FAR_JSON RESPONSE(ANSWERED), 0}};
    for (int passed = 0; passed < 2; passed++) {
        struct talk t;
        struct step step;
        talk_open(&t, turns, 2, "responses", "openai-computer", NULL);
        talk_ok(&t, talk_show(&t, "Save it.\n", 640, 480));
        assert_int_equal(action_parse(t.g.text.data, t.g.text.len, t.dialect, 640, 480, &step, &t.e),
                         FAULT_NONE);
        assert_string_equal(step.check, "Look first.");
        step_free(&step);
        if (passed)
            t.llm->ops->checks_passed(t.llm);
        talk_ok(&t, talk_show(&t, "A person said no.\n", 640, 480));
        if (passed) {
            expect_begins(&t, 1, "input.2.acknowledged_safety_checks", "[{\"id\":\"sc_1\"");
        } else { /* the call is not answered, and no safety check is acknowledged */
            assert_null(strstr(t.server.requests[1], "acknowledged_safety_checks"));
            assert_null(strstr(t.server.requests[1], "computer_call"));
            expect_begins(&t, 1, "input.2.content.0.text", "\"A person said no.");
        }
        talk_close(&t);
    }
}

/* Gemini's safety decision in Chat Completions: the result of the call acknowledges it. */
static void t_decision(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_JSON
         "{\"choices\": [{\"message\": {\"tool_calls\": [{\"id\": \"c\", \"function\": {\"name\": "
         "\"click_at\", \"arguments\": \"{\\\"x\\\": 5, \\\"y\\\": 6, \\\"safety_decision\\\": "
         "{\\\"decision\\\": \\\"require_confirmation\\\", \\\"explanation\\\": \\\"It buys.\\\"}}\"}}]}}]}",
         0},
        {FAR_OK FAR_SAYS("Done.") FAR_STOP, 0}};
    for (int passed = 0; passed < 2; passed++) {
        struct talk t;
        struct step step;
        talk_open(&t, turns, 2, NULL, "gemini", NULL);
        talk_ok(&t, talk_show(&t, "Buy it.\n", 640, 480));
        assert_int_equal(action_parse(t.g.text.data, t.g.text.len, t.dialect, 640, 480, &step, &t.e),
                         FAULT_NONE);
        assert_string_equal(step.check, "It buys.");
        step_free(&step);
        if (passed)
            t.llm->ops->checks_passed(t.llm);
        talk_ok(&t, talk_show(&t, "A person said no.\n", 640, 480));
        talk_expect(&t, 1, "messages.3.tool_call_id", "\"c\"");
        if (passed)
            talk_expect(&t, 1, "messages.3.content", "\"{\\\"safety_acknowledgement\\\": \\\"true\\\"}\"");
        else
            assert_null(strstr(t.server.requests[1], "acknowledgement"));
        talk_close(&t);
    }
}

/* ---- Anthropic Messages ------------------------------------------------------------------------------ */

#define START                                                                                                \
    EVENT("{\"type\": \"message_start\", \"message\": {\"id\": \"msg_1\", \"content\": [], \"usage\": "      \
          "{\"input_tokens\": 100, \"cache_creation_input_tokens\": 50, \"cache_read_input_tokens\": 850, "  \
          "\"output_tokens\": 1}}}")
#define BLOCK(i, block)                                                                                      \
    EVENT("{\"type\": \"content_block_start\", \"index\": " i ", \"content_block\": " block "}")
#define DELTA(i, delta) EVENT("{\"type\": \"content_block_delta\", \"index\": " i ", \"delta\": " delta "}")
#define END(i)          EVENT("{\"type\": \"content_block_stop\", \"index\": " i "}")
#define USE(i, id, name, json)                                                                               \
    BLOCK(i, "{\"type\": \"tool_use\", \"id\": \"" id "\", \"name\": \"" name                                \
             "\", \"toolset_name\": \"computer\", \"input\": {}}")                                           \
    DELTA(i, "{\"type\": \"input_json_delta\", \"partial_json\": \"\"}")                                     \
    DELTA(i, "{\"type\": \"input_json_delta\", \"partial_json\": \"" json "\"}") END(i)

static const char two_uses[] =
    FAR_OK START BLOCK("0", "{\"type\": \"thinking\", \"thinking\": \"\", \"signature\": \"\"}")
        DELTA("0", "{\"type\": \"thinking_delta\", \"thinking\": \"Hm.\"}")
            DELTA("0", "{\"type\": \"signature_delta\", \"signature\": \"EqQB\"}") END("0")
                BLOCK("1", "{\"type\": \"text\", \"text\": \"\"}") DELTA(
                    "1", "{\"type\": \"text_delta\", \"text\": \"First the field.\"}") END("1")
                    USE("2", "toolu_1", "left_click", "{\\\"coordinate\\\": [12, 34]}") USE(
                        "3", "toolu_2", "type", "{\\\"text\\\": \\\"Paris\\\"}") EVENT("{\"type\": \"ping\"}")
                        EVENT("{\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"tool_use\"}, "
                              "\"usage\": {\"output_tokens\": 33}}") EVENT("{\"type\": \"message_stop\"}");
static const char done[] =
    FAR_JSON "{\"type\": \"message\", \"content\": [{\"type\": \"text\", \"text\": \"It is saved.\"}], "
             "\"stop_reason\": \"end_turn\", \"usage\": {\"input_tokens\": 5, \"output_tokens\": 6}}";

static void t_messages(void **state)
{
    static const struct far_turn turns[] = {{two_uses, 7}, {done, 0}};
    struct talk t;
    talk_open(&t, turns, 2, "messages", "anthropic-computer", NULL);
    talk_ok(&t, talk_show(&t, "Save it.\n", 640, 480));
    expect_actions(&t, "First the field.", "click at 12,34; type \"Paris\"");
    const struct llm_usage *u = t.llm->ops->usage(t.llm);
    assert_int_equal(u->prompt, 1000);
    assert_int_equal(u->cached, 850);
    assert_int_equal(u->reply, 33);
    talk_ok(&t, talk_show(&t, "typed\n", 640, 480));
    expect_actions(&t, "It is saved.", "answer \"It is saved.\"");
    talk_expect(&t, 0, "tools", "[{\"type\":\"computer_toolset_20260801\"}]");
    talk_expect(&t, 0, "system", "\"You are a test.\"");
    expect_begins(
        &t, 0, "messages.0.content.1",
        "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"iVBOR");
    talk_expect(&t, 0, "messages.0.content.1.cache_control", "{\"type\":\"ephemeral\"}");
    talk_expect(&t, 1, "messages.1.content.0",
                "{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"EqQB\"}");
    talk_expect(&t, 1, "messages.1.content.3.input", "{\"text\":\"Paris\"}");
    talk_expect(&t, 1, "messages.2.content.0", "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\"}");
    talk_expect(&t, 1, "messages.2.content.1.tool_use_id", "\"toolu_2\"");
    talk_expect(&t, 1, "messages.2.content.1.content.0.text", "\"typed\\n\"");
    talk_expect(&t, 1, "messages.2.content.1.content.1.type", "\"image\"");
    check_has(t.server.requests[0], "x-api-key: sesame-open\r\n", "anthropic-version: 2023-06-01\r\n");
    assert_null(strstr(t.server.requests[0], "anthropic-beta"));
    talk_close(&t);
}

/* The second use is truncated by max_tokens: neither is performed, and both are returned as text. */
static void t_broken_use(void **state)
{
    static const char cut[] = FAR_OK START USE("0", "toolu_1", "left_click", "{\\\"coordinate\\\": [12, 34]}")
        USE("1", "toolu_2", "left_click", "{\\\"coordinate\\\": [12")
            EVENT("{\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"max_tokens\"}}")
                EVENT("{\"type\": \"message_stop\"}");
    static const struct far_turn turns[] = {{cut, 0}, {done, 0}};
    struct talk t;
    struct step step;
    talk_open(&t, turns, 2, "messages", "anthropic-computer", NULL);
    talk_ok(&t, talk_show(&t, "Save it.\n", 640, 480));
    assert_int_equal(t.g.finish, FINISH_LENGTH);
    assert_int_equal(action_parse(t.g.text.data, t.g.text.len, t.dialect, 640, 480, &step, &t.e),
                     FAULT_SCHEMA);
    assert_non_null(strstr(t.e.text, "the input of 'left_click' is cut off"));
    assert_int_equal(step.nactions, 0);
    step_free(&step);
    talk_ok(&t, talk_ask(&t, "That was cut off."));
    expect_begins(&t, 1, "messages.1.content", "\"[{");
    talk_expect(&t, 1, "messages.2.content.0.text", "\"That was cut off.\"");
    talk_close(&t);
}

static void t_older_tools(void **state)
{
    static const struct far_turn turns[] = {
        {FAR_ERROR("400 Bad Request",
                   "tools.0: Input tag 'computer_toolset_20260801' does not match any of the "
                   "expected tags: 'computer_20251124', 'computer_20250124'"),
         0},
        {done, 0},
        {done, 0}};
    struct talk t;
    talk_open(&t, turns, 3, "messages", "anthropic-computer", NULL);
    talk_ok(&t, talk_show(&t, "Save it.\n", 1920, 1200));
    talk_ok(&t, talk_ask(&t, "More"));
    talk_expect(&t, 1, "tools",
                "[{\"type\":\"computer_20251124\",\"name\":\"computer\",\"display_width_px\":1356,"
                "\"display_height_px\":847}]");
    assert_non_null(strstr(t.server.requests[1], "anthropic-beta: computer-use-2025-11-24\r\n"));
    talk_expect(&t, 2, "tools.0.type", "\"computer_20251124\"");
    talk_close(&t);
}

static void t_bad_replies(void **state)
{
    static const struct {
        const char *api, *dialect, *reply, *says;
    } cases[] = {
        {"responses", "openai-computer", FAR_JSON "{\"status\": \"completed\"}", "contains no output"},
        {"responses", "openai-computer", FAR_OK EVENT("{\"type\": \"error\", \"message\": \"overloaded\"}"),
         "overloaded: overloaded"},
        {"responses", "openai-computer",
         FAR_OK EVENT("{\"type\": \"response.failed\", \"response\": {\"error\": {\"message\": \"no\"}}}"),
         "server error: no"},
        {"messages", "anthropic-computer",
         FAR_JSON "{\"type\": \"error\", \"error\": {\"message\": \"busy\"}}", "overloaded: busy"},
        {"messages", "anthropic-computer",
         FAR_OK START EVENT(
             "{\"type\": \"error\", \"error\": {\"type\": \"x\", \"message\": \"Overloaded\"}}"),
         "overloaded: Overloaded"},
        {"messages", "anthropic-computer",
         FAR_OK START EVENT("{\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"refusal\"}}"),
         "reply withheld"},
        {"responses", "openai-computer",
         FAR_JSON "{\"status\": \"incomplete\", \"incomplete_details\": {\"reason\": \"content_filter\"}, "
                  "\"output\": []}",
         "reply withheld"},
        {"messages", "anthropic-computer", FAR_OK START BLOCK("0", "7"),
         "a content block that is not an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct far_turn turn = {cases[i].reply, 0};
        struct talk t;
        talk_open(&t, &turn, 1, cases[i].api, cases[i].dialect, "{\"tries\": 1}");
        if (talk_ask(&t, "Hello") != -1 || !strstr(t.e.text, cases[i].says))
            fail_msg("case %zu: %s", i, t.e.text);
        talk_close(&t);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("Responses: items are returned unchanged, a call gets the screenshot after its actions",
          t_responses),
    CLAIM("a safety check is acknowledged only after a user approved it", t_safety),
    CLAIM("Gemini's safety decision is acknowledged only after a user approved it", t_decision),
    CLAIM("Messages: tool uses are read in order, all results are returned in one message", t_messages),
    CLAIM("a model that refuses the toolset gets the previous tool with the size of its images",
          t_older_tools),
    CLAIM("a truncated tool use is not performed, and is requested again", t_broken_use),
    CLAIM("invalid replies are errors that quote the server", t_bad_replies),
};

CHECK_MAIN()
