#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "elastic/types.hpp"

namespace elastic::nccl_stand_in {

/// The memory that the ranks of a communicator share. The ranks are threads or processes, and the
/// memory is a file in NCCL_STAND_IN_FOLDER (/dev/shm). A rank that dies is silent, and the others
/// wait for it.
class Fabric {
 public:
  Fabric(const std::string& id, int rank, int size);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Whether all ranks have one.
  bool all_came() const;
  /// Says that this rank aborts its communicator, and waits until all others do, or their processes
  /// have ended. So NCCL waits for the ranks of the same host, whose connections its proxy serves.
  void wait_for_all_to_abort();
  /// Collectives as NCCL has them: what comes to `to` on each rank. False, and nothing is said
  /// about `to`, when `called_off` is true before all have come.
  ///
  /// The ranks' data, reduced in their order.
  bool allreduce(const std::byte* from, std::byte* to, std::size_t count, DType dtype, ReduceOp op,
                 const std::atomic<bool>& called_off);
  /// The data of `root`. That of others is not looked at.
  bool broadcast(const std::byte* from, std::byte* to, std::size_t bytes, int root,
                 const std::atomic<bool>& called_off);
  /// Gathers `bytes` of each rank.
  bool allgather(const std::byte* from, std::byte* to, std::size_t bytes,
                 const std::atomic<bool>& called_off);
  /// Reduces `count` elements for each rank, in the ranks' order, and writes those for this rank to
  /// `to`, which may be their place in `from`.
  bool reduce_scatter(const std::byte* from, std::byte* to, std::size_t count, DType dtype,
                      ReduceOp op, const std::atomic<bool>& called_off);

 private:
  static constexpr int kMostRanks = 40;
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

  struct Rank {
    std::atomic<std::uint64_t> posted;  // pieces
    std::atomic<std::uint64_t> read;    // pieces of all
    std::atomic<int> process;
    std::atomic<bool> aborts;
  };
  struct Head {
    std::atomic<int> came;
    Rank ranks[kMostRanks];
  };

  /// Hands `bytes` from `from` to all; `take` looks at what all have handed.
  template <typename Take>
  bool piece(const std::byte* from, std::size_t bytes, const std::atomic<bool>& called_off,
             const Take& take);
  void reduce(std::byte* to, std::size_t count, DType dtype, ReduceOp op) const;
  template <typename Done>
  bool wait(const Done& done, const std::atomic<bool>& called_off) const;
  std::byte* data(int rank) const;
  std::size_t bytes() const;

  const std::string path_;
  const int rank_;
  const int size_;
  Head* head_ = nullptr;
  std::uint64_t pieces_ = 0;  // of the threads that do the work, one at a time
};

}  // namespace elastic::nccl_stand_in
