#pragma once

#include <string>

#include "elastic/state.hpp"

namespace elastic::training {

/// A State in a file, to restart a job after all its workers have exited. In order:
///
///   preamble  64 bytes, see checkpoint.cpp: sizes; training, generation and commits, by which a
///             save finds out that the file in its place is newer, or of a branch that the job has
///             left. (40 bytes in format 1.)
///   layout    names, types and counts of the entries
///   image     what `serialize` makes of the state: the commits, and all entries but the large ones
///   large     the large entries, as they lie in memory, one after another
///   hash      xxh3 (64 bits) of everything before it
///
/// Large entries are written and read in place.
///
/// State::save_to and State::load_from; both throw what these promise.
void save_checkpoint(const State& state, const std::string& path);
bool load_checkpoint(State& state, const std::string& path);

}  // namespace elastic::training
