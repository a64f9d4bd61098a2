#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "elastic/types.hpp"

namespace elastic::nccl_stand_in {

/// What the ranks of a communicator have between them: memory that they share, whether they are
/// threads or processes, by way of a file in NCCL_STAND_IN_FOLDER (/dev/shm). A rank that dies is
/// silent, and the others wait for it.
class Fabric {
 public:
  Fabric(const std::string& id, int rank, int size);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Whether all ranks have one.
  bool all_came() const;
  /// The ranks' data, reduced in their order, comes to `to`. False, and nothing is said about `to`,
  /// when `called_off` is true before all have come.
  bool allreduce(const std::byte* from, std::byte* to, std::size_t count, DType dtype, ReduceOp op,
                 const std::atomic<bool>& called_off);

 private:
  static constexpr int kMostRanks = 16;
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

  struct Rank {
    std::atomic<std::uint64_t> posted;  // pieces
    std::atomic<std::uint64_t> read;    // pieces of all
  };
  struct Head {
    std::atomic<int> came;
    Rank ranks[kMostRanks];
  };

  bool piece(const std::byte* from, std::byte* to, std::size_t count, DType dtype, ReduceOp op,
             const std::atomic<bool>& called_off);
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
