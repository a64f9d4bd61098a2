// Trains a small network of libtorch on handwritten digits, with workers that may come and go:
//
//   elasticrun -np 3 ./libtorch_digits ../data/digits.csv.gz
//
// Kill a worker while it trains: the others go on, and its samples go to them. Each worker ends
// with a line that has a hash of its parameters: the same on all.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <signal.h>
#include <span>
#include <string>
#include <unistd.h>

#include <elastic/elastic.hpp>
#include <elastic/libtorch.hpp>
#include <elastic/training.hpp>
#include <torch/torch.h>

#include "examples/digits/dataset.hpp"

namespace {

struct Data {
  torch::Tensor images;
  torch::Tensor labels;
};

Data tensors(const std::vector<digits::Sample>& samples) {
  const auto count = static_cast<std::int64_t>(samples.size());
  Data data{torch::empty({count, static_cast<std::int64_t>(digits::kPixels)}),
            torch::empty({count}, torch::kInt64)};
  float* pixels = data.images.data_ptr<float>();
  std::int64_t* label = data.labels.data_ptr<std::int64_t>();
  for (const digits::Sample& sample : samples) {
    pixels = std::copy(sample.pixels.begin(), sample.pixels.end(), pixels);
    *label++ = sample.label;
  }
  return data;
}

torch::Tensor indices(std::span<const std::size_t> share) {
  auto result = torch::empty({static_cast<std::int64_t>(share.size())}, torch::kInt64);
  std::copy(share.begin(), share.end(), result.data_ptr<std::int64_t>());
  return result;
}

/// FNV-1a over the bits of all parameters.
std::uint64_t hash(const torch::nn::Module& model) {
  std::uint64_t result = 0xcbf29ce484222325U;
  for (const auto& parameter : model.parameters()) {
    const elastic::TensorView view = elastic::libtorch::view(parameter.detach());
    const auto* bytes = static_cast<const unsigned char*>(view.data);
    for (std::size_t at = 0; at < view.bytes(); ++at)
      result = (result ^ bytes[at]) * 0x100000001b3U;
  }
  return result;
}

/// For tests: the worker of this rank in the first view dies at this step, while its gradients
/// travel.
void die_as_asked(std::uint64_t step) {
  const char* rank = std::getenv("DIE_RANK");
  const char* at = std::getenv("DIE_AT_STEP");
  if (rank == nullptr || at == nullptr || elastic::generation() != 1) return;
  if (std::atoi(rank) != elastic::rank() || std::strtoull(at, nullptr, 10) != step) return;
  ::kill(::getpid(), SIGKILL);
}

void train(const std::string& file, std::uint64_t epochs) {
  const digits::Dataset split = digits::split(digits::read_samples(file));
  const Data training = tensors(split.training);
  const Data test = tensors(split.test);

  elastic::init();
  torch::set_num_threads(1);  // workers share the machine's cores
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(64, 32), torch::nn::ReLU(),
                              torch::nn::Linear(32, 10));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01));
  elastic::libtorch::AveragedGradients gradients(*model);
  elastic::libtorch::OptimizerState kept(optimizer);
  elastic::Sampler sampler(split.training.size(), /*seed=*/1);

  elastic::State state;  // what a new worker has to receive
  elastic::libtorch::add(state, "model", *model);
  state.add("optimizer", kept);
  state.add("sampler", sampler);
  const elastic::RunOutcome outcome = elastic::run(state, [&] {
    while (!sampler.finished(epochs)) {
      const auto share = sampler.next(/*batch_per_worker=*/32);
      optimizer.zero_grad();
      if (!share.empty()) {  // at an epoch's end nothing may be left for this worker
        const torch::Tensor at = indices(share);
        const auto scores = model->forward(training.images.index_select(0, at));
        torch::nn::functional::cross_entropy(scores, training.labels.index_select(0, at))
            .backward();  // each gradient travels as soon as it is complete
      }
      die_as_asked(state.commits());
      sampler.commit(gradients.wait());  // the samples of a dead worker are drawn again
      optimizer.step();
      state.commit();  // workers join and leave here
    }
  });

  const torch::NoGradGuard no_gradients;
  const auto right = model->forward(test.images).argmax(1).eq(test.labels);
  if (outcome == elastic::RunOutcome::kFinished) {
    std::printf("accuracy %.3f after %llu steps of %d workers, parameters %016llx\n",
                right.to(torch::kFloat64).mean().item<double>(),
                static_cast<unsigned long long>(state.commits()), elastic::size(),
                static_cast<unsigned long long>(hash(*model)));
  }
  elastic::shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: libtorch_digits DIGITS.csv.gz [EPOCHS]\n");
    return 2;
  }
  try {
    train(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "libtorch_digits: %s\n", error.what());
    return 1;
  }
}
