#pragma once

#include <cstdint>

namespace elastic::training {

// The training and the branch that a state belongs to, as one number. Its upper half names the
// training, and stays the same for joiners and through checkpoints. Its lower half names a branch:
// each job that goes on from a checkpoint is one. Two states of one branch have an order, two
// states of different branches need not have one. 0: not known.

/// Random.
std::uint64_t new_training();
/// Another branch of the same training.
std::uint64_t new_branch(std::uint64_t training);
bool same_training(std::uint64_t one, std::uint64_t other);

}  // namespace elastic::training
