#include "compression/host_copies.hpp"

#include <algorithm>

#include "base/public_code.hpp"
#include "collectives/kernels/device/codec/floats.hpp"
#include "compression/device_call.hpp"
#include "elastic/error.hpp"

namespace elastic::codecs {

namespace {

using kernels::codec::quotient;

template <typename T>
std::span<T> elements_of(const TensorView& data) {
  return {static_cast<T*>(data.data), data.count};
}

template <typename T>
void divide(std::span<T> values, float divisor) {
  if (divisor == 1) return;
  for (T& value : values) value = quotient(value, static_cast<T>(divisor));
}

}  // namespace

HostCopies::HostCopies(device::Devices& devices, std::span<const NamedTensor> tensors,
                       CudaStream stream) {
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  for (const NamedTensor& tensor : tensors) {
    inputs.emplace_back(tensor.data);
    outputs.push_back(tensor.data);
  }
  auto staged = devices.stage("GradientCompressor", inputs, outputs, stream);
  if (!staged.ok()) throw Error(public_code(staged.status().code()), staged.status().message());
  staged_ = std::move(staged).value();
  require_device(staged_->read());
  floats_.resize(tensors.size());
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    NamedTensor copy = tensors[at];
    copy.data = staged_->tensors()[at].output;
    if (copy.data.dtype == DType::kF64 && !copy.whole) {
      for (const double value : elements_of<double>(copy.data)) {
        floats_[at].push_back(kernels::codec::as_float(value));
      }
      copy.data = view(std::span(floats_[at]));
    }
    tensors_.push_back(copy);
  }
}

void HostCopies::write_back(float divisor) {
  for (std::size_t at = 0; at < tensors_.size(); ++at) {
    const TensorView& output = staged_->tensors()[at].output;
    if (output.dtype == DType::kF32) {
      divide(elements_of<float>(output), divisor);
      continue;
    }
    const auto doubles = elements_of<double>(output);
    if (!tensors_[at].whole) {
      std::ranges::transform(floats_[at], doubles.begin(), kernels::codec::widened<double>);
    }
    divide(doubles, divisor);
  }
  Status status = staged_->send_back();
  if (status.ok()) status = staged_->wait_until_back();
  require_result(status);
}

}  // namespace elastic::codecs
