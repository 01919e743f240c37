/* t_cuda_speculate.c - tests of n-gram speculation on the device (see t_speculate.c). */
#include "speculated.h"

static void t_card(void **state)
{
    (void)state;
    compare("cuda", NULL, STATE_FP32, false, LENGTH_CARD);
    compare("cuda", NULL, STATE_FP16, false, LENGTH_CARD);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a reply is the same with and without speculation on the device", t_card),
};

int main(int argc, char **argv)
{
    return tiny_main(argc, argv, check_seed(), tests, sizeof tests / sizeof *tests);
}
