#include "examples/digits/report.hpp"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <unistd.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "examples/digits/outcome_name.hpp"

namespace digits {
namespace {

std::ofstream create(const std::string& folder, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::ofstream file(path);
  if (!file) throw std::runtime_error(path.string() + " cannot be written; does the folder exist?");
  return file;
}

std::string own_name(const std::string& kind, const std::string& ending) {
  return kind + "-" + std::to_string(::getpid()) + ending;
}

std::string hash_of(const Parameters& weights) {
  const auto values = weights.values();
  char text[17] = {};
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(values.data(), values.size_bytes())));
  return text;
}

}  // namespace

std::string report_line(const Trainer& trainer, elastic::RunOutcome outcome, int rank) {
  const Usage& usage = trainer.usage();
  nlohmann::ordered_json report = {
      {"outcome", name_of(outcome)},
      {"rank", rank},
      {"pid", ::getpid()},
      {"steps", trainer.steps()},
      {"epochs", usage.epochs},
      {"samples_in_epoch", trainer.samples_in_epoch()},
      {"samples_used_once", usage.used},
      {"samples_missed", usage.missed},
      {"samples_used_twice", usage.twice},
      {"loss", trainer.epoch_loss()},
      {"test_accuracy", accuracy(trainer.weights(), trainer.test_samples())},
      {"parameter_hash", hash_of(trainer.weights())},
  };
  if (trainer.traffic().sent > 0) {
    report["gradient_bytes_sent"] = trainer.traffic().sent;
    report["gradient_bytes_uncompressed"] = trainer.traffic().sent_uncompressed;
    report["residual_norm"] = trainer.traffic().residual_norm;
  }
  return report.dump();
}

void write_report(const std::string& folder, const std::string& line) {
  if (folder.empty()) {
    std::cout << line << std::endl;
    return;
  }
  std::ofstream file = create(folder, own_name("report", ".json"));
  file << line << '\n';
  file.close();
  if (!file) throw std::runtime_error("the report in " + folder + " could not be written");
}

void write_weights(const std::string& file, const Parameters& weights) {
  if (file.empty()) return;
  std::ofstream out(file, std::ios::binary);
  const auto bytes = std::as_bytes(weights.values());
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("the weights could not be written to " + file);
}

Trace::Trace(const std::string& folder) : file_(create(folder, own_name("trace", ".jsonl"))) {}

void Trace::add(const StepInfo& info, const Parameters& weights) {
  const nlohmann::ordered_json line = {
      {"step", info.step},       {"generation", info.generation},
      {"workers", info.workers}, {"batch", info.samples},
      {"gamma", info.gamma},     {"rate", info.rate},
      {"loss", info.loss},       {"skipped", info.skipped},
      {"at_ns", info.at_ns},     {"parameter_hash", hash_of(weights)},
  };
  file_ << line.dump() << std::endl;
}

}  // namespace digits
