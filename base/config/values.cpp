#include "base/config/values.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/backend_names.hpp"
#include "base/network_choice.hpp"
#include "base/port_range.hpp"
#include "elastic/compression.hpp"

namespace elastic {

namespace {

constexpr std::int64_t kDayMs = 86400000;

template <typename T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A number with a suffix K, M or G, powers of 1024, or without.
std::optional<std::size_t> parse_bytes(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto suffix = std::string_view("KMG").find(text.back());
  unsigned shift = 0;
  if (suffix != std::string_view::npos) {
    shift = 10U * static_cast<unsigned>(suffix + 1);
    text.remove_suffix(1);
  }
  const auto parsed = parse<std::size_t>(text);
  if (!parsed || *parsed > (std::numeric_limits<std::size_t>::max() >> shift)) return std::nullopt;
  return *parsed << shift;
}

/// Text of which `is_allowed` takes some.
Values some_text(std::string Options::*field, std::string allowed,
                 std::function<bool(const std::string&)> is_allowed) {
  return {
      .allowed = std::move(allowed),
      .unit = {},
      .set =
          [field, is_allowed = std::move(is_allowed)](Options& options, const std::string& text) {
            if (!is_allowed(text)) return false;
            options.*field = text;
            return true;
          },
      .get = [field](const Options& options) { return options.*field; }};
}

}  // namespace

std::string one_of(std::span<const std::string_view> names) {
  std::string list = "one of";
  for (const std::string_view name : names) list += " " + std::string(name);
  return list;
}

Values any_text(std::string Options::*field, std::string form) {
  return some_text(field, std::move(form), [](const std::string&) { return true; });
}

Values backend_name(std::string Options::*field) {
  return some_text(field, one_of(kBackendNames), [](const std::string& text) {
    return std::find(kBackendNames.begin(), kBackendNames.end(), text) != kBackendNames.end();
  });
}

Values compression_form(std::string Options::*field) {
  return some_text(field, std::string(kCompressionForms),
                   [](const std::string& text) { return find_compression(text).has_value(); });
}

Values network_list(std::string Options::*field) {
  return some_text(
      field,
      "networks, addresses and interfaces of this host, such as 10.0.0.0/16 or "
      "eth0,eth1",
      [](const std::string& text) { return text.empty() || NetworkChoice::parse(text).ok(); });
}

Values port_range(std::string Options::*field) {
  return some_text(field, "FIRST-LAST, ports from 1 to 65535, such as 40000-40099",
                   [](const std::string& text) { return PortRange::parse(text).ok(); });
}

Values whole_number(int Options::*field, int least, int most, std::string unit) {
  return {.allowed = "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
          .unit = std::move(unit),
          .set =
              [=](Options& options, const std::string& text) {
                const auto parsed = parse<int>(text);
                if (!parsed || *parsed < least || *parsed > most) return false;
                options.*field = *parsed;
                return true;
              },
          .get = [field](const Options& options) { return std::to_string(options.*field); }};
}

Values flag(bool Options::*field) {
  return {.allowed = "0 or 1",
          .unit = {},
          .set =
              [field](Options& options, const std::string& text) {
                if (text != "0" && text != "1") return false;
                options.*field = text == "1";
                return true;
              },
          .get = [field](const Options& options) { return options.*field ? "1" : "0"; }};
}

Values byte_count(std::size_t Options::*field, std::size_t least, std::size_t most,
                  std::size_t multiple) {
  return {.allowed = "a number of bytes from " + std::to_string(least) + " to " +
                     std::to_string(most) + ", such as 65536, 64K or 1M" +
                     (multiple > 1 ? ", a multiple of " + std::to_string(multiple) : ""),
          .unit = "bytes",
          .set =
              [=](Options& options, const std::string& text) {
                const auto parsed = parse_bytes(text);
                if (!parsed || *parsed < least || *parsed > most || *parsed % multiple != 0) {
                  return false;
                }
                options.*field = *parsed;
                return true;
              },
          .get = [field](const Options& options) { return std::to_string(options.*field); }};
}

Values milliseconds(std::chrono::milliseconds Options::*field, std::int64_t least) {
  return {
      .allowed = "milliseconds from " + std::to_string(least) + " to " + std::to_string(kDayMs) +
                 " (a day)",
      .unit = "ms",
      .set =
          [=](Options& options, const std::string& text) {
            const auto parsed = parse<std::int64_t>(text);
            if (!parsed || *parsed < least || *parsed > kDayMs) return false;
            options.*field = std::chrono::milliseconds(*parsed);
            return true;
          },
      .get = [field](const Options& options) { return std::to_string((options.*field).count()); }};
}

}  // namespace elastic
