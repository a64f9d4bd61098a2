#pragma once

/// Marks functions that kernels call and that the host's compiler takes, too: the tests compare
/// them with the host's codecs bit by bit.
#ifdef __CUDACC__
#define ELASTIC_HOST_DEVICE __host__ __device__
#else
#define ELASTIC_HOST_DEVICE
#endif
