#include "collectives/transport/shm/arena.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace elastic::transport {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::shared_ptr<Arena> make_arena() {
  auto made = Arena::create();
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

std::byte* take(Arena& arena, std::size_t bytes) {
  auto memory = arena.allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  return memory.ok() ? memory.value() : nullptr;
}

/// Bytes of pages that the kernel has given to the file.
std::size_t pages_of(const Arena& arena) {
  struct stat info {};
  EXPECT_EQ(::fstat(arena.fd(), &info), 0);
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

std::unique_ptr<ArenaView> view_of(const Arena& arena) {
  auto view = ArenaView::open(UniqueFd(::dup(arena.fd())));
  EXPECT_TRUE(view.ok()) << view.status().message();
  return std::move(view).value();
}

bool all_are(const std::byte* memory, std::size_t bytes, std::byte value) {
  return std::all_of(memory, memory + bytes, [&](std::byte one) { return one == value; });
}

TEST(ArenaTest, CostsNothingUntilItIsUsed) {
  const auto arena = make_arena();
  struct stat info {};
  ASSERT_EQ(::fstat(arena->fd(), &info), 0);
  EXPECT_EQ(info.st_size, 0);
  const std::byte elsewhere{};
  EXPECT_FALSE(arena->offset_of(&elsewhere, 1));
}

TEST(ArenaTest, AlignsToPagesAndWhatIsLargeToHugePages) {
  const auto arena = make_arena();
  for (const std::size_t bytes : {1UL, kPage + 1, kHugePage - 1, kHugePage, 3 * kHugePage + 5}) {
    const auto at = reinterpret_cast<std::uintptr_t>(take(*arena, bytes));
    EXPECT_EQ(at % (bytes < kHugePage ? kPage : kHugePage), 0U) << bytes;
  }
}

TEST(ArenaTest, GivesPagesBack) {
  const auto arena = make_arena();
  std::byte* const first = take(*arena, kHugePage);
  std::byte* const second = take(*arena, kHugePage);
  EXPECT_EQ(pages_of(*arena), 2 * kHugePage);
  arena->free(first, kHugePage);
  EXPECT_EQ(pages_of(*arena), kHugePage);
  arena->free(second, kHugePage);
  EXPECT_EQ(pages_of(*arena), 0U);
}

TEST(ArenaTest, WhatIsGivenBackIsGivenOutAgainAsZeros) {
  const auto arena = make_arena();
  std::vector<std::byte*> memory;
  for (int i = 0; i < 3; ++i) memory.push_back(take(*arena, kPage));
  std::byte* const fence = take(*arena, kPage);
  for (std::byte* const one : memory) std::memset(one, 7, kPage);
  // The one in the middle last: it joins the holes on both sides.
  for (const std::size_t i : {0UL, 2UL, 1UL}) arena->free(memory[i], kPage);
  std::byte* const whole = take(*arena, 3 * kPage);
  EXPECT_EQ(whole, memory.front());
  EXPECT_TRUE(all_are(whole, 3 * kPage, std::byte{0}));
  EXPECT_EQ(take(*arena, kPage), fence + kPage);
}

TEST(ArenaTest, AllocationsKeepApart) {
  constexpr int kRounds = 2000;
  constexpr unsigned kSeed = 1;
  struct Block {
    std::byte* memory;
    std::size_t bytes;
    std::byte value;
  };
  std::mt19937 random(kSeed);
  const auto arena = make_arena();
  std::vector<Block> blocks;
  for (int round = 0; round < kRounds; ++round) {
    if (blocks.size() < 20 || random() % 2 == 0) {
      const std::size_t bytes =
          random() % 50 == 0 ? kHugePage + random() % kHugePage : 1 + random() % (20 * kPage);
      const auto value = static_cast<std::byte>(1 + random() % 255);
      std::byte* const memory = take(*arena, bytes);
      ASSERT_TRUE(all_are(memory, bytes, std::byte{0}));
      std::memset(memory, static_cast<int>(value), bytes);
      blocks.push_back({memory, bytes, value});
      continue;
    }
    std::swap(blocks[random() % blocks.size()], blocks.back());
    const Block block = blocks.back();
    blocks.pop_back();
    ASSERT_TRUE(all_are(block.memory, block.bytes, block.value)) << "seed " << kSeed;
    arena->free(block.memory, block.bytes);
  }
  for (const Block& block : blocks) arena->free(block.memory, block.bytes);
  EXPECT_EQ(pages_of(*arena), 0U);
}

TEST(ArenaTest, SaysSoWhereThereIsNotSoMuch) {
  const auto arena = make_arena();
  for (const std::size_t bytes : {std::size_t{1} << 50, ~std::size_t{0}}) {
    const auto memory = arena->allocate(bytes);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.status().code(), Code::kUnavailable);
    EXPECT_NE(memory.status().message().find(std::to_string(bytes) + " bytes"), std::string::npos)
        << memory.status().message();
  }
  take(*arena, kPage);
}

