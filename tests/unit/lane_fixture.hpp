#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "coordinator/lane.hpp"

namespace elastic::coordinator {

/// Answers every call as it was told, and remembers what it was asked. A hand-over lasts until it
/// is aborted.
class ScriptedBackend final : public collectives::Backend {
 public:
  ScriptedBackend(Status answer, std::vector<collectives::Call>& calls)
      : answer_(std::move(answer)), calls_(calls) {}

  Status run(std::uint64_t /*position*/, const collectives::Call& call,
             collectives::Payload& /*payload*/) override {
    calls_.push_back(call);
    return answer_;
  }
  Status hand_over(std::uint64_t /*position*/, const HandoverPairs& /*pairs*/,
                   Parcel& /*parcel*/) override {
    handing_over.set_value();
    aborted_.get_future().wait();
    return Status(Code::kAborted, "the view changes");
  }
  void abort() noexcept override { aborted_.set_value(); }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "scripted"; }

  std::promise<void> handing_over;

 private:
  const Status answer_;
  std::vector<collectives::Call>& calls_;
  std::promise<void> aborted_;
};

/// A lane of rank 0 of two, whose backend is scripted.
class LaneTest : public ::testing::Test {
 protected:
  static Members members(std::uint64_t generation) {
    Members two;
    two.generation = generation;
    two.incarnations = {"me", "other"};
    two.synced = {true, true};
    two.ids = std::make_shared<std::vector<WorkerId>>(std::vector<WorkerId>{1, 2});
    return two;
  }
  std::shared_ptr<LaneView> view(std::uint64_t generation, Status answer = {}) {
    auto made = std::make_shared<LaneView>();
    made->members = std::make_shared<Members>(members(generation));
    made->mesh = std::make_shared<transport::Mesh>(0, std::vector<transport::LinkPtr>(2));
    auto backend = std::make_unique<ScriptedBackend>(std::move(answer), calls_);
    backend_ = backend.get();
    made->backend = std::move(backend);
    return made;
  }
  std::shared_ptr<LaneView> losing(std::shared_ptr<LaneView> view) {
    view->lost = true;
    return view;
  }
  std::shared_ptr<LaneView> as_sender(std::shared_ptr<LaneView> view) {
    view->position = 1;
    view->handover = {{0}, {1}};
    return view;
  }

  std::vector<collectives::Call> calls_;
  ScriptedBackend* backend_ = nullptr;  // of the view made last
};

}  // namespace elastic::coordinator
