#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <sys/mman.h>

#include "base/status.hpp"

// The system calls for memory that workers of a host share.
namespace elastic::transport {

inline constexpr std::size_t kPage = 4096;

/// The error of the system, in errno.
inline Status memory_error(const std::string& what) {
  return Status(Code::kUnavailable, what + ": " + std::strerror(errno));
}

/// Gives memory its pages for writing now, at once, instead of one by one when it is touched.
/// False, with errno, where they cannot be had; EINVAL on kernels before 5.14.
inline bool populate(void* memory, std::size_t bytes) {
  constexpr int kPopulateForWriting = 23;  // MADV_POPULATE_WRITE, which older headers lack
  return ::madvise(memory, bytes, kPopulateForWriting) == 0;
}

}  // namespace elastic::transport
