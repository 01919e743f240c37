/* safetensors_impl.h - definition of struct safetensors. safetensors.c and gguf_tensors.c fill it; private
 * to them. */
#pragma once

#include "base/file.h"
#include "base/gguf.h"
#include "checkpoint/safetensors.h"

struct safetensors {
    struct file_map *maps;
    char **files; /* names of the shards */
    int shards;
    struct st_tensor *tensors;
    int count, cap;
    struct gguf_file **gguf; /* parts of the text model, then the vision file; their bytes belong to these,
                              * not to `maps`; or NULL */
    int n_gguf;
};

struct st_tensor *safetensors_add(struct safetensors *s); /* valid until the next call */
int safetensors_sort(struct safetensors *s, struct err *e);

/* Fills s with the tensors of GGUF files under their published names. Frees s and returns NULL with e on
 * failure. */
struct safetensors *safetensors_of_gguf(struct safetensors *s, const char *place, struct err *e);
