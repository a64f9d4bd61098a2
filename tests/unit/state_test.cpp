#include "elastic/state.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "elastic/learning_rate_ramp.hpp"
#include "elastic/sampler.hpp"
#include "training/boundary.hpp"
#include "training/state_image.hpp"

namespace elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The state that a trainer would keep. Tests use two of them as two workers.
struct Worker {
  std::vector<float> weights;
  std::vector<float16> halves;
  double rate = 0.5;
  long steps = 0;
  bool warm = false;
  Sampler sampler;
  LearningRateRamp ramp;
  State state;

  explicit Worker(std::size_t weights_count = 5, std::uint64_t seed = 3)
      : weights(weights_count), halves(3), sampler(100, seed), ramp({.batch_reference = 16}) {
    state.add("weights", weights);
    state.add("halves", std::span<float16>(halves));
    state.add("rate", rate);
    state.add("steps", steps);
    state.add("warm", warm);
    state.add("sampler", sampler);
    state.add("ramp", ramp);
  }

  void train() {
    weights.assign(weights.size(), 1.25F);
    halves[1] = float16(3.0F);
    rate = 0.25;
    steps = 17;
    warm = true;
    sampler.set_members(std::vector<WorkerId>{1, 2}, 1);
    sampler.next(10);
    sampler.commit(std::vector<WorkerId>{1, 2});
    ramp.step(64);
  }
};

struct Counter : training::Boundary {
  void commit(State& state) override { seen.push_back(state.commits()); }
  std::vector<std::uint64_t> seen;
};

/// Refuses the first commit.
struct Reluctant : Counter {
  void before_commit() override {
    if (!std::exchange(refused, true)) throw Error(ErrorCode::kInvalidArgument, "not yet");
  }
  bool refused = false;
};

/// Refuses every load but that of its own bytes.
struct Stubborn {
  std::vector<std::byte> save() const { return {value}; }
  void load(std::span<const std::byte> bytes) {
    if (bytes.size() != 1 || bytes[0] != value) throw std::runtime_error("will not have it");
  }
  std::byte value{};
};

TEST(State, DescribesItsLayoutInOrder) {
  Worker worker;
  EXPECT_THAT(
      training::layout(worker.state),
      ElementsAre(LayoutEntry{"weights", "f32", 5}, LayoutEntry{"halves", "f16", 3},
                  LayoutEntry{"rate", "scalar f64", 1}, LayoutEntry{"steps", "scalar i64", 1},
                  LayoutEntry{"warm", "scalar bool", 1}, LayoutEntry{"sampler", "object", 0},
                  LayoutEntry{"ramp", "object", 0}));
}

TEST(State, RefusesBadNames) {
  State state;
  int value = 0;
  state.add("value", value);
  EXPECT_THROW(state.add("", value), Error);
  try {
    state.add("value", value);
    FAIL() << "a name twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("'value'"));
  }
  EXPECT_EQ(training::layout(state).size(), 1U);
}

TEST(State, CommitsOnlyWhileAttached) {
  Worker worker;
  try {
    worker.state.commit();
    FAIL() << "commit without run";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotInitialized);
  }
  EXPECT_EQ(worker.state.commits(), 0U);
  Counter counter;
  {
    training::Attachment attachment(worker.state, counter);
    worker.state.commit();
    worker.state.commit();
    int late = 0;
    EXPECT_THROW(worker.state.add("late", late), Error);
    EXPECT_THROW(training::Attachment(worker.state, counter), Error);
  }
  EXPECT_THAT(counter.seen, ElementsAre(1U, 2U));
  EXPECT_EQ(worker.state.commits(), 2U);
  EXPECT_THROW(worker.state.commit(), Error);
}

