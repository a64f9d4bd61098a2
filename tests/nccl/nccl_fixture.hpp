#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/transport/mesh.hpp"
#include "cuda/driver_calls.hpp"
#include "nccl/rank_services.hpp"

namespace elastic::collectives::nccl {

/// The backends of the ranks of a view, threads that share a device, on the stand-ins for NCCL and
/// for the CUDA driver. Expects that NCCL was used as it wants to be.
class NcclFixture : public ::testing::Test {
 protected:
  NcclFixture();
  ~NcclFixture() override;

  /// A view of so many ranks, with two lanes; on the same devices as that before.
  void make(int size, bool waits, std::uint64_t generation = 7,
            const std::function<void(NcclServices&)>& change = {});
  /// Returns when no operation of the view is under way any more.
  void end_view();
  Backend& backend(int rank) { return *backends_[static_cast<std::size_t>(rank)]; }
  /// The backend of the rank's other lane.
  Backend& other_backend(int rank) { return *other_backends_[static_cast<std::size_t>(rank)]; }

  /// This thread finds so many bytes of device memory from now on.
  void leave_memory(std::size_t bytes) const {
    gpu_.call<void(std::size_t)>("cuda_stand_in_leave")(bytes);
  }

  /// How many copies from device to device there were, on all ranks.
  long copies_on_device() const { return gpu_.call<long()>("cuda_stand_in_copies_on_device")(); }

  template <typename Body>
  void on_all_ranks(const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) threads.emplace_back(body, rank);
    for (std::thread& each : threads) each.join();
  }

  /// Runs `body` on all ranks. In the middle of it, when `when` is true, rank `ending` aborts its
  /// view; once its `body` has returned, its links close.
  template <typename Body>
  void while_one_ends(int ending, const std::function<bool()>& when, const Body& body) {
    std::thread killer([&] {
      until(when);
      backend(ending).abort();
    });
    on_all_ranks([&](int rank) {
      body(rank);
      if (rank != ending) return;
      killer.join();
      backends_[static_cast<std::size_t>(ending)].reset();
    });
  }

  /// Polls for a state of the stand-in or of the communicator's threads, of which no event tells.
  static void until(const std::function<bool()>& done);

  const NcclStandIn* nccl_;
  testing::Gpu gpu_;
  int size_ = 0;
  std::uint64_t position_ = 0;
  std::vector<NcclServices> services_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Backend>> other_backends_;
  std::vector<std::weak_ptr<transport::Mesh>> meshes_;  // the backends', for their threads
};

}  // namespace elastic::collectives::nccl
