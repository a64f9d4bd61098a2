#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <elastic/elastic.hpp>

#include "cuda/driver_calls.hpp"

/// Contributions and expected results of programs that check collectives of tensors on a device.
namespace elastic::testing {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "device check: %s\n", what.c_str());
  std::_Exit(3);
}

inline void require(bool condition, const std::string& what) {
  if (!condition) fail(what);
}

/// `call` must fail with `code`, and its message must have all of `words` in it.
inline void must_fail(ErrorCode code, const std::vector<std::string>& words,
                      const std::function<void()>& call) {
  try {
    call();
  } catch (const elastic::Error& error) {
    const std::string message = error.what();
    require(error.code() == code, "not the right kind of error: " + message);
    for (const std::string& word : words) {
      require(message.find(word) != std::string::npos, "'" + word + "' is missing in: " + message);
    }
    return;
  }
  fail("no error that says '" + words.front() + "'");
}

/// Small whole numbers only: the order in which they are reduced does not matter.
inline bool exact = false;

template <typename T>
std::vector<T> contribution(int rank, std::size_t count) {
  std::vector<T> values(count);
  std::mt19937 random(static_cast<unsigned>(rank) * 77 + static_cast<unsigned>(count));
  for (T& value : values) {
    const auto whole = static_cast<int>(random() % 200);
    if (exact) {
      value = static_cast<T>(static_cast<float>(whole % 4));
      continue;
    }
    if constexpr (std::is_class_v<T>) {
      value = T(static_cast<float>(whole - 100) / 7);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(whole / 50);
    } else {
      value = static_cast<T>(whole - 100) / 7;
    }
  }
  return values;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The main function of such a program: calls `run` with the number of the device that this rank
/// uses. Ends with 77 if there is none.
template <typename Run>
int on_a_device(const char* program, const Run& run) {
  const int devices = Gpu::devices();
  if (devices == 0) {
    std::fprintf(stderr, "%s: no CUDA device\n", program);
    return 77;
  }
  try {
    elastic::init();
    run(elastic::local_rank() % devices);
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}

}  // namespace elastic::testing
