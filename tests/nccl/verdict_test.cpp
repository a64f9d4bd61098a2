// Whether all ranks have succeeded, told directly and by a tree.
#include "collectives/backend/nccl/verdict.hpp"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "contract/native_world.hpp"

namespace elastic::collectives::nccl {
namespace {

using transport::Mesh;
using transport::OpTag;

constexpr OpTag kTag{7, 0, OpTag::kLater};

class VerdictTest : public ::testing::TestWithParam<int> {
 protected:
  void make(int size) {
    verdicts_.clear();
    meshes_ = wire(size, all_wirings().front());
    for (const auto& mesh : meshes_) {
      verdicts_.push_back(std::make_unique<Verdict>(*mesh, /*tree_from=*/GetParam()));
    }
  }
  /// `body` on all ranks, each in a thread of its own, after the exchange has begun there.
  void on_all_ranks(const std::function<void(int rank, Mesh& mesh, Verdict& verdict)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < meshes_.size(); ++rank) {
      threads.emplace_back([this, rank, &body] {
        ASSERT_TRUE(verdicts_[rank]->begin(kTag).ok());
        body(static_cast<int>(rank), *meshes_[rank], *verdicts_[rank]);
      });
    }
    for (std::thread& each : threads) each.join();
  }

  std::vector<std::shared_ptr<Mesh>> meshes_;
  std::vector<std::unique_ptr<Verdict>> verdicts_;
};

TEST_P(VerdictTest, AllSucceed) {
  for (const int size : {1, 2, 9, 10, 20}) {
    make(size);
    on_all_ranks([](int /*rank*/, Mesh& /*mesh*/, Verdict& verdict) {
      const Result<bool> all = verdict.all(true);
      ASSERT_TRUE(all.ok()) << all.status().message();
      EXPECT_TRUE(all.value());
      EXPECT_FALSE(verdict.has_failed());
    });
  }
}

TEST_P(VerdictTest, OneFails) {
  for (const int size : {2, 10, 20}) {
    for (const int failing : {0, 1, size - 1}) {
      make(size);
      on_all_ranks([&](int rank, Mesh& /*mesh*/, Verdict& verdict) {
        const Result<bool> all = verdict.all(rank != failing);
        ASSERT_TRUE(all.ok()) << all.status().message();
        EXPECT_FALSE(all.value()) << "rank " << rank << " of " << size;
      });
    }
  }
}

/// The others are still at work, and would not end without it.
TEST_P(VerdictTest, ARankThatIsAtWorkSeesThatAnotherHasFailed) {
  for (const int failing : {0, 7, 19}) {
    make(20);
    on_all_ranks([&](int rank, Mesh& mesh, Verdict& verdict) {
      while (rank != failing && !verdict.has_failed()) {
        ASSERT_TRUE(mesh.progress_and_check_peers().ok());
        std::this_thread::yield();
      }
      const Result<bool> all = verdict.all(false);
      ASSERT_TRUE(all.ok()) << all.status().message();
      EXPECT_FALSE(all.value());
    });
  }
}

/// The present operation ends on no rank before all have heard it.
TEST_P(VerdictTest, RanksThatAreAtWorkHearThatAllAreReadyForTheNext) {
  for (const int size : {1, 2, 9, 10, 20}) {
    make(size);
    on_all_ranks([](int /*rank*/, Mesh& mesh, Verdict& verdict) {
      verdict.say_ready();
      while (!verdict.all_are_ready()) {
        ASSERT_TRUE(mesh.progress_and_check_peers().ok());
        std::this_thread::yield();
      }
      const Result<bool> all = verdict.all(true);
      ASSERT_TRUE(all.ok()) << all.status().message();
      EXPECT_TRUE(all.value());
      EXPECT_TRUE(verdict.all_are_ready());
    });
  }
}

TEST_P(VerdictTest, OneIsNotReady) {
  for (const int size : {2, 10, 20}) {
    for (const int slow : {0, 1, size - 1}) {
      make(size);
      on_all_ranks([&](int rank, Mesh& /*mesh*/, Verdict& verdict) {
        if (rank != slow) verdict.say_ready();
        const Result<bool> all = verdict.all(true);
        ASSERT_TRUE(all.ok()) << all.status().message();
        EXPECT_TRUE(all.value());
        EXPECT_FALSE(verdict.all_are_ready()) << "rank " << rank << " of " << size;
        verdict.say_ready();
        EXPECT_FALSE(verdict.all_are_ready()) << "too late";
      });
    }
  }
}

/// Its "no" must not overtake what the ranks below it have not said yet.
TEST_P(VerdictTest, OneFailsWhileOthersAreReady) {
  for (const int failing : {0, 1, 7, 19}) {
    make(20);
    on_all_ranks([&](int rank, Mesh& mesh, Verdict& verdict) {
      if (rank % 2 == 0) verdict.say_ready();
      while (rank != failing && !verdict.has_failed()) {
        ASSERT_TRUE(mesh.progress_and_check_peers().ok());
        std::this_thread::yield();
      }
      const Result<bool> all = verdict.all(rank != failing);
      ASSERT_TRUE(all.ok()) << all.status().message();
      EXPECT_FALSE(all.value());
      EXPECT_FALSE(verdict.all_are_ready());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, VerdictTest, ::testing::Values(2, 1000), [](const auto& param) {
  return std::string(param.param == 2 ? "Tree" : "Directly");
});

}  // namespace
}  // namespace elastic::collectives::nccl
