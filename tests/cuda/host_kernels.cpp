#include "cuda/host_kernels.hpp"

#include <algorithm>

#include "collectives/kernels/device/codec/steps.hpp"

namespace elastic::testing {

namespace {

using namespace kernels::codec;

template <class Step>
void for_each(std::uint64_t count, const Step& step) {
  for (std::uint64_t at = 0; at < count; ++at) step(at);
}

void run(const EncodeHalf& p) {
  with_types(p, [&]<typename T, typename Half>(T, Half) {
    for_each(p.count, [&](std::uint64_t at) { encode_half<T, Half>(p, at); });
  });
}

void run(const DecodeHalf& p) {
  with_types(p, [&]<typename T, typename Half>(T, Half) {
    for_each(p.count, [&](std::uint64_t at) { decode_half<T, Half>(p, at); });
  });
}

void run(const Divide& p) {
  for_each(p.count,
           [&](std::uint64_t at) { p.is_double ? divide<double>(p, at) : divide<float>(p, at); });
}

void run(const EncodeInt8& p) {
  for (std::uint64_t block = 0; block < blocks_of(p.count, p.block); ++block) {
    const std::uint64_t first = block * p.block;
    const std::uint64_t end = std::min<std::uint64_t>(first + p.block, p.count);
    std::uint32_t most = 0;
    for (std::uint64_t at = first; at < end; ++at) {
      most = std::max(most, magnitude_bits(p.values[at]));
    }
    const float scale = int8_scale(most);
    write_int8_scale(p, block, scale);
    for (std::uint64_t at = first; at < end; ++at) encode_int8(p, at, scale);
  }
}

void begin_top_k(const EncodeTopK& p) {
  std::ranges::fill(p.selection->counts, 0U);
  p.selection->least = 0;
  p.selection->left = p.sent;
}

void count_digits(const EncodeTopK& p) {
  for_each(p.count, [&](std::uint64_t at) {
    const std::uint32_t magnitude = magnitude_bits(p.values[at]);
    if (may_be_least(magnitude, p.selection->least, p.pass)) {
      ++p.selection->counts[digit_of(magnitude, p.pass)];
    }
  });
}

Chosen sum_of(Chosen a, Chosen b) {
  return {a.above + b.above, a.equal + b.equal};
}

/// Calls `with` with the first and the end of each run of a part.
template <class With>
void for_each_run(const EncodeTopK& p, std::uint64_t part, const With& with) {
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    const std::uint64_t first = part * kPart + thread * kRun;
    with(first, end_of_run(first, p.count));
  }
}

void count_parts(const EncodeTopK& p) {
  for_each(parts_of(p.count), [&](std::uint64_t part) {
    p.parts[part] = {0, 0};
    for_each_run(p, part, [&](std::uint64_t first, std::uint64_t end) {
      p.parts[part] = sum_of(p.parts[part], count_chosen(p.values, first, end, p.selection->least));
    });
  });
}

void place_parts(const EncodeTopK& p) {
  Chosen before{0, 0};
  for_each(parts_of(p.count), [&](std::uint64_t part) {
    const Chosen mine = p.parts[part];
    p.parts[part] = before;
    before = sum_of(before, mine);
  });
}

void write_parts(const EncodeTopK& p) {
  for_each(parts_of(p.count), [&](std::uint64_t part) {
    Chosen before = p.parts[part];
    for_each_run(p, part, [&](std::uint64_t first, std::uint64_t end) {
      const Chosen mine = count_chosen(p.values, first, end, p.selection->least);
      write_chosen(p.values, p.momentum, first, end, *p.selection, before, p.sent, p.bytes);
      before = sum_of(before, mine);
    });
  });
}

}  // namespace

void run_on_host(Kernel kernel, const void* parameters) {
  const auto& top_k = *static_cast<const EncodeTopK*>(parameters);
  switch (kernel) {
    case Kernel::kEncodeHalf:
      return run(*static_cast<const EncodeHalf*>(parameters));
    case Kernel::kDecodeHalf:
      return run(*static_cast<const DecodeHalf*>(parameters));
    case Kernel::kDivide:
      return run(*static_cast<const Divide*>(parameters));
    case Kernel::kStage: {
      const auto& p = *static_cast<const Stage*>(parameters);
      return for_each(p.count, [&](std::uint64_t at) { stage(p, at); });
    }
    case Kernel::kEncodeInt8:
      return run(*static_cast<const EncodeInt8*>(parameters));
    case Kernel::kEncodeWhole: {
      const auto& p = *static_cast<const EncodeWhole*>(parameters);
      return for_each(p.count, [&](std::uint64_t at) { encode_whole(p, at); });
    }
    case Kernel::kBeginTopK:
      return begin_top_k(top_k);
    case Kernel::kCountDigits:
      return count_digits(top_k);
    case Kernel::kTakeDigit:
      take_digit(top_k.selection->counts, top_k.pass, *top_k.selection);
      std::ranges::fill(top_k.selection->counts, 0U);
      return;
    case Kernel::kCountChosen:
      return count_parts(top_k);
    case Kernel::kPlaceParts:
      return place_parts(top_k);
    case Kernel::kWriteChosen:
      return write_parts(top_k);
    case Kernel::kClear: {
      const auto& p = *static_cast<const Clear*>(parameters);
      return for_each(p.count, [&](std::uint64_t at) { clear(p, at); });
    }
    case Kernel::kAddDense: {
      const auto& p = *static_cast<const AddDense*>(parameters);
      return for_each(p.count, [&](std::uint64_t at) { add_dense(p, at); });
    }
    case Kernel::kAddTopK: {
      const auto& p = *static_cast<const AddTopK*>(parameters);
      return for_each(p.sent, [&](std::uint64_t at) { add_top_k(p, at); });
    }
    case Kernel::kRescale: {
      const auto& p = *static_cast<const Rescale*>(parameters);
      return for_each(p.count, [&](std::uint64_t at) { rescale(p, at); });
    }
  }
}

}  // namespace elastic::testing
