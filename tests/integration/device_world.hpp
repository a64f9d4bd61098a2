#pragma once

#include <signal.h>
#include <string>
#include <vector>

namespace elastic::testing {

/// Runs device_check, device_moves and device_mistakes, one after another, on so many ranks.
/// Expects that all ends well, with the same results on all ranks. `exact`: with numbers of
/// which the sums do not depend on their order. `prefix`: of each rank's command.
/// Returns what they have said.
std::string device_world(int ranks, const std::vector<std::string>& environment, bool exact = false,
                         const std::vector<std::string>& prefix = {});

/// Runs a training of three workers with sums on a device. One worker is sent `signal`, of which it
/// dies at last, and replaced by a joiner. Expects that all have the same state in the end. Returns
/// their output.
std::string device_training(const std::vector<std::string>& environment,
                            const std::vector<std::string>& prefix = {}, int signal = SIGKILL);

/// Runs a training of three workers with sums on a device by NCCL, of which one is removed at a
/// step boundary. Expects that NCCL shrinks the communicator and performs the sums of the other
/// two, and that they have the same state in the end.
void device_shrinking(const std::vector<std::string>& environment,
                      const std::vector<std::string>& prefix = {});

}  // namespace elastic::testing
