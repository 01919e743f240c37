/* card.h - between the files of the emulated card. */
#ifndef HOLORUN_TESTS_EMU_CARD_H
#define HOLORUN_TESTS_EMU_CARD_H

#include "cuda_runtime.h"

struct emu_stream {
    int card;
};

namespace emu
{

/* Work for a stream, by a thread whose own card must be that of the stream. */
void give_work(cudaStream_t stream, const char *what);

/* Work that was given to a stream and has not run yet: all of it now. */
void drain();

/* Whether the host's memory there is pinned. */
bool is_pinned(const void *at);

/* What cannot be recorded. */
void refuse_recording(const char *what);

/* Whether both ends of a copy are what its kind says of the card's. */
void check_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind);

} // namespace emu

#endif
