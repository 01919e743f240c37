/* fuzz_llm_judge.c - any bytes as the reply of a judge: one of three verdicts, and a reason in valid
 * UTF-8. */
#include "base/utf8.h"
#include "judge/llm_judge.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *reason, *text = xcalloc(size + 1, 1);
    memcpy(text, data, size);
    enum llm_verdict is = llm_judge_read(text, size, &reason);
    if (is > LLM_JUDGE_UNKNOWN || strlen(reason) > LLM_JUDGE_REASON ||
        utf8_valid_prefix(reason, strlen(reason)) != strlen(reason))
        bug("no verdict with a reason");
    free(reason);
    free(text);
    return 0;
}
