#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/backend/nccl/communicator/communicator.hpp"
#include "contract/native_world.hpp"
#include "nccl/stand_in.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives::nccl {

/// Communicators of several ranks of one process, which meet over the native backend and have the
/// stand-in for libnccl.
class CommunicatorFixture : public ::testing::Test {
 protected:
  using Script = NcclScript;

  CommunicatorFixture();
  ~CommunicatorFixture() override;

  static TimePoint in(std::chrono::milliseconds time) { return Clock::now() + time; }
  /// A deadline that passes in a test, and is far enough on a loaded machine for all that comes in
  /// time.
  static constexpr std::chrono::milliseconds kTimeLimit =
      std::chrono::milliseconds(1000) * kHangFactor;
  /// Later than anything here takes.
  static TimePoint some_day() { return in(std::chrono::seconds(30)); }

  /// A communicator for each rank of `generation`; where `came` is less, for the first of them
  /// only.
  void prepare(int size, const Deadlines& deadlines, int came = -1, std::uint64_t generation = 7);
  void all_ready();
  void abort_all();
  void all_ended();
  /// The communicator of a rank in the newest view.
  Communicator& of(int rank) { return *views_.back()[static_cast<std::size_t>(rank)]; }
  std::vector<Communicator*> all();
  static void until(const std::function<bool()>& done);

  Status launch(Communicator& communicator, bool never_done = false,
                TimePoint end = some_day()) const;
  Status launch_and_hang(Communicator& communicator) const;

  std::shared_ptr<const NcclLibrary> library_;
  const NcclStandIn* nccl_ = nullptr;
  NcclTuning tuning_;  // of the communicators that are prepared
  std::vector<std::unique_ptr<Backend>> absent_;
  std::vector<std::vector<std::unique_ptr<Communicator>>> views_;
};

}  // namespace elastic::collectives::nccl
