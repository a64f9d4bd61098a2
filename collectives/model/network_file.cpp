#include "collectives/model/network_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace elastic::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
constexpr double kKib = 1024;

struct Field {
  const char* section;
  const char* name;
  bool required = false;
  double least = 0;
  double most = 1e9;
};
constexpr double kPositive = 1e-9;
constexpr std::array kFields{
    Field{.section = "line", .name = "gbit_per_second", .required = true, .least = kPositive},
    Field{.section = "line", .name = "payload", .required = true, .least = 0.01, .most = 1},
    Field{.section = "line", .name = "latency_us", .required = true},
    Field{.section = "line", .name = "flow_gbit_per_second", .least = kPositive},
    Field{.section = "line", .name = "burst_kib"},
    Field{.section = "line", .name = "burst_gbit_per_second", .least = kPositive},
    Field{.section = "host", .name = "latency_us", .required = true},
    Field{.section = "host", .name = "cores", .least = kPositive},
    Field{.section = "host", .name = "turn_us"},
    Field{.section = "host", .name = "memory_gb_per_second", .least = kPositive},
    Field{.section = "processor", .name = "threads", .least = 1},
    Field{.section = "processor", .name = "message_us"},
    Field{.section = "processor", .name = "shared_message_us"},
    Field{.section = "processor", .name = "send_gb_per_second", .least = kPositive},
    Field{.section = "processor", .name = "receive_gb_per_second", .least = kPositive},
    Field{.section = "processor", .name = "copy_gb_per_second", .least = kPositive},
    Field{.section = "processor", .name = "reduce_gb_per_second", .least = kPositive},
};
constexpr std::array kSections{"about", "sources", "hosts_share_cores",
                               "line",  "host",    "processor"};

Status invalid(const std::string& message) {
  return Status(Code::kInvalidArgument, message);
}

template <typename Names>
std::string list_of(const Names& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> fields_of(std::string_view section) {
  std::vector<std::string> names;
  for (const Field& field : kFields) {
    if (field.section == section) names.emplace_back(field.name);
  }
  return names;
}

/// A network file while it is read. Its errors name the line that has to be changed.
class File {
 public:
  File(const std::string& text, std::string name) : text_(text), name_(std::move(name)) {}

  Status parse() {
    std::string twice;
    std::vector<std::set<std::string>> names;  // of the objects that are open
    const auto note = [&](int /*depth*/, json::parse_event_t event, json& its) {
      if (event == json::parse_event_t::object_start) names.emplace_back();
      if (event == json::parse_event_t::object_end) names.pop_back();
      if (event == json::parse_event_t::key &&
          !names.back().insert(its.get<std::string>()).second) {
        twice = its.get<std::string>();
      }
      return true;
    };
    try {
      content_ = json::parse(text_, note, true, true);
    } catch (const json::parse_error& error) {
      const auto at = std::min(text_.size(), error.byte > 0 ? error.byte - 1 : 0);
      return wrong(at, "is no JSON here: check the commas, quotes and brackets around this place");
    } catch (const json::exception& error) {
      return wrong(0, fmt::format("cannot be taken: {}", error.what()));
    }
    if (!twice.empty()) {
      return wrong(0, fmt::format("has \"{}\" twice in one object", twice));
    }
    if (!content_.is_object()) return wrong(0, "has to be an object, in { and }");
    return check_names();
  }
  Status check_text(const char* field) const {
    const auto found = content_.find(field);
    if (found == content_.end()) return wrong(0, fmt::format("lacks the field \"{}\"", field));
    const bool texts = found->is_array() && !found->empty() &&
                       std::all_of(found->begin(), found->end(),
                                   [](const json& each) { return each.is_string(); });
    if (found->is_string() || texts) return {};
    return wrong(place(field), fmt::format("\"{}\" has to be a text, or a list of texts", field));
  }
  std::string text(const char* field) const { return content_.at(field).get<std::string>(); }
  Result<bool> flag(const char* field) const {
    const auto found = content_.find(field);
    if (found == content_.end()) return false;
    if (found->is_boolean()) return found->get<bool>();
    return wrong(place(field), fmt::format("\"{}\" has to be true or false", field));
  }
  /// The value of a field that was checked; `otherwise` if the file lacks it.
  double number(const char* section, const char* field, double otherwise) const {
    const auto found = content_.find(section);
    return found == content_.end() ? otherwise : found->value(field, otherwise);
  }
  Status check(const Field& field) const {
    const auto section = content_.find(field.section);
    const bool missing = section == content_.end() || !section->contains(field.name);
    if (missing) {
      if (!field.required) return {};
      return wrong(place(field.section),
                   fmt::format("lacks the field \"{}\" of \"{}\"", field.name, field.section));
    }
    const json& value = section->at(field.name);
    if (value.is_number() && value >= field.least && value <= field.most) return {};
    return wrong(place(field.section, field.name),
                 fmt::format("\"{}\" of \"{}\" is {}: it has to be a number {}", field.name,
                             field.section, value.dump(), range(field)));
  }

 private:
  static std::string range(const Field& field) {
    return fmt::format("from {} to {}", field.least, field.most);
  }
  Status check_names() const {
    for (const auto& [name, value] : content_.items()) {
      if (std::ranges::find(kSections, name) == kSections.end()) {
        return wrong(place(name.c_str()),
                     fmt::format("\"{}\" is no field; these are: {}", name, list_of(kSections)));
      }
      const auto known = fields_of(name);
      if (known.empty()) continue;
      if (!value.is_object()) {
        return wrong(place(name.c_str()), fmt::format("\"{}\" has to be an object, in {{ and }}, "
                                                      "with some of: {}",
                                                      name, list_of(known)));
      }
      for (const auto& [field, ignored] : value.items()) {
        if (std::ranges::find(known, field) != known.end()) continue;
        return wrong(place(name.c_str(), field.c_str()),
                     fmt::format("\"{}\" is no field of \"{}\"; these are: {}", field, name,
                                 list_of(known)));
      }
    }
    return {};
  }
  /// Of a field's name in the text; of its section's if that lacks the field; 0 if there is
  /// neither.
  std::size_t place(const char* section, const char* field = nullptr) const {
    const std::size_t begin = text_.find(fmt::format("\"{}\"", section));
    if (begin == std::string::npos) return 0;
    const std::size_t found =
        field == nullptr ? begin : text_.find(fmt::format("\"{}\"", field), begin);
    return found == std::string::npos ? begin : found;
  }
  Status wrong(std::size_t place, const std::string& what) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(place);
    return invalid(fmt::format("{}:{}: {}", name_, 1 + std::count(text_.begin(), end, '\n'), what));
  }

  const std::string& text_;
  std::string name_;
  json content_;
};

