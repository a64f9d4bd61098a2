#pragma once

#include "base/config/environment.hpp"
#include "base/config/rank_variables.hpp"
#include "base/status.hpp"

namespace elastic {

/// Reads whole numbers from variables until the first that is wrong, which it remembers.
class NumberReader {
 public:
  explicit NumberReader(const EnvironmentMap& environment) : environment_(environment) {}

  /// The first of `names` that is set; `otherwise` if none is.
  int get(const RankVariables::Names& names, int least, int otherwise);
  /// kInvalidArgument names the first variable that is wrong.
  const Status& status() const { return status_; }

 private:
  const EnvironmentMap& environment_;
  Status status_;
};

}  // namespace elastic
