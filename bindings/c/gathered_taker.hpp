#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <elastic/context.hpp>

#include "elastic.h"
#include "guard.hpp"

namespace elastic::c {

/// A program's function that takes gathered blocks. The call is complete on all members when it is
/// called, so the code that it returns is between this program and its caller: it is raised after
/// the call.
class GatheredTaker {
 public:
  /// \throws Error kInvalidArgument: there is no function.
  GatheredTaker(elastic_take_gathered take, void* user, const char* call)
      : take_(take), user_(user), what_(std::string(call) + "'s function") {
    require(reinterpret_cast<const void*>(take), call, "take");
    forget_exception();
  }
  GatheredTaker(const GatheredTaker&) = delete;
  GatheredTaker& operator=(const GatheredTaker&) = delete;

  /// For a call that is complete before this ends.
  Context::TakeGathered function() {
    return [this](std::span<const std::byte> values, std::vector<std::size_t> counts) {
      code_ = take_(user_, values.data(), values.size(), counts.data(), counts.size());
    };
  }
  /// Throws for the code that the function has returned.
  void raise() const { raise_code(code_, what_.c_str()); }

 private:
  elastic_take_gathered take_;
  void* user_;
  std::string what_;
  elastic_code code_ = ELASTIC_OK;
};

}  // namespace elastic::c