Network network_of(const File& file) {
  const auto seconds = [&](const char* section, const char* field) {
    return file.number(section, field, 0) * kMicro;
  };
  const auto per_byte = [&](const char* field) {
    return 1 / (file.number("processor", field, kUnlimited) * kGiga);
  };
  const double payload = file.number("line", "payload", 1);
  const auto line_rate = [&](const char* field) {
    return file.number("line", field, kUnlimited) * kGiga / 8 * payload;
  };
  Network network;
  network.about = file.text("about");
  network.line = {.rate = line_rate("gbit_per_second"),
                  .flow_rate = line_rate("flow_gbit_per_second"),
                  .latency = seconds("line", "latency_us"),
                  .burst = file.number("line", "burst_kib", 0) * kKib,
                  .burst_rate = line_rate("burst_gbit_per_second")};
  network.host = {.cores = file.number("host", "cores", kUnlimited),
                  .memory_rate = file.number("host", "memory_gb_per_second", kUnlimited) * kGiga,
                  .latency = seconds("host", "latency_us"),
                  .turn = seconds("host", "turn_us")};
  network.processor = {.threads = file.number("processor", "threads", 0),
                       .message = seconds("processor", "message_us"),
                       .shared_message = seconds("processor", "shared_message_us"),
                       .send = per_byte("send_gb_per_second"),
                       .receive = per_byte("receive_gb_per_second"),
                       .copy = per_byte("copy_gb_per_second"),
                       .reduce = per_byte("reduce_gb_per_second")};
  return network;
}

}  // namespace

Result<Network> parse_network(const std::string& text, const std::string& file) {
  File content(text, file);
  if (Status status = content.parse(); !status.ok()) return status;
  for (const char* field : {"about", "sources"}) {
    if (Status status = content.check_text(field); !status.ok()) return status;
  }
  for (const Field& field : kFields) {
    if (Status status = content.check(field); !status.ok()) return status;
  }
  const Result<bool> shared = content.flag("hosts_share_cores");
  if (!shared.ok()) return shared.status();
  Network network = network_of(content);
  network.name = fs::path(file).stem();
  network.hosts_share_cores = shared.value();
  return network;
}

std::vector<std::string> networks_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Network> read_network(const std::string& name_or_path, const std::string& folder) {
  const bool is_path =
      name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json");
  const fs::path path =
      is_path ? fs::path(name_or_path) : fs::path(folder) / (name_or_path + ".json");
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.good() && !std::filesystem::is_directory(path))
    return parse_network(text.str(), path.string());
  if (is_path) return invalid(path.string() + ": cannot be read: give the path of a network file");
  const auto known = networks_in(folder);
  if (known.empty()) {
    return invalid(
        fmt::format("the network '{}' is looked for in {}, which has no network files: "
                    "give the path of one",
                    name_or_path, folder));
  }
  return invalid(fmt::format("'{}' is no network; known are {}, in {}; or give the path of a file",
                             name_or_path, list_of(known), folder));
}

}  // namespace elastic::model
