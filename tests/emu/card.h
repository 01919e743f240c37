/* card.h - internal interface of the emulated GPU. */
#pragma once

#include "cuda_runtime.h"

struct emu_stream {
    int card;
};

namespace emu
{

/* Aborts unless the stream belongs to the current device of this thread. */
void give_work(cudaStream_t stream, const char *what);

/* Runs all work that is queued in the stream. */
void drain();

/* Returns whether `at` points into pinned host memory. */
bool is_pinned(const void *at);

/* Aborts if a graph is being captured: the operation `what` cannot be captured. */
void refuse_recording(const char *what);

/* Aborts unless the device side of a copy of this kind lies within device memory. */
void check_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind);

} // namespace emu
