#include "benchmarks/peers/bare/host_memory.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>

#include <sys/mman.h>

#include "benchmarks/peers/bare/agreement.hpp"

namespace elastic::bench {

namespace {

/// A random number behind the memory. It distinguishes the file from one with the same path on
/// another host.
using Token = std::uint64_t;

Status memory_failure(const std::string& what) {
  return Status(Code::kUnavailable, what + ": " + std::strerror(errno));
}

Result<UniqueFd> make_file(std::size_t bytes, Token token) {
  UniqueFd file(::memfd_create("elastic-bare", MFD_CLOEXEC));
  if (!file) return memory_failure("cannot make shared memory");
  if (::pwrite(file.get(), &token, sizeof token, static_cast<off_t>(bytes)) != sizeof token) {
    return memory_failure("cannot size shared memory to " + std::to_string(bytes) + " bytes");
  }
  return file;
}

/// Opens rank 0's file and checks its token. `name` is a path and a token.
Result<UniqueFd> open_file(const std::string& name, std::size_t bytes) {
  std::istringstream words(name);
  std::string path;
  Token token = 0;
  words >> path >> token;
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  Token found = 0;
  const bool same = file &&
                    ::pread(file.get(), &found, sizeof found, static_cast<off_t>(bytes)) ==
                        static_cast<ssize_t>(sizeof found) &&
                    found == token;
  if (same) return file;
  return Status(Code::kUnavailable,
                "cannot open rank 0's memory, " + path +
                    ": all ranks have to be processes of one host and one user, in the same "
                    "container; between hosts there is bare:tcp");
}

}  // namespace

Result<HostMemory> HostMemory::open(const PeerStart& start, std::size_t bytes) {
  // Rank 0 keeps the file open until all ranks have opened it.
  Result<UniqueFd> made = UniqueFd();
  std::string name;
  if (start.rank == 0) {
    std::random_device random;
    const Token token = Token{random()} << 32 | random();
    made = make_file(bytes, token);
    if (made.ok()) {
      name = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(made.value().get()) +
             " " + std::to_string(token);
    }
  }
  if (Status status = agree(start, made.status()); !status.ok()) return status;
  const auto file = open_file(start.exchange(name).front(), bytes);
  auto memory = file.ok() ? map(file.value(), bytes) : Result<HostMemory>(file.status());
  if (Status status = agree(start, memory.status()); !status.ok()) return status;
  return memory;
}

Result<HostMemory> HostMemory::map(const UniqueFd& file, std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return memory_failure("cannot map shared memory");
  return HostMemory(static_cast<std::byte*>(data), bytes);
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

HostMemory::~HostMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace elastic::bench