TEST(State, ARefusedCommitDoesNotCount) {
  Worker worker;
  Reluctant reluctant;
  training::Attachment attachment(worker.state, reluctant);
  EXPECT_THROW(worker.state.commit(), Error);
  EXPECT_EQ(worker.state.commits(), 0U);
  worker.state.commit();
  EXPECT_EQ(worker.state.commits(), 1U);
  EXPECT_THAT(reluctant.seen, ElementsAre(1U));
}

/// The message of the exception that `call` throws.
template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(State, RefusesAVectorThatHasChangedItsSize) {
  const auto changed = HasSubstr(
      "entry 'weights' had 5 elements when it was added and has 7 now; give it its size before");
  Worker worker;
  Counter counter;
  {
    training::Attachment attachment(worker.state, counter);
    worker.state.commit();
    worker.weights.assign(7, 1.0F);
    EXPECT_THAT(refusal([&] { worker.state.commit(); }), changed);
    EXPECT_EQ(worker.state.commits(), 1U) << "the step was not committed";
    EXPECT_THAT(refusal([&] { worker.state.save_to("no folder/checkpoint"); }), changed);
    EXPECT_THAT(refusal([&] { training::serialize(worker.state); }), changed);
  }
  EXPECT_THAT(refusal([&] { training::Attachment attachment(worker.state, counter); }), changed);
  EXPECT_THAT(refusal([&] { worker.state.load_from("no folder/checkpoint"); }), changed);
  EXPECT_THAT(counter.seen, ElementsAre(1U));
  worker.weights.resize(5);
  training::Attachment attachment(worker.state, counter);
  worker.state.commit();
}

TEST(State, FollowsAVectorThatMovesItsElements) {
  for (const std::size_t size : {std::size_t{5}, training::kLargeEntry / sizeof(float)}) {
    Worker member(size);
    member.weights = std::vector<float>(size, 3.0F);
    Worker joiner(size);
    joiner.weights = std::vector<float>(size, 1.0F);
    std::vector<std::span<const std::byte>> large;
    for (const auto& entry : training::large_entries(member.state)) large.emplace_back(entry);
    const training::Image image = training::serialize(member.state);
    ASSERT_TRUE(training::restore(joiner.state, image, large).ok());
    EXPECT_EQ(joiner.weights, std::vector<float>(size, 3.0F));
    EXPECT_EQ(training::hashes(joiner.state), training::hashes(member.state));
  }
}

TEST(State, TellsTheSamplerItsMembers) {
  Worker worker;
  training::set_members(worker.state, std::vector<WorkerId>{4, 5}, 5);
  EXPECT_EQ(worker.sampler.next(3).size(), 3U);
  EXPECT_EQ(worker.sampler.global_batch(), 6U);
}

TEST(State, MovesEverythingToAnotherWorker) {
  Worker member;
  member.train();
  Counter counter;
  training::Attachment attachment(member.state, counter);
  member.state.commit();

  Worker joiner(5, 99);
  EXPECT_NE(training::hashes(joiner.state), training::hashes(member.state));
  const training::Image image = training::serialize(member.state);
  EXPECT_EQ(training::image_bytes(member.state), image.size());
  EXPECT_EQ(image.size() % 64, 0U);
  const auto restored = training::restore(joiner.state, image);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ(restored.value(), training::hashes(joiner.state));
  EXPECT_EQ(joiner.weights, member.weights);
  EXPECT_EQ(static_cast<float>(joiner.halves[1]), 3.0F);
  EXPECT_EQ(joiner.rate, 0.25);
  EXPECT_EQ(joiner.steps, 17);
  EXPECT_TRUE(joiner.warm);
  EXPECT_EQ(joiner.sampler.done_in_epoch(), 20U);
  EXPECT_EQ(joiner.ramp.get(), member.ramp.get());
  EXPECT_EQ(joiner.state.commits(), 1U);
  EXPECT_EQ(training::serialize(joiner.state), image);
  EXPECT_EQ(training::hashes(joiner.state), training::hashes(member.state));
}

