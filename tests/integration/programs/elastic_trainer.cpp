// A worker that trains until a test asks for the end (a file called "finish"), checks that every
// sample is used once in an epoch, and tells in files what it sees:
//   pid.<slot>        the process id, before it joins the job
//   entered.<pid>     slot and committed steps, when the training is entered
//   trained.<pid>     when it has made 20 steps
//   result.<pid>      the outcome and a hash of the state, or the error
// The mode says what goes wrong: "" for nothing, "joiner-save" or "joiner-load" (the first joiner
// dies while it is synchronised, before or after it got the state), "donor-save" (rank 0 dies while
// a joiner is synchronised), "layout" (joiners have another state than the job), "options",
// "algorithm", "backend" and "links" (worker 2 has other Options than the others: compare_steps,
// algorithm, backend and all_linked), "resized" (in slot 1 a vector of the state grows in the fifth
// step), "zombie" (rank 0 saves checkpoints, and the one in slot 0 stops itself once between a
// commit and a save; it tells in refused.<pid> or saved.<pid> how that ended). With "device"
// nothing does, and its sums are made of tensors on a CUDA device; with "moved" nothing does, and a
// vector of the state moves its elements in every step; with "held" nothing does, and no step ends
// while there is a file "hold"; with "late" worker 2 comes once there is a file "come"; with
// "named" nothing does, and another thread makes named allreduces all the time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "cuda/driver_calls.hpp"
#include "examples/digits/outcome_name.hpp"
#include "integration/programs/result_hash.hpp"

namespace {

using elastic::testing::Gpu;

constexpr std::size_t kSamples = 101;
constexpr std::size_t kWeights = 5000;
constexpr int kStepsUntilTrained = 20;

/// Written under another name first, so that a reader sees all of the file or none.
void tell(const std::string& path, const std::string& content) {
  const std::string fresh = path + ".new" + std::to_string(::getpid());
  std::ofstream(fresh) << content << std::endl;
  std::filesystem::rename(fresh, path);
}

/// Part of the state; dies at the chosen moment of a synchronisation, once in the whole job.
class Fuse {
 public:
  Fuse(std::string mode, std::string folder, bool joiner)
      : mode_(std::move(mode)), folder_(std::move(folder)), joiner_(joiner) {}

  std::vector<std::byte> save() const {
    if (joiner_ && !loaded_ && mode_ == "joiner-save") die();
    if (training_ && elastic::rank() == 0 && mode_ == "donor-save") die();
    return {std::byte{42}};
  }
  void load(std::span<const std::byte> /*bytes*/) {
    if (joiner_ && mode_ == "joiner-load") die();
    loaded_ = true;
  }
  /// From now on a `save` is for a joiner.
  void arm() { training_ = true; }

 private:
  void die() const {
    const int once = ::open((folder_ + "/died").c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (once >= 0) ::kill(::getpid(), SIGKILL);
  }

  std::string mode_;
  std::string folder_;
  bool joiner_;
  bool loaded_ = false;
  bool training_ = false;
};

/// A thread that makes named allreduces, one after the other, whatever the training does. All ranks
/// end after the same one.
class NamedAllreduces {
 public:
  NamedAllreduces() : thread_([this] { repeat(); }) {}
  NamedAllreduces(const NamedAllreduces&) = delete;
  NamedAllreduces& operator=(const NamedAllreduces&) = delete;
  ~NamedAllreduces() {
    if (thread_.joinable()) thread_.join();
  }

