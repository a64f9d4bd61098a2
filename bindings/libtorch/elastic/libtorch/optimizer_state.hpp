#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <elastic/error.hpp>
#include <elastic/libtorch/view.hpp>
#include <elastic/types.hpp>
#include <torch/torch.h>

namespace elastic::libtorch {

namespace detail {

class ValueWriter {
 public:
  void number(const std::int64_t& value) { append(&value, sizeof value); }
  void number(const double& value) { append(&value, sizeof value); }
  /// A tensor of the parameter's sizes, or none.
  void tensor(const ::torch::Tensor& tensor, const ::torch::Tensor& /*parameter*/) {
    const std::int64_t elements = tensor.defined() ? tensor.numel() : -1;
    number(elements);
    if (elements < 0) return;
    const ::torch::Tensor dense = tensor.detach().contiguous();
    append(dense.data_ptr(), dense.nbytes());
  }

  std::vector<std::byte> bytes;

 private:
  void append(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
};

class ValueReader {
 public:
  explicit ValueReader(std::span<const std::byte> bytes) : left_(bytes) {}
  void number(std::int64_t& value) { take(&value, sizeof value); }
  void number(double& value) { take(&value, sizeof value); }
  void tensor(::torch::Tensor& tensor, const ::torch::Tensor& parameter) {
    std::int64_t elements = 0;
    number(elements);
    if (elements < 0) {
      tensor = ::torch::Tensor();
      return;
    }
    if (elements != parameter.numel()) refuse_bytes();
    // A new one: what was there stays as it is until everything is read.
    tensor = ::torch::empty_like(parameter.detach(), ::torch::MemoryFormat::Contiguous);
    take(tensor.data_ptr(), tensor.nbytes());
  }
  void expect_end() const {
    if (!left_.empty()) refuse_bytes();
  }
  [[noreturn]] static void refuse_bytes() {
    throw Error(ErrorCode::kInvalidArgument,
                "OptimizerState: the bytes are not of an optimizer of this kind with these "
                "parameters; give all workers the same module and optimizer");
  }

 private:
  void take(void* data, std::size_t size) {
    if (size > left_.size()) refuse_bytes();
    if (size > 0) std::memcpy(data, left_.data(), size);
    left_ = left_.subspan(size);
  }
  std::span<const std::byte> left_;
};

/// The values that each kind of optimizer keeps for a parameter. The copies keep their tensors'
/// handles, so that loading replaces tensors instead of writing into them.
template <typename Codec, typename Kept>
void exchange(Codec& codec, ::torch::optim::SGDParamState& kept, const Kept& parameter) {
  auto momentum = kept.momentum_buffer();
  codec.tensor(momentum, parameter);
  kept.momentum_buffer(momentum);
}

template <typename Codec, typename ParamState>
void exchange_moments(Codec& codec, ParamState& kept, const ::torch::Tensor& parameter) {
  std::int64_t step = kept.step();
  auto first = kept.exp_avg();
  auto second = kept.exp_avg_sq();
  auto largest = kept.max_exp_avg_sq();
  codec.number(step);
  codec.tensor(first, parameter);
  codec.tensor(second, parameter);
  codec.tensor(largest, parameter);
  kept.step(step);
  kept.exp_avg(first);
  kept.exp_avg_sq(second);
  kept.max_exp_avg_sq(largest);
}

template <typename Codec, typename Kept>
void exchange(Codec& codec, ::torch::optim::AdamParamState& kept, const Kept& parameter) {
  exchange_moments(codec, kept, parameter);
}

template <typename Codec, typename Kept>
void exchange(Codec& codec, ::torch::optim::AdamWParamState& kept, const Kept& parameter) {
  exchange_moments(codec, kept, parameter);
}

template <typename Codec, typename Kept>
void exchange(Codec& codec, ::torch::optim::AdagradParamState& kept, const Kept& parameter) {
  std::int64_t step = kept.step();
  auto sum = kept.sum();
  codec.number(step);
  codec.tensor(sum, parameter);
  kept.step(step);
  kept.sum(sum);
}

template <typename Codec, typename Kept>
void exchange(Codec& codec, ::torch::optim::RMSpropParamState& kept, const Kept& parameter) {
  std::int64_t step = kept.step();
  auto square = kept.square_avg();
  auto momentum = kept.momentum_buffer();
  auto gradient = kept.grad_avg();
  codec.number(step);
  codec.tensor(square, parameter);
  codec.tensor(momentum, parameter);
  codec.tensor(gradient, parameter);
  kept.step(step);
  kept.square_avg(square);
  kept.momentum_buffer(momentum);
  kept.grad_avg(gradient);
}

/// The key under which an optimizer keeps what belongs to a parameter: its address, as a text up to
/// PyTorch 1.13.
template <typename Key>
Key key_of(const ::torch::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return text(parameter.unsafeGetTensorImpl());
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

}  // namespace detail

/// An optimizer as an entry of a State: the learning rates of its groups, and what it keeps for
/// each parameter (momentum, moments, numbers of steps). For SGD, Adam, AdamW, Adagrad and RMSprop
/// in host memory. Values that the first step makes need not be there before: loading makes
/// them.
///
///     elastic::libtorch::OptimizerState kept(optimizer);
///     state.add("optimizer", kept);
class OptimizerState {
 public:
  /// Refers to the optimizer, which must outlive it.
  /// \throws Error kInvalidArgument for an optimizer of another kind.
  explicit OptimizerState(::torch::optim::SGD& optimizer)
      : OptimizerState(optimizer, of<::torch::optim::SGDParamState>()) {}
  explicit OptimizerState(::torch::optim::Adam& optimizer)
      : OptimizerState(optimizer, of<::torch::optim::AdamParamState>()) {}
  explicit OptimizerState(::torch::optim::AdamW& optimizer)
      : OptimizerState(optimizer, of<::torch::optim::AdamWParamState>()) {}
  explicit OptimizerState(::torch::optim::Adagrad& optimizer)
      : OptimizerState(optimizer, of<::torch::optim::AdagradParamState>()) {}
  explicit OptimizerState(::torch::optim::RMSprop& optimizer)
      : OptimizerState(optimizer, of<::torch::optim::RMSpropParamState>()) {}

