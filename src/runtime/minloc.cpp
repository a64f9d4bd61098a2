#include "elastic/minloc.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype_names.hpp"
#include "base/gathered_calls.hpp"
#include "collectives/kernels/extreme.hpp"
#include "elastic/error.hpp"
#include "runtime/raise.hpp"
#include "runtime/scope_of.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

namespace {

using kernels::Extreme;

/// The call of a member, before the pairs in its block. All members compare those of all, so that
/// an error names the ranks.
struct Header {
  std::uint64_t count;
  std::uint32_t dtype;
  std::uint32_t extreme;
  bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == 16);

const char* name_of(Extreme extreme) {
  return extreme == Extreme::kLeast ? "minloc" : "maxloc";
}

std::string described(const Header& header) {
  return std::string(name_of(static_cast<Extreme>(header.extreme))) + " of " +
         std::to_string(header.count) + " " + dtype_name(static_cast<DType>(header.dtype));
}

/// The header, the indices and the values.
std::vector<std::byte> packed(const Header& header, const TensorView& values,
                              std::span<const std::int64_t> indices) {
  std::vector<std::byte> block(sizeof(header) + indices.size_bytes() + values.bytes());
  std::memcpy(block.data(), &header, sizeof(header));
  if (indices.empty()) return block;
  std::memcpy(block.data() + sizeof(header), indices.data(), indices.size_bytes());
  std::memcpy(block.data() + sizeof(header) + indices.size_bytes(), values.data, values.bytes());
  return block;
}

/// The first rank with another call than rank 0. All members find the same.
std::optional<std::string> find_difference(std::span<const std::byte> blocks,
                                           std::span<const std::size_t> sizes) {
  std::optional<Header> first;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    Header header;
    std::memcpy(&header, blocks.data(), sizeof(header));
    blocks = blocks.subspan(sizes[rank]);
    if (!first) first = header;
    if (header == *first) continue;
    return "rank 0 called " + described(*first) + ", rank " + std::to_string(rank) + " called " +
           described(header);
  }
  return std::nullopt;
}

/// The pairs of the first block become those of the result.
void combine(std::span<const std::byte> blocks, std::size_t block_bytes, Extreme extreme,
             const TensorView& values, std::span<std::int64_t> indices) {
  auto* const into = static_cast<std::byte*>(values.data);
  for (bool is_first = true; !blocks.empty(); blocks = blocks.subspan(block_bytes)) {
    const std::byte* const from = blocks.data() + sizeof(Header);
    if (is_first) {
      std::memcpy(indices.data(), from, indices.size_bytes());
      std::memcpy(into, from + indices.size_bytes(), values.bytes());
    } else {
      kernels::keep_extremes(values.dtype, extreme, {into, std::as_writable_bytes(indices).data()},
                             {from + indices.size_bytes(), from}, values.count);
    }
    is_first = false;
  }
}

void check(Extreme extreme, const TensorView& values, std::span<const std::int64_t> indices) {
  const char* const call = name_of(extreme);
  runtime::check_host(values, call);
  runtime::check_indices(indices, call);
  if (values.count == indices.size()) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(call) + ": there are " + std::to_string(values.count) + " values and " +
                  std::to_string(indices.size()) + " indices; give one index for each value");
}

/// 1. Gather the pairs of all members on all of them: so a death has the rules of an allgather.
/// 2. Each member combines them, in rank order.
Contributors locate(Collectives& members, Extreme extreme, const TensorView& values,
                    std::span<std::int64_t> indices) {
  check(extreme, values, indices);
  const Header header{values.count, static_cast<std::uint32_t>(values.dtype),
                      static_cast<std::uint32_t>(extreme)};
  const std::vector<std::byte> mine = packed(header, values, indices);
  std::optional<std::string> difference;
  Contributors contributors = members.allgather(
      {mine.data(), mine.size(), DType::kU8, {}},
      [&](std::span<const std::byte> blocks, const std::vector<std::size_t>& sizes) {
        difference = find_difference(blocks, sizes);
        if (difference || values.count == 0) return;
        combine(blocks, mine.size(), extreme, values, indices);
      },
      {}, kLocationCall.row);
  if (difference) {
    const Status differs(
        Code::kMismatch,
        *difference + ": give as many values of one type on all members, to one call");
    runtime::raise(runtime::found_at(runtime::ScopeOf::get(members)->where(), differs));
  }
  return contributors;
}

}  // namespace

Contributors minloc(Collectives& members, TensorView values, std::span<std::int64_t> indices) {
  return locate(members, Extreme::kLeast, values, indices);
}

Contributors maxloc(Collectives& members, TensorView values, std::span<std::int64_t> indices) {
  return locate(members, Extreme::kGreatest, values, indices);
}

}  // namespace elastic
