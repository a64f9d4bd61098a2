// Links that a view did not begin with, asked for later.
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "linking_worker.hpp"

namespace elastic::transport {
namespace {

/// Worker b dials, because its name is the greater one.
class LinkerRequestTest : public LinkerTest {
 protected:
  /// Both are members of view 1, which begins without links.
  void SetUp() override {
    auto at_a = a_->connect({later("b", *b_)});
    auto at_b = b_->connect({later("a", *a_)});
    for (auto* const connected : {&at_a, &at_b}) {
      const Links links = connected->get();
      ASSERT_TRUE(links.ok()) << links.status().message();
      ASSERT_EQ(links.value().size(), 1U);
      EXPECT_TRUE(links.value().front().empty());
    }
  }
  Peer later(const std::string& incarnation, const LinkingWorker& worker) const {
    Peer made = peer(incarnation, worker);
    made.at_once = false;
    return made;
  }

  std::unique_ptr<LinkingWorker> a_ = std::make_unique<LinkingWorker>(options("a"));
  std::unique_ptr<LinkingWorker> b_ = std::make_unique<LinkingWorker>(options("b"));
};

TEST_F(LinkerRequestTest, ALinkIsMadeWhereBothAskForIt) {
  auto at_b = b_->request(peer("a", *a_));
  auto at_a = a_->request(peer("b", *b_));
  const auto of_a = at_a.get();
  const auto of_b = at_b.get();
  ASSERT_TRUE(of_a.ok()) << of_a.status().message();
  ASSERT_TRUE(of_b.ok()) << of_b.status().message();
  expect_linked(of_a.value(), of_b.value());
  expect_linked(of_b.value(), of_a.value(), 1);
}

/// It may come to the operation that needs the link long before the other.
TEST_F(LinkerRequestTest, TheEndThatDoesNotDialWaits) {
  auto at_a = a_->request(peer("b", *b_), Milliseconds(1));
  const auto of_b = b_->request(peer("a", *a_)).get();
  ASSERT_TRUE(of_b.ok()) << of_b.status().message();
  const auto of_a = at_a.get();
  ASSERT_TRUE(of_a.ok()) << of_a.status().message();
  expect_linked(of_a.value(), of_b.value());
}

TEST_F(LinkerRequestTest, TheEndThatDialsSaysWhyItCannot) {
  const Peer gone = peer("a", *a_);
  a_.reset();
  const auto of_b = b_->request(gone, kRefusalDeadline).get();
  ASSERT_FALSE(of_b.ok());
  EXPECT_EQ(of_b.status().code(), Code::kTimeout);
  EXPECT_NE(of_b.status().message().find(gone.incarnation.substr(0, 8)), std::string::npos)
      << of_b.status().message();
}

TEST_F(LinkerRequestTest, TheNextViewEndsARequest) {
  auto at_a = a_->request(peer("b", *b_));
  auto next_at_a = a_->connect({peer("b", *b_)}, kLinkDeadline, 2);
  auto next_at_b = b_->connect({peer("a", *a_)}, kLinkDeadline, 2);
  expect_pair(std::move(next_at_a), std::move(next_at_b));
  EXPECT_THROW(at_a.get(), std::future_error) << "it is not answered any more";
}

TEST_F(LinkerRequestTest, ARequestOfAnEarlierViewIsNotAnswered) {
  auto next_at_a = a_->connect({later("b", *b_)}, kLinkDeadline, 2);
  ASSERT_TRUE(next_at_a.get().ok());
  auto at_a = a_->request(peer("b", *b_), kLinkDeadline, 1);
  EXPECT_THROW(at_a.get(), std::future_error);
}

}  // namespace
}  // namespace elastic::transport
