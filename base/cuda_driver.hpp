#pragma once

#include <string>

namespace elastic {

/// The CUDA driver that this process finds at run time. The library is not linked with it.
struct CudaDriver {
  std::string missing;      ///< why no driver can be used; empty if one can
  std::string version;      ///< the version of CUDA that the driver supports: "13.0"
  int devices = 0;          ///< number of devices that this process may use
  void* library = nullptr;  ///< handle for dlsym(3); null if no driver can be used
  bool usable() const { return missing.empty(); }

  /// Loads the driver from `file`, or if that is empty libcuda.so.1 as the dynamic linker finds it.
  /// It stays loaded.
  static CudaDriver find(const std::string& file = "");

  /// The driver's handle if the program has loaded it already, otherwise null. Loads nothing.
  static void* loaded_already();
};

}  // namespace elastic
