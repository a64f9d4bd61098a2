#include "examples/dynamic_sgd/record.hpp"

#include <iostream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace dynamic_sgd {

void Record::add(const StepInfo& info, const Evaluation& held_out) {
  const nlohmann::ordered_json line = {
      {"step", info.step},
      {"workers", info.workers},
      {"samples", info.samples},
      {"gamma", info.gamma},
      {"rate", info.rate},
      {"loss", info.loss},
      {"held_out_loss", held_out.loss},
      {"accuracy", held_out.accuracy},
  };
  if (!file_.empty() && !lines_.is_open()) lines_.open(file_);
  std::ostream& out = file_.empty() ? std::cout : lines_;
  out << line.dump() << std::endl;
  if (!out) {
    throw std::runtime_error((file_.empty() ? "standard output" : file_) +
                             " cannot be written; does the folder exist, and has it space?");
  }
}

}  // namespace dynamic_sgd
