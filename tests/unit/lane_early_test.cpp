// A lane whose backend begins operations early.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lane_fixture.hpp"

namespace elastic::coordinator {
namespace {

using collectives::Backend;
using collectives::Payload;

/// Notes what it is asked. In `run` it asks for the operation to come, and begins it early.
class EarlyBackend final : public Backend {
 public:
  EarlyBackend(std::vector<std::string>& said, Status end) : said_(said), end_(std::move(end)) {}

  void expect(Upcoming upcoming) override { upcoming_ = std::move(upcoming); }
  Status run(std::uint64_t position, const collectives::Call& /*call*/,
             Payload& /*payload*/) override {
    said_.push_back("run " + std::to_string(position));
    has_begun_ = false;
    const std::optional<Coming> coming = upcoming_ ? upcoming_() : std::nullopt;
    if (!coming) return {};
    said_.push_back("begin one of " + std::to_string(coming->tensors->tensors().size()));
    has_begun_ = true;
    return {};
  }
  Status end_early() override {
    if (!std::exchange(has_begun_, false)) return {};
    said_.emplace_back("end");
    return end_;
  }
  Status hand_over(std::uint64_t /*position*/, const HandoverPairs& /*pairs*/,
                   Parcel& /*parcel*/) override {
    return {};
  }
  void abort() noexcept override {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "early"; }

 private:
  std::vector<std::string>& said_;
  const Status end_;
  Upcoming upcoming_;
  bool has_begun_ = false;
};

/// A barrier with tensors on a device.
class TensorsOnDevice final : public BarrierOperation, private collectives::DeviceTensors {
 public:
  explicit TensorsOnDevice(std::size_t count) : tensors_(count) {}
  collectives::DeviceTensors* on_device() override { return this; }

 private:
  int device() const override { return 0; }
  std::span<const collectives::DeviceTensor> tensors() const override { return tensors_; }
  Status to_host(Payload& /*payload*/) override { return {}; }

  std::vector<collectives::DeviceTensor> tensors_;
};

class LaneEarlyTest : public LaneTest {
 protected:
  std::shared_ptr<LaneView> early_view(std::uint64_t generation, Status end = {}) {
    auto made = view(generation);
    made->backend = std::make_unique<EarlyBackend>(said_, std::move(end));
    return made;
  }

  std::vector<std::string> said_;
  std::vector<std::string> left_;  // the reasons for which the lane has left
  Lane lane_{"lane",
             {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {},
              [this](const Status& why) { left_.push_back(why.message()); }}};
  TensorsOnDevice first_{1};
  TensorsOnDevice second_{2};
};

TEST_F(LaneEarlyTest, TheNextOperationMayBeginInThePresentOne) {
  lane_.install(early_view(7));
  Lane::Ownership ownership = lane_.acquire(Milliseconds(0)).value();
  EXPECT_TRUE(lane_.attempt(ownership, first_, [&] { return &second_; }).final);
  EXPECT_TRUE(lane_.attempt(ownership, second_, [] { return nullptr; }).final);
  EXPECT_TRUE(lane_.attempt(ownership, first_).final) << "it is not asked again";
  ownership.release();
  EXPECT_EQ(said_, (std::vector<std::string>{"run 0", "begin one of 2", "run 1", "run 2"}));
}

/// Such as where the links have failed between the two.
TEST_F(LaneEarlyTest, OneThatIsNotRunEndsBeforeTheLaneIsGivenBack) {
  lane_.install(early_view(7));
  Lane::Ownership ownership = lane_.acquire(Milliseconds(0)).value();
  EXPECT_TRUE(lane_.attempt(ownership, first_, [&] { return &second_; }).final);
  ownership.release();
  EXPECT_EQ(said_, (std::vector<std::string>{"run 0", "begin one of 2", "end"}));
  EXPECT_TRUE(left_.empty());
}

TEST_F(LaneEarlyTest, LeavesIfTheDeviceDoesNotLetGoOfIt) {
  lane_.install(early_view(7, Status(Code::kUnavailable, "the device hangs")));
  Lane::Ownership ownership = lane_.acquire(Milliseconds(0)).value();
  EXPECT_TRUE(lane_.attempt(ownership, first_, [&] { return &second_; }).final);
  ownership.release();
  EXPECT_EQ(left_, std::vector<std::string>{"the device hangs"});
  EXPECT_EQ(lane_.closed().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace elastic::coordinator
