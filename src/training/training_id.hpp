#pragma once

#include <cstdint>

namespace elastic::training {

// What a state is a state of, as one number. Its upper half names the training, and stays the same
// for joiners and through checkpoints. Its lower half names a branch of it: each job that goes on
// from a checkpoint is one. Of two states of one branch one is the older; of two branches neither
// need be. 0: not known.

/// Random.
std::uint64_t new_training();
/// Another branch of the same training.
std::uint64_t new_branch(std::uint64_t training);
bool same_training(std::uint64_t one, std::uint64_t other);

}  // namespace elastic::training