  /// After the training's end. Throws what the thread met.
  void finish() {
    finished_ = true;
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void repeat() {
    try {
      for (bool over = false; !over;) {
        std::vector<std::int32_t> sum(8, 1);
        sum.back() = finished_ ? 1 : 0;
        const elastic::Contributors contributors =
            elastic::allreduce_async("beside the training", std::span(sum)).wait();
        if (sum.front() != static_cast<std::int32_t>(contributors.size())) {
          throw std::runtime_error("a named allreduce of " + std::to_string(contributors.size()) +
                                   " workers gave " + std::to_string(sum.front()));
        }
        over = sum.back() > 0;
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::atomic<bool> finished_{false};
  std::exception_ptr failure_;
  std::thread thread_;
};

class Trainer {
 public:
  Trainer(std::string folder, const std::string& mode, std::string slot)
      : folder_(std::move(folder)),
        mode_(mode),
        slot_(std::move(slot)),
        pid_(std::to_string(::getpid())),
        gpu_(mode == "device" ? std::make_unique<Gpu>(0) : nullptr),
        named_(mode == "named"),
        fuse_(mode, folder_, elastic::rank() < 0),
        weights_(kWeights + (mode == "layout" && elastic::rank() < 0 ? 1 : 0)) {
    tell(folder_ + "/began." + pid_,
         std::to_string(elastic::rank()) + " " + std::to_string(elastic::local_rank()));
    state_.add("weights", weights_);
    state_.add("used", used_);
    state_.add("steps", steps_);
    state_.add("sampler", sampler_);
    state_.add("fuse", fuse_);
  }

  void run() {
    std::optional<NamedAllreduces> beside;
    const elastic::RunOutcome outcome = elastic::run(state_, [this, &beside] {
      if (named_) beside.emplace();
      train();
    });
    if (outcome == elastic::RunOutcome::kFinished) {
      check_samples();
      if (beside) beside->finish();
    }
    tell(folder_ + "/result." + pid_,
         digits::name_of(outcome) + std::string(" ") + std::to_string(hash()));
  }

 private:
  void train() {
    tell(folder_ + "/entered." + pid_, slot_ + " " + std::to_string(state_.commits()));
    bool finish = false;
    for (int own = 1; !finish; ++own) {
      finish = step();
      if (mode_ == "moved") weights_ = std::vector<double>(weights_);
      if (mode_ == "resized" && slot_ == "1" && own == 5) weights_.push_back(0);
      fuse_.arm();
      // The test is another process, which takes the file away.
      while (mode_ == "held" && std::filesystem::exists(folder_ + "/hold")) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      state_.commit();
      if (mode_ == "zombie" && elastic::rank() == 0) save_checkpoint(own);
      if (own == kStepsUntilTrained) tell(folder_ + "/trained." + pid_, slot_);
    }
  }

  void save_checkpoint(int own) {
    const bool stops = slot_ == "0" && own == kStepsUntilTrained && !stopped_;
    if (stops) {
      stopped_ = true;
      ::raise(SIGSTOP);
    }
    try {
      state_.save_to(folder_ + "/checkpoint");
      if (stops) tell(folder_ + "/saved." + pid_, std::to_string(state_.commits()));
    } catch (const elastic::Error& error) {
      tell(folder_ + "/refused." + pid_, error.what());
      throw;
    }
  }

  /// Sums the gradients, the samples used, and whether a worker has seen that the test asks for the
  /// end. It is one sum, so that all of it has the same contributors.
  bool step() {
    std::vector<std::int64_t> sum(kWeights + kSamples + 1);
    for (const std::size_t sample : sampler_.next(3)) {
      ++sum[kWeights + sample];
      for (std::size_t i = 0; i < kWeights; i += sample + 1)
        sum[i] += static_cast<std::int64_t>(sample);
    }
    sum.back() = std::filesystem::exists(folder_ + "/finish") ? 1 : 0;
    const elastic::Contributors contributors = allreduce(sum);
    sampler_.commit(contributors);
    for (std::size_t i = 0; i < kWeights; ++i) weights_[i] += 0.001 * static_cast<double>(sum[i]);
    for (std::size_t i = 0; i < kSamples; ++i) used_[i] += sum[kWeights + i];
    ++steps_;
    return sum.back() > 0;
  }

  elastic::Contributors allreduce(std::vector<std::int64_t>& sum) const {
    if (!gpu_) return elastic::allreduce(std::span<std::int64_t>(sum));
    const elastic::testing::GpuArray<std::int64_t> array(*gpu_, sum);
    const elastic::Contributors contributors =
        elastic::allreduce(elastic::cuda_view(array.data(), array.count(), 0));
    sum = array.read();
    return contributors;
  }

  void check_samples() const {
    const auto epochs = static_cast<std::int64_t>(sampler_.epoch());
    std::size_t done = 0;
    for (const std::int64_t times : used_) {
      if (times != epochs && times != epochs + 1) {
        throw std::runtime_error("in epoch " + std::to_string(epochs) + " a sample was used " +
                                 std::to_string(times) + " times");
      }
      done += times == epochs + 1 ? 1 : 0;
    }
    if (done != sampler_.done_in_epoch())
      throw std::runtime_error("samples of the epoch miscounted");
  }

  std::uint64_t hash() const {
    elastic::testing::ResultHash result;
    result.add(weights_);
    result.add(used_);
    result.add(&steps_, sizeof(steps_));
    result.add(sampler_.save());
    return result.value();
  }

  std::string folder_;
  std::string mode_;
  std::string slot_;
  std::string pid_;
  bool stopped_ = false;
  std::unique_ptr<Gpu> gpu_;  // that the sums are made on
  bool named_;
  Fuse fuse_;
  std::vector<double> weights_;
  std::vector<std::int64_t> used_ = std::vector<std::int64_t>(kSamples);
  std::int64_t steps_ = 0;
  elastic::Sampler sampler_{kSamples, 7};
  elastic::State state_;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: elastic_trainer LOG_FOLDER [MODE]\n");
    return 2;
  }
  const std::string folder = argv[1];
  try {
    tell(folder + "/address", variable("ELASTIC_RENDEZVOUS"));
    const std::string mode = argc == 3 ? argv[2] : "";
    const std::string slot = variable("ELASTIC_SLOT");
    tell(folder + "/pid." + slot, std::to_string(::getpid()));
    while (mode == "late" && slot == "2" && !std::filesystem::exists(folder + "/come")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    elastic::Options options;
    if (mode == "options" && slot == "2") options.compare_steps = 5;
    if (mode == "algorithm" && slot == "2") options.algorithm = elastic::Algorithm::kRing;
    if (mode == "backend" && slot == "2") options.backend = "gloo";
    if (mode == "links" && slot == "2") options.all_linked = 0;
    elastic::init(options);
    Trainer(folder, mode, slot).run();
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elastic_trainer: %s\n", error.what());
    tell(folder + "/result." + std::to_string(::getpid()), std::string("error ") + error.what());
    return 3;
  }
}
