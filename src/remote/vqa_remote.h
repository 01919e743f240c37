/* vqa_remote.h - visual questions to a model behind an HTTP endpoint (judge/vqa.h). */
#pragma once

#include "judge/vqa.h"
#include "remote/endpoint.h"

/* Opens the model. dialect NULL: the profile's, else the protocol's. The caller closes l even after a
 * failure. */
int vqa_open_remote(struct vqa *l, const struct endpoint_options *o, const char *dialect, uint64_t seed,
                    struct err *e);
/* Returns its endpoint; NULL: the model is in this process. */
struct endpoint *vqa_endpoint(const struct vqa *l);
