#include "nccl/stand_in_fabric.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include <sys/mman.h>

#include "collectives/kernels/reduce.hpp"

namespace elastic::nccl_stand_in {

namespace {

std::string path_of(const std::string& id) {
  const char* const folder = std::getenv("NCCL_STAND_IN_FOLDER");
  return std::string(folder == nullptr ? "/dev/shm" : folder) + "/nccl-stand-in-" + id;
}

}  // namespace

Fabric::Fabric(const std::string& id, int rank, int size)
    : path_(path_of(id)), rank_(rank), size_(size) {
  if (size > kMostRanks) throw std::runtime_error("too many ranks for the stand-in");
  const int file = ::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes())) == 0) {
    memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory between ranks: " + path_);
  head_ = static_cast<Head*>(memory);
  head_->ranks[rank_].process = ::getpid();
  // All ranks have opened the file, so no rank needs its name any more.
  if (head_->came.fetch_add(1) + 1 == size_) ::unlink(path_.c_str());
}

Fabric::~Fabric() {
  ::unlink(path_.c_str());
  ::munmap(head_, bytes());
}

std::size_t Fabric::bytes() const {
  return 4096 + kPieceBytes * static_cast<std::size_t>(size_);
}
std::byte* Fabric::data(int rank) const {
  return reinterpret_cast<std::byte*>(head_) + 4096 + kPieceBytes * static_cast<std::size_t>(rank);
}

bool Fabric::all_came() const {
  return head_->came.load() == size_;
}

void Fabric::wait_for_all_to_abort() {
  head_->ranks[rank_].aborts = true;
  const auto waits_for = [](const Rank& rank) {
    const int process = rank.process;  // 0: has not come
    return process != 0 && !rank.aborts && (::kill(process, 0) == 0 || errno != ESRCH);
  };
  while (std::any_of(head_->ranks, head_->ranks + size_, waits_for)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// The others may be other processes, or dead: there is no event.
template <typename Done>
bool Fabric::wait(const Done& done, const std::atomic<bool>& called_off) const {
  const auto all = [&] { return std::all_of(head_->ranks, head_->ranks + size_, done); };
  while (!all()) {
    if (called_off) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

template <typename Take>
bool Fabric::piece(const std::byte* from, std::size_t bytes, const std::atomic<bool>& called_off,
                   const Take& take) {
  const std::uint64_t before = pieces_++;
  const auto have_read = [&](const Rank& rank) { return rank.read.load() >= before; };
  const auto have_posted = [&](const Rank& rank) { return rank.posted.load() > before; };
  if (!wait(have_read, called_off)) return false;
  if (bytes > 0) std::memcpy(data(rank_), from, bytes);
  head_->ranks[rank_].posted.store(before + 1);
  if (!wait(have_posted, called_off)) return false;
  take();
  head_->ranks[rank_].read.store(before + 1);
  return true;
}

void Fabric::reduce(std::byte* to, std::size_t count, DType dtype, ReduceOp op) const {
  std::memcpy(to, data(0), count * size_of(dtype));
  const auto reduce = kernels::reduce(dtype, op);
  for (int rank = 1; rank < size_; ++rank) reduce(to, to, data(rank), count);
}

namespace {

/// `piece(offset, bytes)` for each piece of `total` bytes, until one fails.
template <typename Piece>
bool in_pieces(std::size_t total, std::size_t most, const Piece& piece) {
  for (std::size_t at = 0; at < total; at += most) {
    if (!piece(at, std::min(most, total - at))) return false;
  }
  return true;
}

}  // namespace

bool Fabric::allreduce(const std::byte* from, std::byte* to, std::size_t count, DType dtype,
                       ReduceOp op, const std::atomic<bool>& called_off) {
  const std::size_t element = size_of(dtype);
  return in_pieces(count * element, kPieceBytes, [&](std::size_t at, std::size_t bytes) {
    return piece(from + at, bytes, called_off,
                 [&] { reduce(to + at, bytes / element, dtype, op); });
  });
}

bool Fabric::broadcast(const std::byte* from, std::byte* to, std::size_t bytes, int root,
                       const std::atomic<bool>& called_off) {
  return in_pieces(bytes, kPieceBytes, [&](std::size_t at, std::size_t part) {
    return piece(from + at, rank_ == root ? part : 0, called_off,
                 [&] { std::memcpy(to + at, data(root), part); });
  });
}

bool Fabric::allgather(const std::byte* from, std::byte* to, std::size_t bytes,
                       const std::atomic<bool>& called_off) {
  return in_pieces(bytes, kPieceBytes, [&](std::size_t at, std::size_t part) {
    return piece(from + at, part, called_off, [&] {
      for (int rank = 0; rank < size_; ++rank) {
        std::memcpy(to + bytes * static_cast<std::size_t>(rank) + at, data(rank), part);
      }
    });
  });
}

bool Fabric::reduce_scatter(const std::byte* from, std::byte* to, std::size_t count, DType dtype,
                            ReduceOp op, const std::atomic<bool>& called_off) {
  const std::size_t element = size_of(dtype);
  const std::size_t bytes = count * element;
  for (int owner = 0; owner < size_; ++owner) {
    const std::byte* const part = from + bytes * static_cast<std::size_t>(owner);
    const bool done = in_pieces(bytes, kPieceBytes, [&](std::size_t at, std::size_t some) {
      return piece(part + at, some, called_off, [&] {
        if (rank_ == owner) reduce(to + at, some / element, dtype, op);
      });
    });
    if (!done) return false;
  }
  return true;
}

}  // namespace elastic::nccl_stand_in
