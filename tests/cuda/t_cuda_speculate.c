/* t_cuda_speculate.c - claims about n-gram speculation on a card: see t_speculate.c. */
#include "speculated.h"

static void t_card(void **state)
{
    compare("cuda", NULL, STATE_FP32, false, LENGTH_CARD);
    compare("cuda", NULL, STATE_FP16, false, LENGTH_CARD);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a reply with guesses is the reply without on a card", t_card),
};

TINY_MAIN(check_seed())
