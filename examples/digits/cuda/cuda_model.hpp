#pragma once

#include <memory>
#include <span>

#include "examples/digits/dataset.hpp"
#include "examples/digits/model.hpp"

namespace digits {

/// How many CUDA devices there are, at least 1. Throws std::runtime_error, which says what is
/// missing: this build was made without CUDA, or there is no driver that suits it, or no device.
int cuda_devices();

/// On a CUDA device, whose memory the training samples are copied to. Throws std::runtime_error for
/// what CUDA reports, here and later.
std::unique_ptr<Model> make_cuda_model(const ModelOptions& options,
                                       std::span<const Sample> training, int device);

}  // namespace digits
