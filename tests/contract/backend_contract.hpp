#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/backend/backend.hpp"

namespace elastic::collectives {

/// The backends of one view, one per rank; of a view over several processes, null for the ranks of
/// others, and then with means by which the processes see each other's findings.
struct World {
  std::vector<std::unique_ptr<Backend>> backends;
  /// For each rank a number of its host; empty: there is one host.
  std::vector<int> hosts = {};
  /// Fills in, on every rank, what the ranks of other processes have put at their places.
  std::function<void(std::vector<std::string>& by_rank)> exchange = [](auto&) {};
  /// Memory for a tensor of `rank`.
  std::function<std::shared_ptr<std::byte>(int rank, std::size_t bytes)> allocate =
      [](int, std::size_t bytes) {
        return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
      };
  /// `count` counters at 0 that all ranks share.
  std::function<std::shared_ptr<std::atomic<int>[]>(std::size_t count)> counters =
      [](std::size_t count) {
        return std::shared_ptr<std::atomic<int>[]>(new std::atomic<int>[count]);
      };
};

/// A way to make backends. Destroying one of them is to the others as if its process had died.
struct Subject {
  std::string name;
  std::function<World(int size)> make;
};
inline void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.name;
}

/// The contract of all backends. A test program links backend_contract.cpp and instantiates the
/// suite with (subject, size of the view).
class BackendContract : public ::testing::TestWithParam<std::tuple<Subject, int>> {
 protected:
  void SetUp() override { world_ = std::get<Subject>(GetParam()).make(size()); }
  int size() const { return std::get<int>(GetParam()); }
  Backend& backend(int rank) { return *world_.backends[static_cast<std::size_t>(rank)]; }
  bool here(int rank) const { return world_.backends[static_cast<std::size_t>(rank)] != nullptr; }
  /// Runs `body(rank)` on a thread for each rank of this process; returns when all have.
  void on_all_ranks(const std::function<void(int rank)>& body) const;
  void abort_all();
  /// By `Backend::run`, or in every second operation, and another one on each rank, by `run_small`
  /// if the backend takes the call: both are the same call.
  Status perform(int rank, std::uint64_t position, const Call& call, Payload& payload);

  World world_;
};

/// The contract of backends that take zero-copy tensors (Backend::allreduce_limits).
class BackendZeroCopyContract : public BackendContract {};

/// The contract of backends that perform the Adasums, themselves or by another backend.
class AdasumContract : public BackendContract {
 protected:
  /// For each rank a number of its host.
  std::vector<int> hosts() const {
    return world_.hosts.empty() ? std::vector<int>(static_cast<std::size_t>(size())) : world_.hosts;
  }

  /// The result for the vectors of all ranks.
  using Model = std::function<std::vector<double>(const std::vector<std::vector<double>>&)>;
  /// Compares `op` of each type and of several sizes with the model.
  void expect_model(ReduceOp op, const Model& model);
  /// The same of several tensors in one call.
  void expect_model_of_a_group(ReduceOp op, const Model& model);
};

std::string name_of(const ::testing::TestParamInfo<std::tuple<Subject, int>>& info);

}  // namespace elastic::collectives
