#pragma once

#include <string>

namespace elastic {

/// The CUDA driver that this process finds at run time. The library is not linked with it.
struct CudaDriver {
  std::string missing;      ///< why there is none that can be used; empty where there is one
  std::string version;      ///< the CUDA that the driver is for: "13.0"
  int devices = 0;          ///< that this process may use
  void* library = nullptr;  ///< as dlsym(3) takes it; null where there is none that can be used
  bool usable() const { return missing.empty(); }

  /// From `file`; where that is empty, libcuda.so.1 as the dynamic linker finds it. It stays
  /// loaded.
  static CudaDriver find(const std::string& file = "");

  /// The library, if the program uses CUDA already: loads nothing, and starts nothing.
  static void* loaded_already();
};

}  // namespace elastic
