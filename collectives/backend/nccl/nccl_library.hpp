#pragma once

#include <memory>
#include <string>

#include "base/status.hpp"

namespace elastic::collectives::nccl {

struct Api;

/// NCCL's version code as text, such as "2.28.9".
std::string version_text(int code);

/// The oldest supported version, 2.18: earlier ones lack some of the calls that do not block.
inline constexpr int kOldestVersion = 21800;

/// A libnccl. It stays loaded until the process ends, because threads may hang in it. If the
/// program has loaded a library of this name before (that of a framework, vote), that one is used.
class NcclLibrary {
 public:
  /// Loads `file`, or if that is empty, libnccl.so.2 from the dynamic linker's path. kUnavailable
  /// says which library was found, which one is needed, and what to do.
  static Result<std::shared_ptr<const NcclLibrary>> load(const std::string& file);

  NcclLibrary(std::unique_ptr<const Api> api, int version, std::string file);
  ~NcclLibrary();

  const Api& api() const { return *api_; }
  int version() const { return version_; }
  const std::string& file() const { return file_; }  ///< the loaded file
  /// Such as "NCCL 2.28.9 in /usr/lib/libnccl.so.2 (with shrink, revoke)".
  std::string describe() const;

 private:
  const std::unique_ptr<const Api> api_;
  const int version_;
  const std::string file_;
};

}  // namespace elastic::collectives::nccl
