#include "rendezvous/protocol/codec.hpp"

#include <array>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "rendezvous/protocol/compressed_text.hpp"
#include "rendezvous/protocol/fields.hpp"

namespace elastic::rendezvous {
namespace {

using Json = nlohmann::json;

/// In the order of the alternatives of Message.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kTypes{
    "register",     "heartbeat",  "suspect",     "promise",      "paused",
    "report",       "ready",      "bye",         "welcome",      "wait",
    "refuse",       "freeze",     "announce",    "farewell",     "fail",
    "status",       "add",        "remove",      "stop",         "status_reply",
    "done",         "spawn",      "job_state",   "check",        "gone",
    "warning",      "enlist",     "enlisted",    "limit",        "expect",
    "limited",      "pardon",     "quarantined", "worker_ended", "announce_change",
    "view_request", "known_view", "dump",        "end_worker"};
constexpr std::array<std::string_view, 4> kFarewells{"done", "removed", "stopped", "evicted"};

/// Shorter texts cost less to send than to compress.
constexpr std::size_t kLeastCompressed = 16 * 1024;

/// A field that may be null may also be missing, as it is where it has nothing to say.
template <typename T>
constexpr bool kMayBeMissing = false;
template <typename T>
constexpr bool kMayBeMissing<std::optional<T>> = true;

struct Bad : std::exception {
  explicit Bad(std::string what) : text(std::move(what)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    object_[name] = to_json(value);
  }
  /// None is left out: most heartbeats have none of some fields.
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) object_[name] = to_json(*value);
  }
  Json take() { return std::move(object_); }

 private:
  template <typename T>
  static Json to_json(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return Json(value);
    } else if constexpr (std::is_enum_v<T>) {
      return Json(std::string(kFarewells.at(static_cast<std::size_t>(value))));
    } else {
      Writer inner;
      fields(inner, value);
      return inner.take();
    }
  }
  template <typename T>
  static Json to_json(const std::shared_ptr<const T>& value) {
    return to_json(*value);
  }
  template <typename T>
  static Json to_json(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(to_json(value));
    return array;
  }

  Json object_ = Json::object();
};

class Reader {
 public:
  Reader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) throw Bad(path_ + " is not an object");
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    const std::string path = path_ + "." + name;
    const auto found = object_.find(name);
    if (found == object_.end()) {
      if constexpr (kMayBeMissing<T>) return value.reset();
      throw Bad(path + " is missing");
    }
    from_json(*found, path, value);
  }

 private:
  static void from_json(const Json& json, const std::string& path, bool& value) {
    if (!json.is_boolean()) throw Bad(path + " is not a truth value");
    value = json.get<bool>();
  }
  static void from_json(const Json& json, const std::string& path, std::string& value) {
    if (!json.is_string()) throw Bad(path + " is not a string");
    value = json.get<std::string>();
  }
  static void from_json(const Json& json, const std::string& path, double& value) {
    if (!json.is_number()) throw Bad(path + " is not a number");
    value = json.get<double>();
  }
  template <std::integral T>
  static void from_json(const Json& json, const std::string& path, T& value) {
    if (!json.is_number_integer()) throw Bad(path + " is not an integer");
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                : std::in_range<T>(json.get<std::int64_t>());
    if (!fits) throw Bad(path + " is out of range: " + json.dump());
    value = json.get<T>();
  }
  static void from_json(const Json& json, const std::string& path, Farewell::Reason& value) {
    std::string text;
    from_json(json, path, text);
    for (std::size_t i = 0; i < kFarewells.size(); ++i) {
      if (kFarewells.at(i) != text) continue;
      value = static_cast<Farewell::Reason>(i);
      return;
    }
    throw Bad(path + " is none of the reasons known");
  }
  template <typename T>
  static void from_json(const Json& json, const std::string& path, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) from_json(json, path, value.emplace());
  }
  template <typename T>
  static void from_json(const Json& json, const std::string& path,
                        std::shared_ptr<const T>& value) {
    T read;
    from_json(json, path, read);
    value = std::make_shared<const T>(std::move(read));
  }
  template <typename T>
  static void from_json(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) throw Bad(path + " is not an array");
    values.clear();
    for (const Json& element : json) {
      const std::string at = path + "[" + std::to_string(values.size()) + "]";
      from_json(element, at, values.emplace_back());
    }
  }
  template <typename T>
  requires std::is_class_v<T>
  static void from_json(const Json& json, const std::string& path, T& value) {
    Reader inner(json, path);
    fields(inner, value);
  }

  const Json& object_;
  std::string path_;
};

/// Before parsing, so that no depth of nesting costs anything.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if ((c == '{' || c == '[') && ++depth > kMaxMessageDepth) return true;
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return false;
}

/// Throws Bad.
Json parse(std::string_view text) {
  if (text.size() > kMaxMessageBytes) {
    throw Bad("has " + std::to_string(text.size()) + " bytes, more than " +
              std::to_string(kMaxMessageBytes));
  }
  if (too_deep(text)) {
    throw Bad("is nested deeper than " + std::to_string(kMaxMessageDepth) + " levels");
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Bad("is not JSON");
  return json;
}

template <typename T>
std::string write(const T& value, std::string_view type) {
  Writer writer;
  fields(writer, value);
  Json json = writer.take();
  if (!type.empty()) json["type"] = type;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <std::size_t kIndex = 0>
Message read(const Json& json, const std::string& type) {
  if constexpr (kIndex < kTypes.size()) {
    if (type != kTypes.at(kIndex)) return read<kIndex + 1>(json, type);
    std::variant_alternative_t<kIndex, Message> message;
    Reader reader(json, type);
    fields(reader, message);
    return message;
  } else {
    throw Bad("has the unknown type '" + type.substr(0, 40) + "'");
  }
}

Status malformed(const char* what, const std::exception& error) {
  return Status(Code::kProtocol, std::string(what) + ": " + error.what());
}

}  // namespace

std::string_view type_of(const Message& message) {
  return kTypes.at(message.index());
}

std::string encode(const Message& message) {
  return std::visit([&](const auto& m) { return write(m, type_of(message)); }, message);
}

std::string pack(const Message& message) {
  std::string text = encode(message);
  return text.size() < kLeastCompressed ? text : compress(text);
}

Result<Message> unpack(std::string_view bytes) {
  if (!is_compressed(bytes)) return decode(bytes);
  const Result<std::string> text = decompress(bytes, kMaxMessageBytes);
  return text.ok() ? decode(text.value()) : text.status();
}

Result<Message> decode(std::string_view text) try {
  const Json json = parse(text);
  std::string type;
  if (!json.is_object()) throw Bad("is not an object");
  const auto found = json.find("type");
  if (found == json.end() || !found->is_string()) throw Bad("has no type");
  return read(json, found->get<std::string>());
} catch (const std::exception& error) {
  return malformed("malformed message", error);
}

std::string encode_greeting(const Greeting& greeting) {
  return write(greeting, "");
}

Result<Greeting> decode_greeting(std::string_view text) try {
  const Json json = parse(text);
  Greeting greeting;
  Reader reader(json, "greeting");
  fields(reader, greeting);
  return greeting;
} catch (const std::exception& error) {
  return malformed("malformed greeting", error);
}

}  // namespace elastic::rendezvous
