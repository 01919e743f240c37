/* scan.cu - the Mamba-2 recurrence of many tokens at once. */
#include "ssm.cuh"

static void cuda_ssm_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                          struct tensor state, const struct ssm_shape *s, const struct ssm_const *c)
{
    ssm_walk_run(b, y, v, dt, &state, 1, s, c);
}

void scan_fill(struct ops *o)
{
    o->ssm_scan = cuda_ssm_scan;
}