TEST(ArenaTest, KnowsWhatItHasGivenOut) {
  const auto arena = make_arena();
  std::byte* const memory = take(*arena, 2 * kPage);
  EXPECT_EQ(arena->offset_of(memory + 1, 2 * kPage - 1), 1U);
  const std::vector<std::byte> elsewhere(kPage);
  EXPECT_FALSE(arena->offset_of(elsewhere.data(), elsewhere.size()));
  EXPECT_FALSE(arena->offset_of(memory, ~std::size_t{0}));
}

TEST(ArenaViewTest, ReadsWhereItLiesAsItGrows) {
  const auto arena = make_arena();
  const auto view = view_of(*arena);
  std::byte* const first = take(*arena, kPage);
  std::memset(first, 1, kPage);
  ASSERT_TRUE(view->reach(*arena->offset_of(first, kPage), kPage).ok());
  EXPECT_TRUE(all_are(view->data() + *arena->offset_of(first, kPage), kPage, std::byte{1}));

  std::byte* const second = take(*arena, 5 * kHugePage);
  std::memset(second, 2, 5 * kHugePage);
  ASSERT_TRUE(view->reach(*arena->offset_of(second, 1), 5 * kHugePage).ok());
  EXPECT_TRUE(all_are(view->data() + *arena->offset_of(second, 1), 5 * kHugePage, std::byte{2}));
  std::memset(first, 3, kPage);
  EXPECT_TRUE(all_are(view->data() + *arena->offset_of(first, kPage), kPage, std::byte{3}));

  // Memory that the owner has freed reads as zeros.
  arena->free(second, 5 * kHugePage);
  EXPECT_TRUE(all_are(view->data() + *arena->offset_of(second, 1), kPage, std::byte{0}));
}

TEST(ArenaTest, AChildThatFreesTakesNothingFromItsParent) {
  const auto arena = make_arena();
  std::byte* const memory = take(*arena, kPage);
  std::fill_n(memory, kPage, std::byte{7});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    arena->free(memory, kPage);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(all_are(memory, kPage, std::byte{7}));
}

TEST(ArenaViewTest, RefusesWhatThePeerDoesNotHave) {
  const auto arena = make_arena();
  take(*arena, kPage);
  const auto view = view_of(*arena);
  EXPECT_TRUE(view->reach(0, kPage).ok());
  for (const auto& [offset, bytes] : {std::pair<std::uint64_t, std::uint64_t>{0, kPage + 1},
                                      {kPage, 1},
                                      {1, ~std::uint64_t{0}},
                                      {~std::uint64_t{0}, 2}}) {
    const Status status = view->reach(offset, bytes);
    EXPECT_EQ(status.code(), Code::kProtocol) << offset << " " << bytes;
  }
}

TEST(ArenaViewTest, RefusesAFileThatCouldShrink) {
  UniqueFd file(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(file.get(), kPage), 0);
  const auto view = ArenaView::open(std::move(file));
  EXPECT_EQ(view.status().code(), Code::kProtocol);
  EXPECT_NE(view.status().message().find("could shrink"), std::string::npos);
}

}  // namespace
}  // namespace elastic::transport
