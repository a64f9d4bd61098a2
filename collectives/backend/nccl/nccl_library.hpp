#pragma once

#include <memory>
#include <string>

#include "base/status.hpp"

namespace elastic::collectives::nccl {

struct Api;

/// "2.28.9", of NCCL's version code.
std::string version_text(int code);

/// The oldest that we take: before, calls that do not block were not all there.
inline constexpr int kOldestVersion = 21800;

/// A libnccl, loaded until the process ends: threads may be left behind in it. What a program has
/// loaded before under the same name (that of a framework, say) is what is found.
class NcclLibrary {
 public:
  /// From `file`; where that is empty, libnccl.so.2 as the dynamic linker finds it. kUnavailable
  /// says what was found, what is needed, and what to do.
  static Result<std::shared_ptr<const NcclLibrary>> load(const std::string& file);

  NcclLibrary(std::unique_ptr<const Api> api, int version, std::string file);
  ~NcclLibrary();

  const Api& api() const { return *api_; }
  int version() const { return version_; }
  const std::string& file() const { return file_; }  ///< where it was found
  /// "NCCL 2.28.9 in /usr/lib/libnccl.so.2 (with shrink, revoke)".
  std::string describe() const;

 private:
  const std::unique_ptr<const Api> api_;
  const int version_;
  const std::string file_;
};

}  // namespace elastic::collectives::nccl
