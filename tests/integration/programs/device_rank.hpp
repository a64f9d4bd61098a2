#pragma once

#include <string>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>

#include "cuda/driver_calls.hpp"
#include "integration/programs/check_program.hpp"

namespace elastic::testing {

/// A rank with tensors on a CUDA device, and the parts that its checks share.
class DeviceRank {
 protected:
  DeviceRank(std::string folder, int device)
      : folder_(std::move(folder)),
        rank_(elastic::rank()),
        size_(elastic::size()),
        index_(device),
        gpu_(device) {}

  template <typename T>
  TensorView view_of(const GpuArray<T>& array) const {
    return cuda_view(array.data(), array.count(), index_);
  }
  CudaStream stream() const { return {stream_.handle()}; }
  void check(const Contributors& contributors) const {
    require(static_cast<int>(contributors.size()) == size_, "not all contributed");
  }
  template <typename T>
  static void same(const std::vector<T>& result, const std::vector<T>& right,
                   const std::string& what) {
    require(same_bits(result, right), what + ": not as on the host, " +
                                          std::to_string(right.size()) + " elements of " +
                                          std::to_string(sizeof(T)) + " bytes");
  }

  const std::string folder_;
  const int rank_;
  const int size_;
  const int index_;
  const Gpu gpu_;
  const GpuStream stream_{gpu_};
};

/// The main function of such a program: calls `run` with the number of the device that this rank
/// uses. Ends with 77 if there is none.
template <typename Run>
int on_a_device(const Run& run) {
  const int devices = Gpu::devices();
  if (devices == 0) {
    std::fprintf(stderr, "%s: no CUDA device\n", program_invocation_short_name);
    return 77;
  }
  return as_a_worker([&] { run(elastic::local_rank() % devices); });
}

}  // namespace elastic::testing
