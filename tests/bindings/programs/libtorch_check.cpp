// Checks what elastic has for libtorch, as a worker of a job: views, averaged gradients,
// optimizers.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/libtorch.hpp>
#include <torch/torch.h>

#include "integration/programs/check_program.hpp"

namespace elastic::testing {
namespace {

using libtorch::AveragedGradients;
using libtorch::OptimizerState;
constexpr auto kInvalid = ErrorCode::kInvalidArgument;

void check_views() {
  const std::array kinds = {torch::kFloat16, torch::kBFloat16, torch::kFloat32,
                            torch::kFloat64, torch::kInt8,     torch::kUInt8,
                            torch::kInt16,   torch::kInt32,    torch::kInt64};
  const int sum = size() * (size() + 1) / 2;
  for (const auto kind : kinds) {
    const auto tensor = torch::full({2, 3}, rank() + 1, kind);
    allreduce(libtorch::view(tensor));
    require(tensor.eq(sum).all().item<bool>(), "a sum of " + libtorch::detail::text(kind));
  }
  const auto flag = torch::full({1}, rank() == 0, torch::kBool);
  allreduce(libtorch::view(flag), ReduceOp::kMax);
  require(flag.item<bool>(), "an 'or' of bools");

  const auto wanted = torch::ones({3}, torch::requires_grad());
  const auto refused = [](const torch::Tensor& tensor, const std::string& remedy) {
    must_fail(kInvalid, {"weights", remedy}, [&] { libtorch::view(tensor, "weights"); });
  };
  refused(torch::Tensor(), "undefined");
  refused(torch::ones({4, 5}).t(), "tensor.contiguous()");
  refused(torch::ones({3}).to_sparse(), "tensor.to_dense()");
  refused(torch::ones({3}, torch::kComplexFloat), "tensor.to(torch::kFloat32)");
  refused(torch::ones({3}, torch::kMeta), "device meta");
  refused(wanted, "tensor.detach()");
  const torch::NoGradGuard no_gradients;
  require(libtorch::view(wanted).count == 3, "a view under NoGradGuard");
}

torch::nn::Sequential network() {
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(8, 4), torch::nn::Tanh(), torch::nn::Linear(4, 2));
}

/// One step has the gradient of the whole batch, and zeros stand for what was not computed.
void check_averages() {
  torch::manual_seed(1);
  const auto inputs = torch::randn({4 * size(), 8});
  const auto own = inputs.slice(0, 4 * rank(), 4 * rank() + 4);
  auto model = network();
  auto whole = network();
  whole->forward(inputs).square().mean().backward();
  {
    AveragedGradients gradients(*model);
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      model->forward(own).square().mean().backward();
      for (const Contributors& contributors : gradients.wait()) {
        require(contributors.size() == static_cast<std::size_t>(size()), "contributors");
      }
      for (std::size_t at = 0; at < model->parameters().size(); ++at) {
        const auto difference = model->parameters()[at].grad() - whole->parameters()[at].grad();
        require(difference.abs().max().item<float>() < 1e-6F, "an average gradient");
      }
    }
    // Only rank 0 has samples.
    model->zero_grad();
    if (rank() == 0) model->forward(own).sum().backward();
    const auto first = model->parameters().back();
    gradients.wait();
    const float expected = 4.0F / static_cast<float>(size());
    require((first.grad() - expected).abs().max().item<float>() < 1e-6F, "a share without samples");

    model->zero_grad();
    model->forward(own).sum().backward();
    must_fail(kInvalid, {"computed again", "AveragedGradients::wait()"},
              [&] { model->forward(own).sum().backward(); });
  }
  model->zero_grad();
  model->forward(own).sum().backward();  // no wait(): the hooks are gone
  must_fail(kInvalid, {"kAverage or kSum"}, [&] { AveragedGradients(*model, ReduceOp::kMax); });
  must_fail(kInvalid, {"no parameter"}, [&] { AveragedGradients(*torch::nn::ReLU()); });
}

void step(torch::nn::Sequential& model, torch::optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  model->forward(torch::ones({3, 8})).square().sum().backward();
  optimizer.step();
}

/// A state that is saved after some steps and loaded elsewhere goes on with the same bits.
template <typename Optimizer, typename Options>
void check_optimizer(const std::string& name, const Options& options) {
  auto model = network();
  auto copy = network();
  Optimizer optimizer(model->parameters(), options);
  Optimizer loaded(copy->parameters(), options);
  OptimizerState state(optimizer);
  OptimizerState other(loaded);
  loaded.param_groups()[0].options().set_lr(7);
  for (int at = 0; at < 3; ++at) step(model, optimizer);
  {
    const torch::NoGradGuard no_gradients;
    for (std::size_t at = 0; at < model->parameters().size(); ++at) {
      copy->parameters()[at].copy_(model->parameters()[at]);
    }
  }
  const auto saved = state.save();
  const auto before = other.save();
  const auto shorter = std::vector(saved.begin(), saved.end() - 1);
  must_fail(name, kInvalid, {"not of an optimizer"}, [&] { other.load(shorter); });
  require(same_bits(other.save(), before), name + ": changed by bytes that it refused");
  other.load(saved);
  require(same_bits(other.save(), saved), name + ": another state than was loaded");
  step(model, optimizer);
  step(copy, loaded);
  for (std::size_t at = 0; at < model->parameters().size(); ++at) {
    require(model->parameters()[at].equal(copy->parameters()[at]), name + ": another step");
  }
  require(!same_bits(state.save(), saved), name + ": a step changed nothing");
}

void check_optimizers() {
  namespace optim = torch::optim;
  check_optimizer<optim::SGD>("SGD", optim::SGDOptions(0.1).momentum(0.9));
  check_optimizer<optim::Adam>("Adam", optim::AdamOptions(0.1).amsgrad(true));
  check_optimizer<optim::AdamW>("AdamW", optim::AdamWOptions(0.1));
  check_optimizer<optim::Adagrad>("Adagrad", optim::AdagradOptions(0.1));
  check_optimizer<optim::RMSprop>("RMSprop", optim::RMSpropOptions(0.1).momentum(0.9));
}

void check() {
  torch::set_num_threads(1);
  check_views();
  check_averages();
  check_optimizers();
  if (rank() == 0) std::puts("all checks passed");
}

}  // namespace
}  // namespace elastic::testing

int main() {
  return elastic::testing::as_a_worker(elastic::testing::check);
}
