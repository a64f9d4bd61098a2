#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/libtorch/view.hpp>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace elastic::libtorch {

/// Averages a module's gradients over the workers while the backward pass computes them.
///
///     elastic::libtorch::AveragedGradients gradients(*model);
///     ...
///     optimizer.zero_grad();
///     loss.backward();                  // each gradient travels as soon as it is complete
///     sampler.commit(gradients.wait()); // the averages are in the gradients
///     optimizer.step();
///
/// Each parameter has a hook that submits an asynchronous allreduce under the parameter's name. If
/// a worker dies meanwhile, each gradient is the average over the workers that contributed to it.
///
/// For modules in host memory. The set of parameters must not change any more.
///
/// Thread safety: none; belongs to the thread that trains.
class AveragedGradients {
 public:
  /// Adds hooks to the parameters that require a gradient.
  /// \param op kAverage or kSum.
  /// \throws Error kInvalidArgument: another `op`, a module without such parameters, or one that is
  ///   not in host memory.
  explicit AveragedGradients(const ::torch::nn::Module& module, ReduceOp op = ReduceOp::kAverage)
      : op_(op) {
    if (op != ReduceOp::kAverage && op != ReduceOp::kSum) {
      throw Error(ErrorCode::kInvalidArgument, "AveragedGradients: op is kAverage or kSum");
    }
    for (const auto& item : module.named_parameters()) {
      if (item.value().requires_grad()) add(item.key(), item.value());
    }
    if (gradients_.empty()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "AveragedGradients: the module has no parameter that requires a gradient");
    }
  }

  ~AveragedGradients() {
    for (auto& gradient : gradients_) {
      gradient->averages = nullptr;
      gradient->forget();
      gradient->accumulator = nullptr;  // its hook refers to this gradient
    }
  }
  AveragedGradients(const AveragedGradients&) = delete;
  AveragedGradients& operator=(const AveragedGradients&) = delete;

  /// Waits until all gradients are averaged. Zeros stand for gradients that this worker's backward
  /// pass did not compute, or if there was none: a worker without samples takes part, too.
  /// \returns the contributors of each gradient, for Sampler::commit; valid until the next call.
  /// \throws Error as Work::wait. The next backward pass begins a new step then.
  std::span<const Contributors> wait() {
    contributors_.clear();
    try {
      for (auto& gradient : gradients_) {
        if (!gradient->travels) submit(*gradient);
      }
      for (auto& gradient : gradients_) contributors_.push_back(gradient->work.wait());
    } catch (...) {
      begin_step();
      throw;
    }
    begin_step();
    return contributors_;
  }

 private:
  using Variables = ::torch::autograd::variable_list;

  struct Gradient {
    std::string name;
    ::torch::Tensor parameter;
    std::shared_ptr<::torch::autograd::Node> accumulator;  // lives as long as it is kept
    AveragedGradients* averages = nullptr;  // null: it is gone, and a graph still has the hook
    bool travels = false;
    ::torch::Tensor travelling;
    Work work;

    /// Memory of an operation that is not complete must outlive it, and after an error there
    /// is no wait: then the tensor is kept to the end of the process.
    void forget() {
      if (travels && !work.ready()) {
        static auto* const kept = new std::vector<::torch::Tensor>;
        kept->push_back(travelling);
      }
      travels = false;
      travelling = ::torch::Tensor();
      work = {};
    }
  };

  /// Called after the node that adds up a parameter's gradient.
  class Hook : public ::torch::autograd::FunctionPostHook {
   public:
    explicit Hook(std::shared_ptr<Gradient> gradient) : gradient_(std::move(gradient)) {}
    Variables operator()(const Variables& outputs, const Variables& /*inputs*/) override {
      if (gradient_->averages != nullptr) gradient_->averages->arrived(*gradient_);
      return outputs;
    }

   private:
    std::shared_ptr<Gradient> gradient_;
  };

  void add(const std::string& name, const ::torch::Tensor& parameter) {
    if (!parameter.device().is_cpu()) {
      detail::refuse("AveragedGradients: parameter " + name,
                     "lies on device " + detail::text(parameter.device()) +
                         ", and this is for modules in host memory; average gradients of a device "
                         "by elastic::grouped_allreduce with your stream");
    }
    auto gradient = std::make_shared<Gradient>();
    gradient->name = name;
    gradient->parameter = parameter;
    gradient->averages = this;
    gradient->accumulator = ::torch::autograd::impl::grad_accumulator(parameter);
    gradient->accumulator->add_post_hook(std::make_unique<Hook>(gradient));
    gradients_.push_back(std::move(gradient));
  }

  void arrived(Gradient& gradient) {
    try {
      if (gradient.travels) {
        throw Error(ErrorCode::kInvalidArgument,
                    "the gradient of " + gradient.name +
                        " was computed again before it was averaged: call "
                        "AveragedGradients::wait() after each backward()");
      }
      submit(gradient);
    } catch (...) {
      begin_step();
      throw;
    }
  }

  void submit(Gradient& gradient) {
    ::torch::Tensor& stored = gradient.parameter.mutable_grad();
    if (!stored.defined()) stored = ::torch::zeros_like(gradient.parameter);
    if (stored.layout() == ::torch::kStrided && !stored.is_contiguous()) {
      stored = stored.contiguous();
    }
    gradient.travelling = stored.detach();
    gradient.work = allreduce_async(
        gradient.name, view(gradient.travelling, "the gradient of " + gradient.name), op_);
    gradient.travels = true;
  }

  void begin_step() {
    for (auto& gradient : gradients_) gradient->forget();
  }

  ReduceOp op_;
  std::vector<std::shared_ptr<Gradient>> gradients_;
  std::vector<Contributors> contributors_;
};

}  // namespace elastic::libtorch
