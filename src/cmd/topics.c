/* topics.c - see topics.h. */
#include "cmd/topics.h"

#include "actions/dialect.h"
#include "base/buf.h"
#include "qa/suite/suite.h"
#include "remote/endpoint.h"
#include "trace/status.h"

enum { MAX_TOPIC = 64 << 10 };

static char *dialects_text(void)
{
    struct buf b;
    buf_init(&b, MAX_TOPIC);
    for (const char *const *name = dialect_names(); *name; name++)
        buf_printf(&b, "  %-19s %s\n", *name, dialect_suits(*name));
    return buf_take(&b);
}

static char *providers_text(void)
{
    struct buf b;
    const struct provider *p;
    buf_init(&b, MAX_TOPIC);
    for (int i = 1; (p = provider_at(i)); i++) {
        buf_printf(&b, "  %-11s %s\n", p->name, p->base_url);
        buf_printf(&b, "  %-11s key: %s; protocol: %s; dialect: %s;\n", "",
                   p->variable ? p->variable : "none", p->api,
                   p->dialect ? p->dialect : "by the model's name");
        buf_printf(&b, "  %-11s model: %s\n", "",
                   p->model      ? p->model
                   : p->variable ? "set with --model"
                                 : "the only model of the server, else set with --model");
    }
    return buf_take(&b);
}

static char *ends_text(void)
{
    struct buf b;
    buf_init(&b, MAX_TOPIC);
    for (int s = AGENT_ANSWERED; s < AGENT_STATUSES; s++) {
        const struct status_row *row = status_row((enum agent_status)s);
        buf_printf(&b, "  %-12s %3d  %s%s\n", row->name, row->exit, row->meaning,
                   s == AGENT_FAILED ? " (4 if the model failed)" : "");
    }
    return buf_take(&b);
}

static char *sentences_text(void)
{
    return xstrdup(
        "  press Save                        also: click, tap, push\n"
        "  double-click report.txt           right-click Trash\n"
        "  press Delete in the row of Invoice 7\n"
        "  tick Active in the row of Ana    choose Admin in Role in the row of Bo\n"
        "  tick Gift wrapping                untick Newsletter; turn on, turn off, enable, disable\n"
        "  choose Large in Size              select Dark\n"
        "  enter \"Ana Lima\" into Name        set Quantity to 3; fill City with Rome; clear Name\n"
        "  open menu File > Save As          open the Edit menu\n"
        "  go to tab Advanced                close the window\n"
        "  press ctrl+s                      press the Tab key 3 times\n"
        "  scroll to Terms                   wait for Order received\n"
        "  check that Save is shown          is gone, ticked, unticked, enabled, disabled\n"
        "  check that Total equals \"12\"     contains \"1\"\n"
        "\n"
        "Separate steps with \"then\", \"and\", commas, semicolons, full stops or line breaks. Quote\n"
        "a name or text that contains one of these, or a word such as \"in\", \"into\" or \"or\":\n"
        "\"...\" or '...'; inside, \\\" is a quotation mark. A sentence with \"not\", \"if\", \"or\" or\n"
        "\"all\", or with any word that these rules do not cover, is left to a model.\n"
        "\n"
        "An element is found by its name in the program's description of its window (AT-SPI),\n"
        "without regard to case, \"...\" and colons, or by the label beside it. A name that is missing\n"
        "or that several elements have ends the run with exit code 1, and nothing is guessed. An option\n"
        "without \"in\" is one on the screen, or else that of the only closed list that has it.\n");
}

