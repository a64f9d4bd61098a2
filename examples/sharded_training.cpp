// Linear regression with momentum that is sharded over the workers: each has the momentum of its
// part of the parameters, and a copy of that of the worker before it. So the training goes on if a
// worker dies, and ends with the parameters of an undisturbed one (docs/sharded-training.md).
//     elasticrun -np 4 sharded_training --die 2:20
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include <elastic/elastic.hpp>

#include "command_line.hpp"
#include "sharded_training/owners.hpp"
#include "sharded_training/regression.hpp"

namespace {

using elastic::Contributors;
using regression::Tensor;

struct Arguments {
  int steps = 60;
  bool alone = false;
  std::pair<int, int> die{0, -1};  // the rank of a worker at the begin, and the step of its death
};

std::vector<elastic::TensorView> outputs_of(std::vector<Tensor>& tensors) {
  std::vector<elastic::TensorView> views;
  for (Tensor& each : tensors) views.push_back(elastic::view(std::span(each)));
  return views;
}

std::vector<elastic::ConstTensorView> inputs_of(std::vector<Tensor>& tensors) {
  const auto views = outputs_of(tensors);
  return {views.begin(), views.end()};
}

bool same_workers(const Contributors& some, const Contributors& others) {
  return std::ranges::equal(some.workers(), others.workers());
}

class Trainer {
 public:
  explicit Trainer(const Arguments& arguments) : arguments_(arguments) {
    state_.add("weights", parameters_[0]);
    state_.add("biases", parameters_[1]);
    state_.add("owners", owners_);
    state_.add("steps", steps_);
  }

  elastic::RunOutcome train() {
    return elastic::run(state_, [this] {
      const bool first = state_.commits() == 0;  // not one that replaces a dead worker
      dies_ = first && elastic::rank() == arguments_.die.first;
      while (steps_ < arguments_.steps) {
        if (!step()) continue;
        ++steps_;
        state_.commit();
      }
    });
  }
  const std::vector<Tensor>& parameters() const { return parameters_; }

 private:
  /// A step of all members: true on all of them if it counts. Each call says whose contributions
  /// are in its result, and all members learn the same. If one of those is missing that began the
  /// step, they drop what they have of the step, and make it again from what they had before.
  bool step() {
    const Contributors members = elastic::barrier();
    const auto workers = members.workers();
    const auto self = static_cast<std::size_t>(std::ranges::find(workers, elastic::context().id()) -
                                               workers.begin());
    std::vector<Tensor> gradients = regression::gradients_of(parameters_, self, members.size());
    // In place: the part of this worker comes to the beginning of each gradient.
    const elastic::ScatteredTensors parts =
        elastic::grouped_reduce_scatter(inputs_of(gradients), outputs_of(gradients));
    if (!same_workers(parts.contributors, members)) return false;
    if (dies_ && arguments_.die.second == steps_) std::raise(SIGKILL);
    std::vector<Tensor> momentum;
    if (!find_momentum(members, parts, momentum)) return false;

    Tensor shard;
    std::vector<Tensor> blocks;  // of the parameters
    for (std::size_t i = 0; i < momentum.size(); ++i) {
      const std::size_t offset = parts.tensors[i].offset;
      const auto begin = parameters_[i].begin() + static_cast<std::ptrdiff_t>(offset);
      Tensor& block =
          blocks.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(momentum[i].size()));
      for (std::size_t k = 0; k < block.size(); ++k) {
        regression::update(momentum[i][k], block[k], gradients[i][k]);
      }
      append(shard, i, offset, momentum[i]);
    }
    // The copy comes first: when all have the parameters the step counts, and so does the copy.
    std::vector<std::size_t> counts(members.size());
    counts[(self + 1) % members.size()] = shard.size();
    elastic::Gathered<double> copy = elastic::alltoall(shard, counts, members);
    if (!same_workers(copy.contributors, members)) return false;
    std::vector<Tensor> next = parameters_;
    const elastic::GatheredTensors gathered =
        elastic::grouped_allgather(inputs_of(blocks), outputs_of(next));
    if (!same_workers(gathered.contributors, members)) return false;
    for (std::size_t i = 0; i < next.size(); ++i) {
      std::ranges::copy(next[i], parameters_[i].begin());
    }
    shard_ = std::move(shard);
    copy_ = std::move(copy.values);
    owners_.set(members);
    return true;
  }