  /// For State. \returns equal bytes for equal states.
  std::vector<std::byte> save() const { return save_(*optimizer_); }
  /// Reverse of `save`.
  /// \throws Error kInvalidArgument, changing nothing, for what is not of such an optimizer.
  void load(std::span<const std::byte> bytes) { load_(*optimizer_, bytes); }

 private:
  using Optimizer = ::torch::optim::Optimizer;
  struct Functions {
    std::vector<std::byte> (*save)(Optimizer&);
    void (*load)(Optimizer&, std::span<const std::byte>);
  };

  OptimizerState(Optimizer& optimizer, Functions functions)
      : optimizer_(&optimizer), save_(functions.save), load_(functions.load) {}

  template <typename ParamState>
  static Functions of() {
    return {&save_all<ParamState>, &load_all<ParamState>};
  }

  template <typename ParamState>
  static std::vector<std::byte> save_all(Optimizer& optimizer) {
    detail::ValueWriter writer;
    auto& states = optimizer.state();
    using Key = typename std::decay_t<decltype(states)>::key_type;
    for (auto& group : optimizer.param_groups()) {
      writer.number(group.options().get_lr());
      for (const ::torch::Tensor& parameter : group.params()) {
        const auto found = states.find(detail::key_of<Key>(parameter));
        writer.number(static_cast<std::int64_t>(found != states.end()));
        if (found == states.end()) continue;
        detail::exchange(writer, static_cast<ParamState&>(*found->second), parameter);
      }
    }
    return std::move(writer.bytes);
  }

  template <typename ParamState>
  static void load_all(Optimizer& optimizer, std::span<const std::byte> bytes) {
    detail::ValueReader reader(bytes);
    std::vector<double> rates;
    std::vector<std::unique_ptr<ParamState>> read;
    for (auto& group : optimizer.param_groups()) {
      reader.number(rates.emplace_back());
      for (const ::torch::Tensor& parameter : group.params()) {
        std::int64_t is_there = 0;
        reader.number(is_there);
        auto& kept = read.emplace_back();
        if (is_there == 0) continue;
        kept = std::make_unique<ParamState>();
        detail::exchange(reader, *kept, parameter);
      }
    }
    reader.expect_end();

    auto& states = optimizer.state();
    using Key = typename std::decay_t<decltype(states)>::key_type;
    auto rate = rates.begin();
    auto kept = read.begin();
    for (auto& group : optimizer.param_groups()) {
      group.options().set_lr(*rate++);
      for (const ::torch::Tensor& parameter : group.params()) {
        const Key key = detail::key_of<Key>(parameter);
        if (*kept) {
          states[key] = std::move(*kept);
        } else {
          states.erase(key);
        }
        ++kept;
      }
    }
  }

  Optimizer* optimizer_;
  std::vector<std::byte> (*save_)(Optimizer&);
  void (*load_)(Optimizer&, std::span<const std::byte>);
};

}  // namespace elastic::libtorch
