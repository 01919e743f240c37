/* t_cuda_ops.c - claims about cuda/: every kernel, run on the host, against the scalar reference.
 *
 * tests/emu runs the threads of a block in an order drawn anew at each barrier, with shared memory that begins as
 * NaN: a missing barrier or a number that was never written shows in a result, a thread that leaves the others
 * waiting ends the program with the kernel's name.  Tolerances: lab.h.
 */
#include "check.h"
#include "lab.h"

#include "cuda/cuda.h"

#include <math.h>

static void compare(lab_case *fn, int rounds)
{
    struct err e = ERR_INIT;
    struct lab l = {.ref = backend_cpu("ref", NULL, NULL), .fast = backend_cuda(0, NULL, &e)};
    if (!l.fast)
        fail_msg("%s", e.text);
    l.mem = l.fast;
    for (int act = 0; act < 2; act++) {
        l.act = act ? DT_BF16 : DT_F32;
        double off = 0;
        for (int r = 0; r < rounds; r++)
            off = fmax(off, fn(&l));
        check_note("%-4s %d cases, worst difference %.2f of the tolerance", dtype_name(l.act), rounds, off);
        assert_true(off <= 1);
    }
    backend_free(l.fast);
    backend_free(l.ref);
}

static void t_norms(void **state)
{
    (void)state;
    compare(lab_norms, 20);
}

static const struct CMUnitTest tests[] = {
    CLAIM("norms and sums equal the reference", t_norms),
};

int main(int argc, char **argv)
{
    lab_random = check_seed();
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
