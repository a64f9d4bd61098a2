#pragma once

#include <elastic/libtorch/averaged_gradients.hpp>
#include <elastic/libtorch/optimizer_state.hpp>
#include <elastic/libtorch/state.hpp>
#include <elastic/libtorch/view.hpp>

/// elastic for PyTorch in C++. Headers alone: the program that includes them finds libtorch, and
/// libelastic knows nothing of it. docs/pytorch.md shows a trainer.
