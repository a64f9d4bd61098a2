// Blocks for workers under random views, against a model that keeps each block by itself.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <rapidcheck.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "coordinator/addressed_blocks.hpp"

namespace elastic::coordinator {
namespace {

using Ids = std::vector<WorkerId>;
using Values = std::vector<std::int16_t>;

constexpr std::uint64_t kGeneration = 4;

std::size_t below(std::size_t bound) {
  return *rc::gen::inRange<std::size_t>(0, bound);
}

/// Some of the workers 1 to 12, each once, in any order.
Ids some_workers() {
  const auto chosen = *rc::gen::container<std::set<WorkerId>>(rc::gen::inRange<WorkerId>(1, 13));
  Ids ids(chosen.begin(), chosen.end());
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[below(i)]);
  return ids;
}

Contributors contributors(const Ids& ids) {
  return {std::make_shared<const Ids>(ids), kGeneration};
}

Members members(const Ids& ids) {
  Members made;
  made.generation = kGeneration + 1;
  made.rank = static_cast<int>(below(ids.size() + 1));
  made.incarnations.resize(ids.size());
  made.ids = std::make_shared<const Ids>(ids);
  return made;
}

/// A tensor of blocks, and a copy of each block by the worker that it is for.
struct Given {
  Ids to;
  std::vector<std::size_t> counts;
  Values data;
  std::map<WorkerId, Values> blocks;

  explicit Given(Ids workers) : to(std::move(workers)) {
    for (const WorkerId worker : to) {
      Values block(below(5));
      for (auto& value : block) value = static_cast<std::int16_t>(data.size() + worker * 100);
      counts.push_back(block.size());
      data.insert(data.end(), block.begin(), block.end());
      blocks[worker] = std::move(block);
    }
  }

  AddressedBlocks make() const { return make(counts); }
  AddressedBlocks make(const std::vector<std::size_t>& other_counts) const {
    return {{data.data(), data.size(), DType::kI16, {}}, other_counts, contributors(to)};
  }
};

/// Some workers of `to` have left, and the ranks of the others changed.
Ids survivors(const Ids& to) {
  Ids left;
  for (const WorkerId worker : to) {
    if (below(4) != 3)
      left.insert(left.begin() + static_cast<std::ptrdiff_t>(below(left.size() + 1)), worker);
  }
  return left;
}

Values packed(const AddressedBlocks& blocks, const Members& view) {
  collectives::Buffer buffer;
  blocks.pack(view, buffer);
  Values values(buffer.size() / sizeof(std::int16_t));
  if (!values.empty()) std::memcpy(values.data(), buffer.data(), buffer.size());
  return values;
}

/// kMismatch, with the rank and all of `words`.
void expect_fault(const AddressedBlocks& blocks, const Members& view,
                  const std::vector<std::string>& words) {
  const auto counts = blocks.counts_for(view);
  RC_ASSERT(counts.status().code() == Code::kMismatch);
  const std::string text = counts.status().message();
  RC_ASSERT(text.find("rank " + std::to_string(view.rank) + " gave ") == 0);
  for (const std::string& word : words) {
    if (text.find(word) == std::string::npos) RC_FAIL(text + " has no '" + word + "'");
  }
  RC_ASSERT(blocks.as_they_lie(view).empty());
}

TEST(AddressedBlocksProperty, EachMemberOfAnyViewGetsItsBlock) {
  EXPECT_TRUE(rc::check([] {
    const Given given(some_workers());
    RC_PRE(!given.to.empty());
    const AddressedBlocks blocks = given.make();
    const Ids ids = survivors(given.to);
    const Members view = members(ids);
    std::vector<std::uint64_t> counts;
    Values expected;
    for (const WorkerId worker : ids) {
      const Values& block = given.blocks.at(worker);
      counts.push_back(block.size());
      expected.insert(expected.end(), block.begin(), block.end());
    }
    RC_ASSERT(blocks.counts_for(view).value() == counts);
    RC_ASSERT(packed(blocks, view) == expected);
  }));
}

TEST(AddressedBlocksProperty, LieAsTheyAreForTheSameRanksAlone) {
  EXPECT_TRUE(rc::check([] {
    const Given given(some_workers());
    RC_PRE(!given.to.empty());
    const AddressedBlocks blocks = given.make();
    const Ids ids = below(2) == 0 ? given.to : survivors(given.to);
    const auto whole = blocks.as_they_lie(members(ids));
    if (ids != given.to) {
      RC_ASSERT(whole.empty());
      return;
    }
    RC_ASSERT(whole.data() == reinterpret_cast<const std::byte*>(given.data.data()));
    RC_ASSERT(whole.size() == given.data.size() * sizeof(std::int16_t));
  }));
}

TEST(AddressedBlocksProperty, WithoutCountsAreEqual) {
  EXPECT_TRUE(rc::check([] {
    const Ids to = some_workers();
    const Values data(below(40));
    const AddressedBlocks blocks({data.data(), data.size(), DType::kI16, {}}, {}, contributors(to));
    const Members view = members(survivors(to));
    if (to.empty() || data.size() % to.size() != 0) {
      const auto counts = blocks.counts_for(view);
      RC_ASSERT(counts.status().code() == Code::kMismatch);
      RC_ASSERT(counts.status().message().find("no equal blocks") != std::string::npos);
      return;
    }
    const std::vector<std::uint64_t> equal(view.ids->size(), data.size() / to.size());
    RC_ASSERT(blocks.counts_for(view).value() == equal);
    RC_ASSERT(packed(blocks, view).size() == equal.size() * data.size() / to.size());
  }));
}

TEST(AddressedBlocksProperty, NameTheFirstMemberWithoutABlock) {
  EXPECT_TRUE(rc::check([] {
    const Given given(some_workers());
    RC_PRE(!given.to.empty());
    Ids ids = survivors(given.to);
    const std::size_t joined = 1 + below(3);
    for (std::size_t i = 0; i < joined; ++i) {
      ids.insert(ids.begin() + static_cast<std::ptrdiff_t>(below(ids.size() + 1)), 100 + i);
    }
    const auto first = std::ranges::find_if(ids, [](WorkerId id) { return id >= 100; });
    expect_fault(given.make(), members(ids),
                 {"none for rank " + std::to_string(first - ids.begin()) + ", which has joined",
                  "generation " + std::to_string(kGeneration)});
  }));
}

TEST(AddressedBlocksProperty, AreRefusedWithWrongCountsInEveryView) {
  EXPECT_TRUE(rc::check([] {
    const Given given(some_workers());
    RC_PRE(!given.to.empty());
    std::vector<std::size_t> counts = given.counts;
    std::string what = "do not add up to the " + std::to_string(given.data.size()) + " elements";
    switch (below(4)) {
      case 0:  // one more element than there is
        ++counts[below(counts.size())];
        break;
      case 1:  // a count that wraps around
        counts[below(counts.size())] += ~std::size_t{0} - below(2);
        break;
      case 2:  // one element too few
        RC_PRE(!given.data.empty());
        --*std::ranges::find_if(counts, [](std::size_t count) { return count > 0; });
        break;
      default:  // another number of blocks
        counts.insert(counts.begin() + static_cast<std::ptrdiff_t>(below(counts.size())), 0);
        what = "gave " + std::to_string(counts.size()) + " blocks for the " +
               std::to_string(given.to.size()) + " members";
    }
    const Members view = members(survivors(given.to));
    expect_fault(given.make(counts), view, {what});
  }));
}

}  // namespace
}  // namespace elastic::coordinator
