#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

inline constexpr std::size_t kPixels = 64;
inline constexpr int kClasses = 10;

/// One image, with pixels from 0 to 1, and the digit that it shows.
struct Sample {
  std::array<float, kPixels> pixels{};
  int label = 0;
};

struct Dataset {
  std::vector<Sample> training;
  std::vector<Sample> test;
};

inline constexpr std::size_t kTestSamples = 360;

/// The data file cannot be read or is not what it should be; the message names file and line.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads comma-separated lines of 64 pixels (0 to 16) and a digit, compressed with gzip or not.
/// Throws DataError.
std::vector<Sample> read_samples(const std::string& file);

/// Shuffles, always the same way, and takes the first kTestSamples for the test set. Throws
/// DataError where there are not more than that.
Dataset split(std::vector<Sample> samples);

}  // namespace digits
