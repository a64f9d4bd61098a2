#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <errno.h>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

#include "integration/programs/result_hash.hpp"

/// A program that checks collectives as a worker of a job: expectations that end the process where
/// they are not met, and the frame around the checks.
namespace elastic::testing {

inline constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                                    ReduceOp::kMax, ReduceOp::kProduct};

/// Calls `check` for elements of each of these types, as `check.template operator()<T>()`.
template <typename Check>
void for_each_dtype(const Check& check) {
  const auto of = [&]<typename... Types>() { (check.template operator()<Types>(), ...); };
  of.template operator()<float16, bfloat16, float, double, std::int8_t, std::uint8_t, std::int32_t,
                         std::int64_t>();
}

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::_Exit(3);
}

inline void require(bool condition, const std::string& what) {
  if (!condition) fail(what);
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// `call` must fail with `code`, and its message, which is returned, must have all of `words` in
/// it.
inline std::string must_fail(const std::string& what, ErrorCode code,
                             const std::vector<std::string>& words,
                             const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == code, what + ": error of kind " +
                                      std::to_string(static_cast<int>(error.code())) + ", not " +
                                      std::to_string(static_cast<int>(code)) + ": " + message);
    for (const std::string& word : words) {
      require(message.find(word) != std::string::npos,
              what + ": '" + word + "' is missing in: " + message);
    }
    return message;
  }
  fail(what + ": no error");
}

inline void must_fail(ErrorCode code, const std::vector<std::string>& words,
                      const std::function<void()>& call) {
  must_fail("a wrong call", code, words, call);
}

/// Tells the test in <folder>/<rank> that all checks of this rank have passed, with the hash of its
/// results.
inline void write_result(const std::string& folder, const ResultHash& hash) {
  std::ofstream(folder + "/" + std::to_string(elastic::rank()))
      << hash.value() << " end" << std::endl;
}

/// The main function of such a program: calls `run` in a job.
template <typename Run>
int as_a_worker(const Run& run) {
  try {
    elastic::init();
    run();
    elastic::shutdown();
    return 0;
  } catch (const std::exception& error) {
    fail(std::string("error at the caller: ") + error.what());
  }
}

}  // namespace elastic::testing
