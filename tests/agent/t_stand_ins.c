/* t_stand_ins.c - tests the words that stand for secrets in the task of the embedded model. */
#include "check.h"

#include "pocket/private.h"

#include <stdlib.h>

/* A task may mean a secret's value, or an element of the same name. */
static void t_stand_ins(void **state)
{
    static const char *const cases[][2] = {
        {"type the password into the Password field", "type Melbourne into the Password field"},
        {"Type {{PASSWORD}} into Password", "Type Melbourne into Password"},
        {"Type {{password}} into Password", "Type Melbourne into Password"},
        {"enter my password, then press OK", "enter Melbourne, then press OK"},
        {"Type password into Password", "Type Melbourne into Password"},
        {"Enter Ana as User and the password as Password", "Enter Ana as User and Melbourne as Password"},
        {"Log in as ana with {{PASSWORD}} and {{API_TOKEN}}", "Log in as ana with Melbourne and Florence"},
        {"Write the api token into Token", "Write Melbourne into Token"},
        {"Type Melbourne into City and the password into Password",
         "Type Melbourne into City and Florence into Password"},
        {"Click the password field", "Click the password field"},
        {"Press Forgot password", "Press Forgot password"},
        {"Type x into the password box", "Type x into the password box"},
        {"Type x into the passwords list", "Type x into the passwords list"},
        {"Show the password", "Show the password"},
    };
    struct err e = ERR_INIT;
    struct secrets *s = secrets_new();
    setenv("T_PASSWORD", "kR7%vq-19", 1);
    setenv("T_TOKEN", "tok_8f3a", 1);
    assert_int_equal(secrets_add(s, "password=env:T_PASSWORD", &e), 0);
    assert_int_equal(secrets_add(s, "API_TOKEN=env:T_TOKEN", &e), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stand_ins x;
        const char *unused = NULL;
        char *task = stand_ins_task(&x, cases[i][0], s, &unused);
        assert_string_equal(task, cases[i][1]);
        free(task);
    }
    secrets_free(s);
}

/* Typed placeholders become secret names again; element names do not change. */
static void t_resolved(void **state)
{
    struct err e = ERR_INIT;
    struct secrets *s = secrets_new();
    struct stand_ins x;
    const char *unused = NULL;
    setenv("T_PASSWORD", "kR7%vq-19", 1);
    setenv("T_PIN", "4829", 1);
    assert_int_equal(secrets_add(s, "PASSWORD=env:T_PASSWORD", &e), 0);
    assert_int_equal(secrets_add(s, "PIN=env:T_PIN", &e), 0);
    free(stand_ins_task(&x, "Type the password into A", s, &unused));
    assert_string_equal(unused, "PIN"); /* not mentioned in the task */
    struct step step = {.nactions = 2};
    step.actions[0] = (struct action){.kind = ACT_TYPE, .text = xstrdup("melbourne")};
    step.actions[1] = (struct action){.kind = ACT_CLICK, .text = xstrdup("Melbourne")};
    stand_ins_resolve(&x, &step);
    assert_string_equal(step.actions[0].text, "{{PASSWORD}}");
    assert_string_equal(step.actions[1].text, "Melbourne");
    step_free(&step);
    secrets_free(s);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the embedded model's task has a placeholder for each secret that it mentions", t_stand_ins),
    CLAIM("a placeholder that the model types becomes the secret's name in the action", t_resolved),
};

CHECK_MAIN()
