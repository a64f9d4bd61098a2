#include "cuda/stand_in_kernels.hpp"

#include <cstring>
#include <span>
#include <string>

#include "collectives/kernels/device/codec/parameters.hpp"
#include "cuda/host_kernels.hpp"

namespace elastic::cuda_stand_in {

namespace {

using namespace kernels::codec;

/// Replaces addresses of a device by those at which the stand-in finds the same memory.
class Addresses {
 public:
  explicit Addresses(const Inside& inside) : inside_(inside) {}

  template <typename T>
  void operator()(T*& address, std::uint64_t bytes) {
    if (address == nullptr || bytes == 0) return;
    std::byte* const found = inside_(reinterpret_cast<std::uintptr_t>(address), bytes);
    if (found == nullptr) right_ = false;
    address = reinterpret_cast<T*>(found);
  }
  bool right() const { return right_; }

 private:
  const Inside& inside_;
  bool right_ = true;
};

std::uint64_t size_of(bool is_double) {
  return is_double ? sizeof(double) : sizeof(float);
}

void replace(EncodeHalf& p, Addresses& in) {
  in(p.gradient, p.count * size_of(p.is_double));
  in(p.kept, p.count * 4);
  in(p.staged, p.count * 4);
  in(p.halves, p.count * 2);
}
void replace(DecodeHalf& p, Addresses& in) {
  in(p.halves, p.count * 2);
  in(p.tensor, p.count * size_of(p.is_double));
}
void replace(Divide& p, Addresses& in) {
  in(p.tensor, p.count * size_of(p.is_double));
}
void replace(Stage& p, Addresses& in) {
  in(p.gradient, p.count * 4);
  in(p.kept, p.count * 4);
  in(p.kept_momentum, p.count * 4);
  in(p.staged, p.count * 4);
  in(p.staged_momentum, p.count * 4);
}
void replace(EncodeInt8& p, Addresses& in) {
  in(p.values, p.count * 4);
  in(p.bytes, blocks_of(p.count, p.block) * 4 + p.count);
}
void replace(EncodeWhole& p, Addresses& in) {
  in(p.values, p.count * 4);
  in(p.cleared, p.count * 4);
  in(p.momentum, p.count * 4);
  in(p.bytes, p.count * 4);
}
void replace(EncodeTopK& p, Addresses& in) {
  in(p.values, p.count * 4);
  in(p.momentum, p.count * 4);
  in(p.selection, sizeof(TopKSelection));
  in(p.parts, parts_of(p.count) * sizeof(Chosen));
  in(p.bytes, std::uint64_t{p.sent} * 8);
}
void replace(Clear& p, Addresses& in) {
  in(p.sums, p.count * 4);
}
void replace(Rescale& p, Addresses& in) {
  in(p.values, p.count * 4);
}
void replace(AddDense& p, Addresses& in) {
  in(p.sums, p.count * 4);
  for (DenseBlock& one : std::span(p.blocks).first(p.used)) {
    in(one.bytes, one.block > 0 ? blocks_of(p.count, one.block) * 4 + p.count : p.count * 4);
  }
}
void replace(AddTopK& p, Addresses& in) {
  in(p.sums, p.count * 4);
  in(p.bytes, std::uint64_t{p.sent} * 8);
}

template <typename Parameters>
std::function<void()> work_with(Kernel kernel, const void* parameters, const Inside& inside) {
  Parameters copy;
  std::memcpy(&copy, parameters, sizeof(copy));
  Addresses in(inside);
  replace(copy, in);
  if (!in.right()) return {};
  return [kernel, copy] { testing::run_on_host(kernel, &copy); };
}

}  // namespace

void* find_kernel(const char* name) {
  for (const char* const& known : kKernelNames) {
    if (std::strcmp(known, name) == 0) return const_cast<char**>(&known);
  }
  return nullptr;
}

std::function<void()> work_of(const void* kernel, const void* parameters, const Inside& inside) {
  const auto which =
      static_cast<Kernel>(static_cast<const char* const*>(kernel) - kKernelNames.data());
  switch (which) {
    case Kernel::kEncodeHalf:
      return work_with<EncodeHalf>(which, parameters, inside);
    case Kernel::kDecodeHalf:
      return work_with<DecodeHalf>(which, parameters, inside);
    case Kernel::kDivide:
      return work_with<Divide>(which, parameters, inside);
    case Kernel::kStage:
      return work_with<Stage>(which, parameters, inside);
    case Kernel::kEncodeInt8:
      return work_with<EncodeInt8>(which, parameters, inside);
    case Kernel::kEncodeWhole:
      return work_with<EncodeWhole>(which, parameters, inside);
    case Kernel::kBeginTopK:
    case Kernel::kCountDigits:
    case Kernel::kTakeDigit:
    case Kernel::kCountChosen:
    case Kernel::kPlaceParts:
    case Kernel::kWriteChosen:
      return work_with<EncodeTopK>(which, parameters, inside);
    case Kernel::kClear:
      return work_with<Clear>(which, parameters, inside);
    case Kernel::kAddDense:
      return work_with<AddDense>(which, parameters, inside);
    case Kernel::kAddTopK:
      return work_with<AddTopK>(which, parameters, inside);
    case Kernel::kRescale:
      return work_with<Rescale>(which, parameters, inside);
  }
  return {};
}

}  // namespace elastic::cuda_stand_in
