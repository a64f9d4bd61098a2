#include "rendezvous/launcher/job_file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/secret.hpp"
#include "integration/job.hpp"

namespace elastic::launcher {
namespace {

constexpr std::uint8_t kMask = 0x5a;
/// The end of a secret's text: the allocator writes into the beginning of what is freed.
using Masked = std::array<std::uint8_t, 32>;

Masked masked_text(const Secret& secret) {
  const SecretText text(to_hex(secret));
  Masked masked{};
  for (std::size_t at = 0; at < masked.size(); ++at) {
    const char digit = text.text()[text.text().size() - masked.size() + at];
    masked[at] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(digit) ^ kMask);
  }
  return masked;
}

std::size_t count_in(const std::uint8_t* first, const std::uint8_t* last, const Masked& text) {
  std::size_t found = 0;
  for (; last - first >= static_cast<std::ptrdiff_t>(text.size()); ++first) {
    std::size_t same = 0;
    while (same < text.size() && (first[same] ^ kMask) == text[same]) ++same;
    found += same == text.size() ? 1U : 0U;
  }
  return found;
}

/// Counts the text in this process's writable memory, without the stacks.
std::size_t count_in_memory(const Masked& text) {
  std::size_t found = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    char dash = 0;
    std::string rights;
    std::istringstream(line) >> std::hex >> first >> dash >> last >> rights;
    if (rights != "rw-p" || line.find("[stack]") != std::string::npos) continue;
    found += count_in(reinterpret_cast<const std::uint8_t*>(first),
                      reinterpret_cast<const std::uint8_t*>(last), text);
  }
  return found;
}

TEST(JobFile, LeavesNoTextOfTheSecretInMemory) {
  const testing::ScratchFolder scratch;
  const std::string folder = scratch.path().string();
  const Secret secret = random_secret();
  const Masked text = masked_text(secret);
  ASSERT_EQ(count_in_memory(text), 0U);
  JobRecord record;
  record.job = "mine";
  record.address = "127.0.0.1:1";
  record.secret = secret;
  record.owner = ProcessIdentity::of_this_process();
  ASSERT_TRUE(write_job_record(folder, record).ok());
  EXPECT_EQ(count_in_memory(text), 0U) << "after writing";
  const auto found = find_job_record(folder, "mine");
  ASSERT_TRUE(found);
  EXPECT_EQ(count_in_memory(text), 0U) << "after reading";
  EXPECT_TRUE(found->secret == secret);
  EXPECT_EQ(found->address, record.address);
  EXPECT_EQ(count_in_memory(text), 0U);
}

}  // namespace
}  // namespace elastic::launcher
