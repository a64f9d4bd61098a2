#include "linking_worker.hpp"

#include <array>

#include "collectives/transport/mesh.hpp"

namespace elastic::transport {
void expect_linked(const LinkPtr& left, const LinkPtr& right, std::uint64_t position) {
  ASSERT_TRUE(left && right);
  static const std::array<std::byte, 16> kMessage = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 16> got{};
  const OpTag tag{1, position, OpTag::kNormal};
  left->begin(tag, kCall);
  right->begin(tag, kCall);
  right->receive({got});
  left->send(kMessage);
  Mesh receiver(0, {nullptr, right});
  const Status status = receiver.run_until([&] { return right->received() == 1; });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(got, kMessage);
}

std::pair<Linker::LinksOfPeer, Linker::LinksOfPeer> expect_pair(std::future<Links> left,
                                                                std::future<Links> right) {
  Links of_left = left.get();
  Links of_right = right.get();
  EXPECT_TRUE(of_left.ok()) << of_left.status().message();
  EXPECT_TRUE(of_right.ok()) << of_right.status().message();
  if (!of_left.ok() || !of_right.ok()) return {};
  auto links = std::pair(of_left.value().front(), of_right.value().front());
  EXPECT_EQ(links.first.size(), links.second.size());
  for (std::size_t lane = 0; lane < links.first.size(); ++lane) {
    expect_linked(links.first[lane], links.second[lane], 0);
    expect_linked(links.second[lane], links.first[lane], 1);
  }
  return links;
}

}  // namespace elastic::transport
