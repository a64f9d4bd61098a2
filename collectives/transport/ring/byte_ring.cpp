#include "collectives/transport/ring/byte_ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>

#include "collectives/transport/ring/shared_memory.hpp"

namespace elastic::transport {

namespace {

// The file, for each direction: a page for the control, eager messages, the ring's bytes.
static_assert(sizeof(RingControl) <= kPage);
constexpr std::size_t kHeadBytes = kPage + (sizeof(EagerSlots) + kPage - 1) / kPage * kPage;

std::size_t side_bytes(std::size_t ring_bytes) {
  return kHeadBytes + ring_bytes;
}

}  // namespace

std::size_t RingMemory::file_bytes(std::size_t ring_bytes) {
  return 2 * side_bytes(ring_bytes);
}

RingMemory::RingMemory(UniqueFd file, std::size_t ring_bytes)
    : file_(std::move(file)), ring_bytes_(ring_bytes) {}

RingMemory::~RingMemory() {
  for (const Side& side : sides_) {
    if (side.control != nullptr) ::munmap(side.control, kHeadBytes);
    if (side.data != nullptr) ::munmap(side.data, 2 * ring_bytes_);
  }
}

Result<std::shared_ptr<RingMemory>> RingMemory::create(std::size_t ring_bytes) {
  ring_bytes = std::clamp(ring_bytes, kLeastRingBytes, kMostRingBytes);
  ring_bytes = (ring_bytes + kPage - 1) / kPage * kPage;
  UniqueFd file(::memfd_create("elastic-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return memory_error("cannot make shared memory");
  if (::ftruncate(file.get(), static_cast<off_t>(file_bytes(ring_bytes))) != 0) {
    return memory_error("cannot size shared memory");
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return memory_error("cannot seal shared memory");
  }
  std::shared_ptr<RingMemory> memory(new RingMemory(std::move(file), ring_bytes));
  if (Status status = memory->map(); !status.ok()) return status;
  for (const Side& side : memory->sides_) {
    new (side.control) RingControl();
    for (EagerSlot& slot : side.slots->slots) new (&slot.tag) std::atomic<std::uint64_t>(0);
    new (&side.slots->pinned_operation) std::atomic<std::uint64_t>(0);
  }
  return memory;
}

Result<std::shared_ptr<RingMemory>> RingMemory::open(UniqueFd file) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return memory_error("cannot look at shared memory");
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  const auto bytes = static_cast<std::size_t>(info.st_size);
  const std::size_t ring_bytes = bytes / 2 > kHeadBytes ? bytes / 2 - kHeadBytes : 0;
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ring_bytes < kLeastRingBytes ||
      ring_bytes % kPage != 0 || ring_bytes > kMostRingBytes || file_bytes(ring_bytes) != bytes) {
    return Status(Code::kProtocol, "a peer passed memory that is no ring of elastic");
  }
  std::shared_ptr<RingMemory> memory(new RingMemory(std::move(file), ring_bytes));
  if (Status status = memory->map(); !status.ok()) return status;
  memory->close_file();
  return memory;
}

/// The rings get their pages as bytes come by. To get them at once took most of the time of a view
/// change with 32 workers on a host, and half of the rings carry little.
Status RingMemory::map() {
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  for (int direction = 0; direction < 2; ++direction) {
    const auto start =
        static_cast<off_t>(static_cast<std::size_t>(direction) * side_bytes(ring_bytes_));
    void* control = ::mmap(nullptr, kHeadBytes, kAccess, MAP_SHARED, file_.get(), start);
    if (control == MAP_FAILED) return memory_error("cannot map shared memory");
    (void)populate(control, kHeadBytes);
    sides_[direction].control = static_cast<RingControl*>(control);
    sides_[direction].slots =
        reinterpret_cast<EagerSlots*>(static_cast<std::byte*>(control) + kPage);

    void* reserved =
        ::mmap(nullptr, 2 * ring_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED) return memory_error("cannot reserve memory");
    sides_[direction].data = static_cast<std::byte*>(reserved);
    for (std::size_t copy = 0; copy < 2; ++copy) {
      void* at = sides_[direction].data + copy * ring_bytes_;
      if (::mmap(at, ring_bytes_, kAccess, MAP_SHARED | MAP_FIXED, file_.get(),
                 start + static_cast<off_t>(kHeadBytes)) == MAP_FAILED) {
        return memory_error("cannot map shared memory");
      }
    }
  }
  return {};
}

}  // namespace elastic::transport
