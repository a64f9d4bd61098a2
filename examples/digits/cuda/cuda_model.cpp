#include "examples/digits/cuda/cuda_model.hpp"

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/digits/cuda/device_array.hpp"
#include "examples/digits/cuda/kernels.hpp"

namespace digits {
namespace {

using cuda::check;
using cuda::DeviceArray;
using cuda::DeviceStream;

template <typename T>
cuda::ParameterPointers<T> parameters_at(T* first) {
  T* const hidden_biases = first + kHidden * kPixels;
  T* const output_weights = hidden_biases + kHidden;
  return {first, hidden_biases, output_weights, output_weights + kOutputs * kHidden};
}

/// Sums over samples: one block, so that they are copied and cleared at once.
class SumsOnDevice {
 public:
  SumsOnDevice(const DeviceStream& stream, std::size_t samples);

  cuda::Sums get() const;
  const std::vector<elastic::TensorView>& tensors() const { return tensors_; }
  void clear() { array_.clear(); }
  void move_to(StepSums& sums);

 private:
  // Which of the tensors; the samples that were used follow.
  static constexpr std::size_t kLoss = Parameters::kTensors;

  DeviceArray<float> array_;
  std::vector<elastic::TensorView> tensors_;
  std::vector<float> on_host_;
};

SumsOnDevice::SumsOnDevice(const DeviceStream& stream, std::size_t samples)
    : array_(stream, Parameters().values().size() + 1 + samples), on_host_(array_.count()) {
  float* next = array_.data();
  for (const elastic::TensorView& like : StepSums(samples).tensors()) {
    tensors_.push_back(elastic::cuda_view(next, like.count, stream.device()));
    next += like.count;
  }
}

cuda::Sums SumsOnDevice::get() const {
  float* const loss = static_cast<float*>(tensors_[kLoss].data);
  float* const used = static_cast<float*>(tensors_[kLoss + 1].data);
  return {parameters_at(array_.data()), loss, used};
}

void SumsOnDevice::move_to(StepSums& sums) {
  array_.read(on_host_);
  array_.clear();
  const float* next = on_host_.data();
  for (const elastic::TensorView& one : sums.tensors()) {
    auto* const to = static_cast<float*>(one.data);
    for (std::size_t at = 0; at < one.count; ++at) to[at] += *next++;
  }
}

class CudaModel final : public Model {
 public:
  CudaModel(const ModelOptions& options, std::span<const Sample> training, int device)
      : momentum_(options.momentum),
        stream_(device),
        training_(stream_, training),
        batch_(stream_, training.size()),
        weights_(stream_, initial_parameters(options.seed).values()),
        velocity_(stream_, weights_.count()),
        gradient_(stream_, weights_.count()),
        sums_(stream_, training.size()),
        hidden_(stream_, training.size() * kHidden),
        hidden_gradient_(stream_, hidden_.count()),
        output_gradient_(stream_, training.size() * kOutputs),
        loss_(stream_, training.size()) {}

  void add_gradients(std::span<const std::size_t> samples, StepSums& sums) override;
  std::optional<DeviceSums> device_sums() override {
    return DeviceSums{sums_.tensors(), {stream_.get()}};
  }
  void collect(StepSums& sums) override { sums_.move_to(sums); }
  void begin_step() override { sums_.clear(); }
  void update(const Parameters& gradient_sum, double batch, const elastic::Rate& rate) override;
  Parameters weights() const override;
  void add_to(elastic::State& state) override;

 private:
  double momentum_;
  DeviceStream stream_;
  DeviceArray<Sample> training_;
  DeviceArray<std::uint32_t> batch_;
  DeviceArray<float> weights_;
  DeviceArray<float> velocity_;
  DeviceArray<float> gradient_;
  SumsOnDevice sums_;

  // For each sample of a batch.
  DeviceArray<float> hidden_;
  DeviceArray<float> hidden_gradient_;
  DeviceArray<float> output_gradient_;
  DeviceArray<float> loss_;
};

void CudaModel::add_gradients(std::span<const std::size_t> samples, StepSums&) {
  const std::vector<std::uint32_t> indices(samples.begin(), samples.end());
  batch_.write(indices);
  const cuda::Batch batch{training_.data(), batch_.data(), static_cast<unsigned>(indices.size())};
  const cuda::Activations made{hidden_.data(), hidden_gradient_.data(), output_gradient_.data(),
                               loss_.data()};
  const auto weights = parameters_at(static_cast<const float*>(weights_.data()));
  check(cuda::launch_layers(weights, batch, made, stream_.get()), "the kernel of the layers");
  check(cuda::launch_sums(batch, made, sums_.get(), stream_.get()), "the kernels of the sums");
}

void CudaModel::update(const Parameters& gradient_sum, double batch, const elastic::Rate& rate) {
  gradient_.write(gradient_sum.values());
  const cuda::UpdateFactors factors{static_cast<float>(1 / batch),
                                    static_cast<float>(momentum_ * rate.momentum_scale),
                                    static_cast<float>(rate.value())};
  check(cuda::launch_update(weights_.data(), velocity_.data(), gradient_.data(),
                            static_cast<unsigned>(weights_.count()), factors, stream_.get()),
        "the kernel of the update");
}

Parameters CudaModel::weights() const {
  Parameters weights;
  weights_.read(weights.values());
  return weights;
}

void CudaModel::add_to(elastic::State& state) {
  state.add("weights on a device", weights_);
  state.add("optimizer on a device", velocity_);
  state.add("momentum", momentum_);
}

}  // namespace

int cuda_devices() {
  int driver = 0;
  int devices = 0;
  const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return devices;
  throw std::runtime_error(
      "no CUDA device can be used here: " +
      (has_driver ? std::string(error == cudaSuccess ? "there is none" : cudaGetErrorString(error))
                  : "there is no CUDA driver (libcuda.so.1)"));
}

std::unique_ptr<Model> make_cuda_model(const ModelOptions& options,
                                       std::span<const Sample> training, int device) {
  return std::make_unique<CudaModel>(options, training, device);
}

}  // namespace digits
