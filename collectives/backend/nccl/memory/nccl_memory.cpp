#include "collectives/backend/nccl/memory/nccl_memory.hpp"

#include <string>

#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

bool registers_memory(NcclRegister wanted, int version) {
  constexpr int kNotInterruptedFrom = 22803;
  return wanted == NcclRegister::kAlways ||
         (wanted == NcclRegister::kAuto && version < kNotInterruptedFrom);
}

NcclMemory memory_of(const NcclLibrary& library) {
  const Api& api = library.api();
  if (api.memory_alloc == nullptr || api.memory_free == nullptr || api.comm_register == nullptr) {
    return {};
  }
  return {[alloc = api.memory_alloc,
           text = api.get_error_string](std::size_t bytes) -> Result<std::byte*> {
            void* memory = nullptr;
            const ncclResult_t result = alloc(&memory, bytes);
            if (result == ncclSuccess) return static_cast<std::byte*>(memory);
            return Status(Code::kUnavailable, std::string("ncclMemAlloc: ") + text(result));
          },
          [free = api.memory_free](std::byte* memory) { (void)free(memory); }};
}

}  // namespace elastic::collectives::nccl
