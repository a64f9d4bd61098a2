#include "base/config/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/backend_names.hpp"
#include "elastic/compression.hpp"

namespace elastic {

namespace {

/// Sets one field from text; returns what is allowed if the text is not.
using Setter = std::function<std::string(Options&, const std::string&)>;

struct Variable {
  std::string name;
  Setter set;
};

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Setter text(std::string Options::*field) {
  return [field](Options& options, const std::string& value) {
    options.*field = value;
    return std::string();
  };
}

/// A list for messages.
template <typename Names, typename NameOf>
std::string one_of(const Names& names, NameOf name_of) {
  std::string list = "one of";
  for (const auto& each : names) list += " " + std::string(name_of(each));
  return list;
}

Setter backend() {
  return [](Options& options, const std::string& value) {
    if (std::find(kBackendNames.begin(), kBackendNames.end(), value) == kBackendNames.end()) {
      return one_of(kBackendNames, [](const auto& name) { return name; });
    }
    options.backend = value;
    return std::string();
  };
}

template <typename T, std::size_t kCount>
Setter choice(T Options::*field, const std::array<Named<T>, kCount>& choices) {
  return [=](Options& options, const std::string& value) {
    const std::optional<T> chosen = find_named(choices, value);
    if (!chosen) return one_of(choices, [](const Named<T>& each) { return each.name; });
    options.*field = *chosen;
    return std::string();
  };
}

/// The name of `value`; its number where it has none.
template <typename T, std::size_t kCount>
std::string text_of(T value, const std::array<Named<T>, kCount>& choices) {
  const std::string_view name = name_in(choices, value);
  return name.empty() ? std::to_string(static_cast<int>(value)) : std::string(name);
}

Setter compression(std::string Options::*field) {
  return [field](Options& options, const std::string& value) {
    if (!find_compression(value)) return std::string(kCompressionForms);
    options.*field = value;
    return std::string();
  };
}

Setter number(int Options::*field, int least, int most) {
  return [=](Options& options, const std::string& value) {
    int parsed = 0;
    if (!parse(value, parsed) || parsed < least || parsed > most) {
      return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    }
    options.*field = parsed;
    return std::string();
  };
}

Setter flag(bool Options::*field) {
  return [field](Options& options, const std::string& value) {
    if (value != "0" && value != "1") return std::string("0 or 1");
    options.*field = value == "1";
    return std::string();
  };
}

Setter bytes(std::size_t Options::*field, std::size_t least, std::size_t most, std::size_t unit) {
  return [=](Options& options, const std::string& value) {
    const std::string allowed = "a number of bytes from " + std::to_string(least) + " to " +
                                std::to_string(most) + ", such as 65536, 64K or 1M" +
                                (unit > 1 ? ", a multiple of " + std::to_string(unit) : "");
    if (value.empty()) return allowed;
    const std::string_view suffixes = "KMG";
    const auto suffix = suffixes.find(value.back());
    const unsigned shift =
        suffix == std::string_view::npos ? 0U : 10U * static_cast<unsigned>(suffix + 1);
    std::size_t parsed = 0;
    if (!parse(std::string_view(value).substr(0, value.size() - (shift > 0 ? 1 : 0)), parsed) ||
        parsed > (std::numeric_limits<std::size_t>::max() >> shift)) {
      return allowed;
    }
    parsed <<= shift;
    if (parsed < least || parsed > most || parsed % unit != 0) return allowed;
    options.*field = parsed;
    return std::string();
  };
}

Setter milliseconds(std::chrono::milliseconds Options::*field, std::int64_t least = 1) {
  return [=](Options& options, const std::string& value) {
    std::int64_t parsed = 0;
    if (!parse(value, parsed) || parsed < least || parsed > 86400000) {
      return "milliseconds from " + std::to_string(least) + " to 86400000 (a day)";
    }
    options.*field = std::chrono::milliseconds(parsed);
    return std::string();
  };
}

const std::vector<Variable>& variables() {
  constexpr std::size_t kMost = std::size_t{1} << 40;
  static const std::vector<Variable> kVariables = {
      {"ELASTIC_RENDEZVOUS", text(&Options::rendezvous)},
      {"ELASTIC_JOB", text(&Options::job)},
      {"ELASTIC_SECRET_FILE", text(&Options::secret_file)},
      {"ELASTIC_SECRET_FD", number(&Options::secret_fd, -1, 1 << 20)},
      {"ELASTIC_ENCRYPT", flag(&Options::encrypt)},
      {"ELASTIC_SLOT", number(&Options::slot, -1, 1 << 20)},
      {"ELASTIC_LABEL", text(&Options::label)},
      {"ELASTIC_RESTART", number(&Options::restart, 0, 1 << 30)},
      {"ELASTIC_BACKEND", backend()},
      {"ELASTIC_BACKEND_PATH", text(&Options::backend_path)},
      {"ELASTIC_NCCL_LIBRARY", text(&Options::nccl_library)},
      {"ELASTIC_NCCL_MEANWHILE", choice(&Options::nccl_meanwhile, kNcclMeanwhiles)},
      {"ELASTIC_TRANSPORT", choice(&Options::transport, kTransports)},
      {"ELASTIC_BIND", text(&Options::bind)},
      {"ELASTIC_TCP_STREAMS", number(&Options::tcp_streams, 0, 64)},
      {"ELASTIC_TCP_CONGESTION", text(&Options::tcp_congestion)},
      {"ELASTIC_SHM_RING_BYTES", bytes(&Options::shm_ring_bytes, 65536, kMost, 65536)},
      {"ELASTIC_ALGORITHM", choice(&Options::algorithm, kAlgorithms)},
      {"ELASTIC_SEGMENT_BYTES", bytes(&Options::segment_bytes, 4096, 1U << 26, 64)},
      {"ELASTIC_BUCKET_BYTES", bytes(&Options::bucket_bytes, 0, kMost, 1)},
      {"ELASTIC_INIT_TIMEOUT_MS", milliseconds(&Options::init_timeout)},
      {"ELASTIC_VIEW_TIMEOUT_MS", milliseconds(&Options::view_timeout)},
      {"ELASTIC_STALL_WARNING_MS", milliseconds(&Options::stall_warning)},
      {"ELASTIC_STALL_TIMEOUT_MS", milliseconds(&Options::stall_timeout, 0)},
      {"ELASTIC_COMPARE_STEPS", number(&Options::compare_steps, 0, 1 << 30)},
      {"ELASTIC_NON_FINITE", choice(&Options::non_finite, kNonFinites)},
      {"ELASTIC_REJOIN", flag(&Options::rejoin)},
      {"ELASTIC_RESIZE_POLICY", choice(&Options::resize_policy, kResizePolicies)},
      {"ELASTIC_COMPRESSION", compression(&Options::compression)},
      {"ELASTIC_LOG_LEVEL", choice(&Options::log_level, kLogLevels)},
  };
  return kVariables;
}

/// Levenshtein distance: how many letters two names differ in.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

Status unknown(const std::string& name) {
  const auto& known = variables();
  // A name that was cut short before the names that are spelled otherwise.
  const auto unlikeness = [&](const Variable& one) {
    return std::pair(!one.name.starts_with(name), distance(name, one.name));
  };
  const auto nearest =
      std::min_element(known.begin(), known.end(),
                       [&](const auto& a, const auto& b) { return unlikeness(a) < unlikeness(b); });
  return Status(Code::kInvalidArgument, "environment variable " + name +
                                            " is not known; did you mean " + nearest->name +
                                            "? (unset it, or see elastic/options.hpp)");
}

/// Checks options that code has set by the same rules as those of the environment.
Status check(const Options& given) {
  Options scratch;
  const auto rule = [&](const char* variable, const char* field,
                        const std::string& value) -> Status {
    for (const Variable& one : variables()) {
      if (one.name != variable) continue;
      if (const std::string allowed = one.set(scratch, value); !allowed.empty()) {
        return Status(Code::kInvalidArgument,
                      std::string("Options::") + field + " is '" + value + "': must be " + allowed);
      }
    }
    return {};
  };
  for (const Status& status : {
           rule("ELASTIC_BACKEND", "backend", given.backend),
           rule("ELASTIC_NCCL_MEANWHILE", "nccl_meanwhile",
                text_of(given.nccl_meanwhile, kNcclMeanwhiles)),
           rule("ELASTIC_TRANSPORT", "transport", text_of(given.transport, kTransports)),
           rule("ELASTIC_TCP_STREAMS", "tcp_streams", std::to_string(given.tcp_streams)),
           rule("ELASTIC_SHM_RING_BYTES", "shm_ring_bytes", std::to_string(given.shm_ring_bytes)),
           rule("ELASTIC_ALGORITHM", "algorithm", text_of(given.algorithm, kAlgorithms)),
           rule("ELASTIC_SEGMENT_BYTES", "segment_bytes", std::to_string(given.segment_bytes)),
           rule("ELASTIC_BUCKET_BYTES", "bucket_bytes", std::to_string(given.bucket_bytes)),
           rule("ELASTIC_INIT_TIMEOUT_MS", "init_timeout",
                std::to_string(given.init_timeout.count())),
           rule("ELASTIC_VIEW_TIMEOUT_MS", "view_timeout",
                std::to_string(given.view_timeout.count())),
           rule("ELASTIC_STALL_WARNING_MS", "stall_warning",
                std::to_string(given.stall_warning.count())),
           rule("ELASTIC_STALL_TIMEOUT_MS", "stall_timeout",
                std::to_string(given.stall_timeout.count())),
           rule("ELASTIC_RESIZE_POLICY", "resize_policy",
                text_of(given.resize_policy, kResizePolicies)),
           rule("ELASTIC_COMPARE_STEPS", "compare_steps", std::to_string(given.compare_steps)),
           rule("ELASTIC_NON_FINITE", "non_finite", text_of(given.non_finite, kNonFinites)),
           rule("ELASTIC_COMPRESSION", "compression", given.compression),
           rule("ELASTIC_LOG_LEVEL", "log_level", text_of(given.log_level, kLogLevels)),
       }) {
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Result<Options> resolve(Options options, const EnvironmentMap& environment) {
  for (const auto& entry : environment) {
    const std::string& name = entry.first;
    const std::string& value = entry.second;
    if (!name.starts_with("ELASTIC_")) continue;
    const auto& known = variables();
    const auto variable = std::find_if(known.begin(), known.end(),
                                       [&](const Variable& one) { return one.name == name; });
    if (variable == known.end()) return unknown(name);
    if (const std::string allowed = variable->set(options, value); !allowed.empty()) {
      return Status(Code::kInvalidArgument,
                    "environment variable " + name + " is '" + value + "': must be " + allowed);
    }
  }
  if (Status status = check(options); !status.ok()) return status;
  return options;
}

}  // namespace elastic
