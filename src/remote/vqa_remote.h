/* vqa_remote.h - questions to a model behind an endpoint (judge/vqa.h). */
#ifndef HOLORUN_REMOTE_VQA_REMOTE_H
#define HOLORUN_REMOTE_VQA_REMOTE_H

#include "judge/vqa.h"
#include "remote/endpoint.h"

/* dialect NULL: the profile's, else the protocol's.  l is to be closed in either case. */
int vqa_open_remote(struct vqa *l, const struct endpoint_options *o, const char *dialect, uint64_t seed,
                    struct err *e);
/* NULL: the model is in this process. */
struct endpoint *vqa_endpoint(const struct vqa *l);

#endif
