#include "collectives/transport/descriptor_shortage.hpp"

#include <fcntl.h>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.hpp"

namespace elastic::transport {
namespace {

TEST(DescriptorShortageTest, IsThereWhenFewerAreFreeThanLinksAreMissing) {
  EXPECT_FALSE((DescriptorNeed{.limit = 50, .free = 22, .missing = 22}.is_short()));
  EXPECT_TRUE((DescriptorNeed{.limit = 50, .free = 21, .missing = 22}.is_short()));
}

TEST(DescriptorShortageTest, SaysWhatIsNeededAndWhatToSet) {
  const DescriptorNeed need{
      .limit = 50, .free = 20, .linked = 18, .missing = 22, .members = 33, .all = 64};
  EXPECT_EQ(describe_shortage(need),
            "this process may have 50 descriptors (ulimit -n): 12 are in use for other things than "
            "its links, 18 for links, and a view of 33 members needs 22 more; raise the hard limit "
            "(ulimit -Hn, LimitNOFILE=) to 108, which allows links with all members");
}

TEST(DescriptorShortageTest, SaysThatNoneIsLeftForALinkThatAnOperationNeeds) {
  const DescriptorNeed need{
      .limit = 50, .free = 0, .linked = 35, .missing = 0, .members = 33, .all = 64};
  EXPECT_EQ(describe_shortage(need),
            "this process may have 50 descriptors (ulimit -n): 15 are in use for other things than "
            "its links, and none is left for a link in a view of 33 members; raise the hard limit "
            "(ulimit -Hn, LimitNOFILE=) to 111, which allows links with all members");
}

TEST(DescriptorShortageTest, CountsTheFreeOnesBelowTheLimit) {
  const std::size_t before = free_descriptors(1000);
  std::vector<UniqueFd> opened;
  for (int i = 0; i < 5; ++i) opened.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(free_descriptors(1000), before - 5);
  const UniqueFd above(::fcntl(opened.front().get(), F_DUPFD_CLOEXEC, 1000));
  EXPECT_EQ(free_descriptors(1000), before - 5);
  EXPECT_FALSE(out_of_descriptors());
}

}  // namespace
}  // namespace elastic::transport
