#pragma once

#include <filesystem>
#include <string>

#include <sys/resource.h>
#include <sys/types.h>

namespace elastic::testing {

/// While it lives, a process can open no further descriptors.
class NoMoreDescriptors {
 public:
  explicit NoMoreDescriptors(pid_t pid) : pid_(pid) {
    ::prlimit(pid_, RLIMIT_NOFILE, nullptr, &before_);
    // The kernel gives out the lowest number that is free, if it is below the limit.
    rlimit now = before_;
    now.rlim_cur = 0;
    const std::filesystem::path folder("/proc/" + std::to_string(pid_) + "/fd");
    std::error_code error;
    while (std::filesystem::exists(
        std::filesystem::symlink_status(folder / std::to_string(now.rlim_cur), error))) {
      ++now.rlim_cur;
    }
    ::prlimit(pid_, RLIMIT_NOFILE, &now, nullptr);
  }
  ~NoMoreDescriptors() { ::prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  pid_t pid_;
  rlimit before_{};
};

}  // namespace elastic::testing
