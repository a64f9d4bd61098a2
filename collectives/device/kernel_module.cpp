#include "collectives/device/kernel_module.hpp"

#include <string>
#include <utility>

namespace elastic::device {

Result<std::unique_ptr<KernelModule>> KernelModule::load(std::shared_ptr<CudaDevice> device,
                                                         std::span<const std::byte> image,
                                                         std::span<const char* const> names) {
  if (image.empty()) {
    return Status(Code::kUnavailable, "this build of elastic has no kernels for CUDA devices");
  }
  const CurrentContext here = device->enter();
  const CudaApi& api = device->cuda().api();
  void* module = nullptr;
  Status status = device->outcome("cuModuleLoadData", api.module_load_data(&module, image.data()));
  if (!status.ok()) return status;
  std::unique_ptr<KernelModule> loaded(new KernelModule(std::move(device), module));
  for (const char* const name : names) {
    void* function = nullptr;
    status = loaded->device_->outcome("cuModuleGetFunction",
                                      api.module_get_function(&function, module, name));
    if (!status.ok()) return status.within(name);
    loaded->functions_.push_back(function);
  }
  return loaded;
}

KernelModule::~KernelModule() {
  const CurrentContext here = device_->enter();
  device_->cuda().api().module_unload(module_);
}

Status KernelModule::launch(std::size_t kernel, unsigned blocks, unsigned threads,
                            const void* parameter, void* stream) const {
  void* parameters[] = {const_cast<void*>(parameter)};
  return device_->outcome("cuLaunchKernel", device_->cuda().api().launch_kernel(
                                                functions_[kernel], blocks, 1, 1, threads, 1, 1, 0,
                                                stream, parameters, nullptr));
}

}  // namespace elastic::device