  /// Parts of the momentum follow each other in one Tensor: of each the number of the tensor, its
  /// first element, how many there are, and these.
  static void append(Tensor& parts, std::size_t tensor, std::size_t offset, const Tensor& values) {
    for (const std::size_t number : {tensor, offset, values.size()}) {
      parts.push_back(static_cast<double>(number));
    }
    parts.insert(parts.end(), values.begin(), values.end());
  }

  /// Copies parts to their tensors. \returns the number of elements.
  static std::size_t put(const Tensor& parts, std::vector<Tensor>& tensors) {
    std::size_t found = 0;
    for (auto at = parts.begin(); at != parts.end();) {
      const auto values = at + 3;
      const auto count = static_cast<std::ptrdiff_t>(at[2]);
      Tensor& tensor = tensors[static_cast<std::size_t>(at[0])];
      std::copy(values, values + count, tensor.begin() + static_cast<std::ptrdiff_t>(at[1]));
      at = values + count;
      found += static_cast<std::size_t>(count);
    }
    return found;
  }

  /// The momentum of this worker's parts. If other workers have owned it, all gather it, with the
  /// copies of that of the dead. False if a member is missing.
  bool find_momentum(const Contributors& members, const elastic::ScatteredTensors& parts,
                     std::vector<Tensor>& momentum) const {
    std::vector<Tensor> all = regression::zeros();
    if (owners_.are(members)) {
      put(shard_, all);
    } else {
      const elastic::Gathered<double> gathered = elastic::allgather(parts_to_give(members));
      if (!same_workers(gathered.contributors, members)) return false;
      if (put(gathered.values, all) < all[0].size() + all[1].size() && !owners_.empty()) {
        std::fprintf(stderr, "neighbours died at once: some momentum begins at zero again\n");
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto begin = all[i].begin() + static_cast<std::ptrdiff_t>(parts.tensors[i].offset);
      momentum.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(parts.tensors[i].count));
    }
    return true;
  }

  /// The parts that this worker has, and those of the worker before it if that one has left.
  Tensor parts_to_give(const Contributors& members) const {
    const elastic::WorkerId self = elastic::context().id();
    if (!owners_.include(self)) return {};  // it has joined since
    Tensor parts = shard_;
    const auto workers = members.workers();
    if (std::ranges::find(workers, owners_.before(self)) == workers.end()) {
      parts.insert(parts.end(), copy_.begin(), copy_.end());
    }
    return parts;
  }

  const Arguments arguments_;
  bool dies_ = false;
  std::vector<Tensor> parameters_ = regression::zeros();
  Owners owners_;  // of the momentum
  int steps_ = 0;
  elastic::State state_;  // the three above: the same on all workers
  Tensor shard_;          // the parts of the momentum of this worker, and
  Tensor copy_;           // of the worker before it
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains with momentum that is sharded over the workers of a job.");
  Arguments arguments;
  app.add_option("--steps", arguments.steps, "Steps of the training");
  app.add_flag("--alone", arguments.alone, "Train in this process alone, without a job");
  app.add_option("--die", arguments.die, "RANK:STEP in which a worker kills itself")
      ->delimiter(':');
  return examples::run_program(app, argc, argv, [&] {
    if (arguments.alone) return regression::print(regression::train_alone(arguments.steps));
    elastic::init();
    Trainer trainer(arguments);
    const bool finished = trainer.train() == elastic::RunOutcome::kFinished;
    if (finished && elastic::rank() == 0) regression::print(trainer.parameters());
    elastic::shutdown();
  });
}
