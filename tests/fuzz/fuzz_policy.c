/* fuzz_policy.c - any bytes as a policy file; accepted rules are applied to an action. */
#include "base/buf.h"
#include "gate/subject.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct view_transform same = {0, 0, 1, 1};
    static const struct subject_root root = {640, 480, NULL};
    static char text[] = "http://example.org/a\nb";
    struct policy *p = policy_parse((const char *)data, size, "fuzz", NULL);
    if (!p)
        return 0;
    struct subject *s = malloc(sizeof *s);
    for (int k = ACT_NONE + 1; s && k < ACT_COUNT; k++) {
        struct action a = {.kind = (enum action_kind)k,
                           .x = 3,
                           .y = 5,
                           .x2 = 600,
                           .y2 = 470,
                           .keys = {0xffe3, 0xff0d},
                           .nkeys = 2,
                           .text = text,
                           .element = "the Buy button"};
        subject_build(s, &a, &same, &root);
        policy_judge(p, &s->s);
    }
    struct buf b;
    buf_init(&b, 1 << 20);
    policy_print(p, &b);
    buf_free(&b);
    free(s);
    policy_free(p);
    return 0;
}