/// The sizes of texts and vectors are part of their contents.
TEST(State, MovesTextsAndVectorsInAVector) {
  struct Run {
    Run() {
      state.add("name", name);
      state.add("history", history);
    }
    std::string name;
    std::vector<std::vector<double>> history;
    State state;
  };
  Run member;
  member.name = std::string("the best\0 so far", 16);
  member.history = {{1, 2, 3}, {}, {4}};
  const training::Image image = training::serialize(member.state);
  Run joiner;
  joiner.name = "another";
  joiner.history = {{5}};
  ASSERT_TRUE(training::restore(joiner.state, image).ok());
  EXPECT_EQ(joiner.name, member.name);
  EXPECT_EQ(joiner.history, member.history);
  member.history.clear();
  member.name.clear();
  ASSERT_TRUE(training::restore(joiner.state, training::serialize(member.state)).ok());
  EXPECT_TRUE(joiner.name.empty());
  EXPECT_TRUE(joiner.history.empty());
}

TEST(State, RefusesAVectorInAVectorThatIsCutWithinAnElement) {
  std::vector<std::vector<float>> whole{{1, 2, 3}};
  std::vector<std::vector<double>> other{{7}};
  State member;
  member.add("rows", whole);
  State joiner;
  joiner.add("rows", other);
  EXPECT_FALSE(training::restore(joiner, training::serialize(member)).ok());
  EXPECT_EQ(other, (std::vector<std::vector<double>>{{7}}));
}

TEST(State, MovesLargeEntriesFromWhereTheyLie) {
  constexpr std::size_t kMany = 3 * training::kLargeEntry / sizeof(float) + 1;  // in pieces
  Worker member(kMany);
  member.train();
  Worker joiner(kMany, 99);
  const training::Image image = training::serialize(member.state);
  EXPECT_LT(image.size(), training::kLargeEntry);
  const auto large = training::large_entries(member.state);
  ASSERT_THAT(large, SizeIs(1));
  EXPECT_EQ(large[0].data(), std::as_writable_bytes(std::span(member.weights)).data());

  const std::span<const std::byte> received(large[0]);
  EXPECT_THAT(training::restore(joiner.state, image).status().message(), HasSubstr("'weights'"));
  const auto cut = received.first(received.size() - 1);
  EXPECT_THAT(training::restore(joiner.state, image, {&cut, 1}).status().message(),
              HasSubstr("'weights'"));
  EXPECT_EQ(joiner.steps, 0);
  const auto restored = training::restore(joiner.state, image, {&received, 1});
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ(restored.value(), training::hashes(joiner.state));
  EXPECT_EQ(joiner.weights, member.weights);
  EXPECT_EQ(training::hashes(joiner.state), training::hashes(member.state));
}

TEST(State, HashesNameTheEntryThatDiffers) {
  Worker one;
  Worker two;
  two.steps = 1;
  const auto first = training::hashes(one.state);
  const auto second = training::hashes(two.state);
  ASSERT_EQ(first.size(), 7U);
  for (std::size_t at = 0; at < first.size(); ++at) EXPECT_EQ(first[at] == second[at], at != 3);
}

TEST(State, RefusesEveryDamagedImageAndKeepsItsValues) {
  Worker member;
  member.train();
  Worker joiner;
  const training::Image before = training::serialize(joiner.state);
  const training::Image good = training::serialize(member.state);
  for (std::size_t length = 0; length < good.size(); length += 8) {
    EXPECT_FALSE(training::restore(joiner.state, std::span(good).first(length)).ok()) << length;
  }
  training::Image longer = good;
  longer.resize(good.size() + 64);
  EXPECT_FALSE(training::restore(joiner.state, longer).ok());
  training::Image flipped = good;
  flipped[64 + 64 + 2] ^= std::byte{1};  // within the weights
  const Status status = training::restore(joiner.state, flipped).status();
  EXPECT_THAT(status.message(), HasSubstr("'weights'"));
  training::Image huge = good;
  std::memset(huge.data() + 64, 0xff, 8);  // the length of the first entry
  EXPECT_FALSE(training::restore(joiner.state, huge).ok());
  EXPECT_EQ(training::serialize(joiner.state), before);
}

