/* t_cuda_speculate.c - tests of n-gram speculation on the device (see t_speculate.c). */
#include "speculated.h"

static void t_card(void **state)
{
    compare("cuda", NULL, STATE_FP32, false, LENGTH_CARD);
    compare("cuda", NULL, STATE_FP16, false, LENGTH_CARD);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a reply is the same with and without speculation on the device", t_card),
};

TINY_MAIN(check_seed())