static char *elements_text_topic(void)
{
    return xstrdup("Programs describe their windows through AT-SPI, the interface of screen readers:\n"
                   "\n"
                   "  window \"Passenger\" 401x240 active\n"
                   "    e4 field \"Name\" = \"Ana\" focused\n"
                   "    e1 list \"Size\" = \"Small\"\n"
                   "    e5 button \"Cancel\"\n"
                   "    e6 button \"OK\" off\n"
                   "\n"
                   "holorun elements prints this text. A number such as e4 is a ref: it stays with its\n"
                   "element over any number of reads, and is not used again.\n"
                   "\n"
                   "Coding agents (holorun mcp): the tool snapshot returns the text, find its lines with\n"
                   "given words, and act presses, fills, chooses, ticks by ref and answers with the effect\n"
                   "and the lines that changed. screenshot draws the refs with marks: true.\n"
                   "\n"
                   "Models (holorun run, qa): --elements-text add appends the text to each screenshot;\n"
                   "--elements-text only sends it in place of screenshots, for models without vision behind\n"
                   "an address (--base-url, --provider): they see what programs describe and nothing else,\n"
                   "no pictures, drawings or windows without a description. In a reply a ref may stand for\n"
                   "the position of a click, as the element or as the coordinate. A ref whose element is\n"
                   "gone, or has another role or name now, is a mistake that the model reads about; nothing\n"
                   "is pressed. Off by default: the models of holorun were trained without this text.\n"
                   "\n"
                   "Secrets are replaced by their names, elements in --hide zones are left out, and the\n"
                   "contents of password fields are not read. --no-elements reads nothing.\n");
}

static char *steps_text(void)
{
    return xstrdup(suite_steps_help);
}

static char *planner_text(void)
{
    return xstrdup(
        "  holorun run --planner only --dry-run \"Order a large shirt with gift wrapping\"\n"
        "  I understood: 1. choose \"Large\" in \"Size\"  2. tick \"Gift wrapping\"  3. press \"Order\"\n"
        "\n"
        "With --planner, rules compare the words of a task with the names in the active window and\n"
        "propose plain steps ('holorun help sentences'); no model is needed. Steps of a window that\n"
        "opens later are planned when it is open. After the last value of a dialog its OK, Apply, Save,\n"
        "Done or Submit is pressed, the button with a verb of the task, or one that orders the goods.\n"
        "A sum is typed with the keys of a calculator.\n"
        "\n"
        "With -m FILE.gguf, a model without vision, the model writes the state of the window after the\n"
        "task where the rules do not decide, and what the window cannot carry out; values that differ\n"
        "become steps. It can write only words of the task into fields, and names of the window. Without\n"
        "a user nothing is done if it names a missing part, or if a name, a number or a part of the\n"
        "task is in no step.\n"
        "\n"
        "A user at the terminal confirms the steps (--confirm). Without a user they are performed\n"
        "only with --confirm yes-to-all, and if, by rules, each word that names a thing is in a name\n"
        "or value (or in the title), and the names find one element. Capitals, numbers,\n"
        "quotations and file names must be found literally, and so must words like \"all\" or\n"
        "\"cheapest\". Sentences with \"not\", \"if\" or \"or\", and questions, are refused. Otherwise the\n"
        "run ends with exit code 8 and the nearest names, before anything is pressed; later, the answer\n"
        "says where it stopped. Rules of the policy apply as always.\n"
        "With --planner auto a model with vision continues instead, unless you declined the steps.\n"
        "'holorun qa --freeze' plans the sentences of a suite ('holorun help steps').\n"
        "\n"
        "--dry-run prints the steps; their probabilities (1 by rules) go to stderr, and with --json\n"
        "into \"plan\". The rules are English, and few: of 196 tasks in the words of people who did not\n"
        "know them, 11 were done by rules alone; of 98, 22 with Qwen2.5-Coder-1.5B. One report of\n"
        "success in four was false, so look at the steps, or say what to press, choose and enter\n"
        "('holorun help sentences').\n");
}

const struct topic topics[] = {
    {"dialects", "reply formats (--dialect) and their models", dialects_text},
    {"providers", "services and local servers (--provider) and their settings", providers_text},
    {"sentences", "tasks that need no model (--plain)", sentences_text},
    {"elements", "windows as text with refs, for coding agents and models", elements_text_topic},
    {"steps", "tasks of suites in steps, which need no model", steps_text},
    {"planner", "freely worded tasks without a model (--planner)", planner_text},
    {"exit", "results of a run: status, exit code, meaning", ends_text},
    {0},
};
