#pragma once

#include <cstdint>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "fault/programs/arguments.hpp"
#include "fault/programs/death.hpp"

namespace elastic::fault {

/// Part of the state: tells the test when it is saved for a joiner and when it is loaded.
class Witness {
 public:
  Witness(bool joiner, bool die_loading) : joiner_(joiner), die_loading_(die_loading) {}
  std::vector<std::byte> save() const;
  void load(std::span<const std::byte> bytes);

 private:
  bool joiner_;
  bool die_loading_;
};

/// A training with a state, a learning rate and a commit in each step.
class Training {
 public:
  Training(const Arguments& arguments, int slot);
  void run();

 private:
  static constexpr std::size_t kTrained = 1000;  ///< weights that change

  void body();
  void step();
  std::uint64_t hash() const;
  void check_untrained() const;

  const Arguments arguments_;
  const int slot_;
  Death death_;
  const bool joiner_;
  std::vector<double> weights_;
  std::uint64_t steps_ = 0;
  LearningRate learning_rate_;
  Witness witness_;
  State state_;
};

}  // namespace elastic::fault
