#include "examples/digits/dataset.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <zlib.h>

#include "examples/digits/random.hpp"

namespace digits {
namespace {

constexpr float kBrightest = 16;
constexpr std::uint64_t kSplitSeed = 1797;
constexpr int kLineBytes = 512;  // 65 numbers of two digits and their commas need 195

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw DataError(file + ": " + message);
}

File open(const std::string& file) {
  errno = 0;
  File opened(gzopen(file.c_str(), "rb"));
  if (!opened) fail(file, std::string("cannot be opened: ") + std::strerror(errno));
  return opened;
}

/// Takes a whole number from 0 to `greatest` off the front of `line`, and the comma after it.
int take_number(std::string_view& line, int greatest, const std::string& where) {
  int number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || number < 0 || number > greatest) {
    throw DataError(where + ": expected a whole number from 0 to " + std::to_string(greatest) +
                    " at '" + std::string(line.substr(0, 12)) + "'");
  }
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (!line.empty() && line.front() == ',') line.remove_prefix(1);
  return number;
}

Sample parse(std::string_view line, const std::string& where) {
  Sample sample;
  for (float& pixel : sample.pixels) {
    pixel = static_cast<float>(take_number(line, static_cast<int>(kBrightest), where)) / kBrightest;
  }
  sample.label = take_number(line, kClasses - 1, where);
  if (!line.empty()) throw DataError(where + ": more than 64 pixels and a digit");
  return sample;
}

}  // namespace

std::vector<Sample> read_samples(const std::string& file) {
  const File opened = open(file);
  std::vector<Sample> samples;
  std::array<char, kLineBytes> buffer{};
  while (gzgets(opened.get(), buffer.data(), kLineBytes) != nullptr) {
    std::string_view line(buffer.data());
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    samples.push_back(parse(line, file + ":" + std::to_string(samples.size() + 1)));
  }
  int error = Z_OK;
  const char* reason = gzerror(opened.get(), &error);
  if (error != Z_OK && error != Z_STREAM_END) {
    fail(file, std::string("cannot be read: ") + reason);
  }
  if (samples.empty()) fail(file, "has no samples");
  return samples;
}

Dataset split(std::vector<Sample> samples) {
  if (samples.size() <= kTestSamples) {
    throw DataError("there are " + std::to_string(samples.size()) + " samples; more than " +
                    std::to_string(kTestSamples) + " are needed, since so many go to the test set");
  }
  Random random(kSplitSeed);
  for (std::size_t left = samples.size(); left > 1; --left) {
    std::swap(samples[left - 1], samples[random.next() % left]);
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(kTestSamples);
  return {{middle, samples.end()}, {samples.begin(), middle}};
}

}  // namespace digits
