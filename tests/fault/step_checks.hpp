#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fault/fault_job.hpp"

namespace elastic::testing {

/// The oracle between workers: step counters neither skip nor go back, and where two workers made
/// the same step, they have the same sums, contributors, generation, error and state.
void expect_same_steps(const std::vector<FaultWorker*>& workers);

/// The same for a worker that was given up, perhaps several times, and came back. It may have been
/// the only one to complete its last step before that. The others then made this step without it,
/// and their state replaced its outcome.
void expect_same_steps_but_missed_ones(FaultWorker& away, const std::vector<FaultWorker*>& others);

/// Generations only grow, and all steps of one generation have the same contributors.
void expect_one_view_per_generation(const std::vector<FaultWorker*>& workers);

/// Expects that all of these workers end by themselves, and well.
void expect_end(const std::vector<FaultWorker*>& workers);

/// Asks for the end, then both of the above; shows everything that was written if any of it fails.
void finish(FaultJob& job, const std::vector<FaultWorker*>& survivors);

/// The sum over these slots' digits.
std::string sum_of(const std::vector<int>& slots);

/// The newest generation that the worker has made a step in.
std::uint64_t generation(FaultWorker& worker);

}  // namespace elastic::testing
