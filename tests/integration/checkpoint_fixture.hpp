#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "elastic/learning_rate_ramp.hpp"
#include "elastic/sampler.hpp"
#include "elastic/state.hpp"
#include "integration/job.hpp"
#include "training/boundary.hpp"
#include "training/state_image.hpp"

namespace elastic::testing {

inline constexpr std::size_t kLarge = 3 * training::kLargeEntry / sizeof(float) + 1;
inline constexpr std::size_t kVersionAt = 8;  // in a file

/// The boundary of a run in the view of a generation.
struct View {
  explicit View(std::uint64_t generation) : boundary(std::make_unique<Boundary>(generation)) {}
  struct Boundary : training::Boundary {
    explicit Boundary(std::uint64_t of_view) : number(of_view) {}
    void commit(State& /*state*/) override {}
    std::uint64_t generation() const override { return number; }
    void check_membership() override {
      if (given_up) throw Error(ErrorCode::kEvicted, "the job went on without this worker");
    }
    void await_end() override {
      ++waits;
      given_up = news_comes;
      check_membership();
    }
    std::uint64_t number;
    bool given_up = false;
    bool news_comes = true;  // to `await_end`
    int waits = 0;
  };
  std::unique_ptr<Boundary> boundary;
};

/// The state that a trainer would keep.
struct Worker {
  std::vector<float> weights;
  std::vector<std::int64_t> counts = std::vector<std::int64_t>(3);
  double rate = 0.5;
  Sampler sampler{100, 3};
  LearningRateRamp ramp{{.batch_reference = 16}};
  State state;

  explicit Worker(std::size_t weights_count = 5) : weights(weights_count) {
    state.add("weights", weights);
    state.add("counts", counts);
    state.add("rate", rate);
    state.add("sampler", sampler);
    state.add("ramp", ramp);
  }

  void train(std::int64_t step, std::uint64_t generation = 0) {
    const View view(generation);
    const training::Attachment attachment(state, *view.boundary);
    for (std::size_t at = 0; at < weights.size(); ++at) {
      weights[at] = static_cast<float>(at) + static_cast<float>(step);
    }
    counts[1] = step;
    rate = 0.25;
    sampler.set_members(std::vector<WorkerId>{1, 2}, 1);
    sampler.next(10);
    sampler.commit(std::vector<WorkerId>{1, 2});
    ramp.step(64);
    state.commit();
  }

  /// All of the state but its large entries.
  training::Image image() const { return training::serialize(state); }
};

/// The exception that `call` throws.
template <typename Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  throw std::logic_error("nothing was thrown");
}

class Checkpoint : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "checkpoint") const {
    return (scratch_.path() / name).string();
  }
  /// Whether anything but the file itself is in the folder.
  static bool alone(const std::filesystem::path& folder) {
    const std::filesystem::directory_iterator files(folder);
    return std::distance(begin(files), end(files)) <= 1;
  }
  /// The file that a writer has not finished.
  static std::filesystem::path unfinished(const std::filesystem::path& folder) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() == ".new") return file.path();
    }
    return {};
  }
  void write(const std::string& content) const { std::ofstream(path()) << content; }
  /// Loading it is refused, changes nothing, and leaves the file as it is.
  Error refusal(Worker& worker) const {
    const training::Image before = worker.image();
    const std::vector<float> weights = worker.weights;
    const std::string content = read_file(path());
    const Error error = error_of([&] { worker.state.load_from(path()); });
    EXPECT_EQ(worker.image(), before) << error.what();
    EXPECT_EQ(worker.weights, weights) << error.what();
    EXPECT_EQ(read_file(path()), content);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(path()));
    return error;
  }

  ScratchFolder scratch_;
};

}  // namespace elastic::testing