TEST(State, RefusesAnotherLayout) {
  Worker member;
  Worker smaller(4);
  EXPECT_THAT(
      training::restore(smaller.state, training::serialize(member.state)).status().message(),
      HasSubstr("'weights'"));
  State empty;
  EXPECT_FALSE(training::restore(empty, training::serialize(member.state)).ok());
}

TEST(State, TakesBackObjectsWhenALaterOneRefuses) {
  LearningRateRamp source({.batch_reference = 16});
  Stubborn source_stubborn{std::byte{1}};
  float source_value = 2;
  State from;
  from.add("value", source_value);
  from.add("ramp", source);
  from.add("stubborn", source_stubborn);
  source.step(64);

  LearningRateRamp target({.batch_reference = 16});
  Stubborn target_stubborn{std::byte{2}};
  float target_value = 1;
  State to;
  to.add("value", target_value);
  to.add("ramp", target);
  to.add("stubborn", target_stubborn);
  const Status status = training::restore(to, training::serialize(from)).status();
  EXPECT_THAT(status.message(), HasSubstr("'stubborn'"));
  EXPECT_THAT(status.message(), HasSubstr("will not have it"));
  EXPECT_EQ(target.gamma(), 1);
  EXPECT_EQ(target_value, 1);
}

TEST(State, AcceptsEmptySpans) {
  std::vector<float> none;
  State state;
  state.add("none", none);
  EXPECT_TRUE(training::restore(state, training::serialize(state)).ok());
}

TEST(StateImage, OfASizeThatDoesNotFitTheEntriesIsRefused) {
  State tensors;
  std::vector<float> weights(5);
  std::vector<double> moments(3);
  tensors.add("weights", weights);
  tensors.add("moments", moments);
  const std::uint64_t fits = training::image_bytes(tensors);
  EXPECT_TRUE(training::check_image_bytes(tensors, fits).ok());
  for (const std::uint64_t bytes : {std::uint64_t{0}, fits - 64, fits + 64, ~std::uint64_t{0}}) {
    const Status refused = training::check_image_bytes(tensors, bytes);
    EXPECT_EQ(refused.code(), Code::kMismatch) << bytes;
    EXPECT_THAT(refused.message(), HasSubstr(std::to_string(fits)));
  }
  Worker worker;  // with objects, whose sizes differ between workers
  const std::uint64_t own = training::image_bytes(worker.state);
  EXPECT_TRUE(training::check_image_bytes(worker.state, own + 4096).ok());
  for (const std::uint64_t bytes : {std::uint64_t{64}, own + 1, ~std::uint64_t{0} - 63}) {
    EXPECT_FALSE(training::check_image_bytes(worker.state, bytes).ok()) << bytes;
  }
}

TEST(State, TakesTensorsWhoseTypeIsKnownAtRunTimeOnly) {
  std::vector<float> floats(3);
  std::array<bool, 2> flags{};
  std::vector<std::uint16_t> shorts(4);
  State spans;
  spans.add("floats", std::span(floats));
  spans.add("flags", std::span(flags));
  spans.add("shorts", std::span(shorts));
  State tensors;
  tensors.add("floats", view(std::span(floats)));
  tensors.add("flags", view(std::span<bool>(flags)));
  tensors.add("shorts", view(std::span(shorts)));
  EXPECT_EQ(training::layout(tensors), training::layout(spans));
  EXPECT_THROW(tensors.add("device", cuda_view(floats.data(), 3)), Error);
  EXPECT_THROW(tensors.add("none", {nullptr, 3, DType::kF32, {}}), Error);
  EXPECT_THROW(tensors.add("type", {floats.data(), 3, static_cast<DType>(99), {}}), Error);
}

}  // namespace
}  // namespace elastic
