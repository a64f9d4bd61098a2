#include "tests/gpu/pack_fixture.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/dtype_names.hpp"
#include "collectives/kernels/element_type.hpp"

namespace elastic::gpu {

namespace {

/// Values at which conversions and quotients do something else.
constexpr double kEdges[] = {0.0,    -0.0,    1.0,    -1.0,     65504.0,    65519.0,    65520.0,
                             1e-8,   5.97e-8, 6.1e-5, -6.09e-5, 3.0e38,     3.39e38,    1.2e-38,
                             -1e-45, 3.4e39,  1e300,  1e-310,   1.00390625, 1.01171875, 0.33333,
                             2049.0, -2051.0, 255.5,  1e9,      -7.0};

template <typename T>
T edge(std::size_t index) {
  constexpr std::size_t kCount = std::size(kEdges);
  const std::size_t which = index % (kCount + 2);
  const double value = which < kCount    ? kEdges[which]
                       : which == kCount ? -std::numeric_limits<double>::infinity()
                                         : -std::numeric_limits<double>::quiet_NaN();
  if constexpr (std::is_integral_v<T>) {
    return index % 2 == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(static_cast<float>(value));
  }
}

std::size_t first_difference(const std::vector<std::byte>& left,
                             const std::vector<std::byte>& right) {
  return static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
}

void expect_same(const std::vector<std::byte>& is, const std::vector<std::byte>& should,
                 const char* what) {
  if (is == should) return;
  const std::size_t at = first_difference(is, should);
  ADD_FAILURE() << "byte " << at << " of the memory of the " << what << " is "
                << std::to_integer<int>(is[at]) << " and should be "
                << std::to_integer<int>(should[at]);
}

}  // namespace

std::vector<std::byte> Draw::bytes_of(DType dtype, std::size_t bytes) {
  std::vector<std::byte> content(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random_();
    std::memcpy(content.data() + at, &word, std::min(sizeof(word), bytes - at));
  }
  kernels::with_element_of(dtype, [&](auto element) {
    using T = decltype(element);
    for (std::size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T) * (1 + below(4))) {
      const T value = edge<T>(below(1000));
      std::memcpy(content.data() + at, &value, sizeof(T));
    }
  });
  return content;
}

PackCase Draw::place(PackTypes types, Direction direction, const std::vector<std::size_t>& counts,
                     bool aligned) {
  PackCase one;
  one.direction = direction;
  one.tensor_dtype = types.tensor;
  one.bucket_dtype = types.bucket;
  const std::size_t tensor_size = size_of(types.tensor);
  const std::size_t bucket_size = size_of(types.bucket);
  const auto gap = [&](std::size_t size) {
    const std::size_t bytes = below(40);
    return one_in(5) ? bytes : bytes / size * size;
  };
  std::size_t elements = 0;
  for (const std::size_t count : counts) {
    one.tensor_bytes += aligned ? (256 - one.tensor_bytes % 256) : gap(tensor_size);
    one.tensors.push_back({one.tensor_bytes, count});
    one.tensor_bytes += count * tensor_size;
    elements += count;
  }
  one.bucket_offset = aligned ? 256 : gap(bucket_size);
  one.tensor_bytes += 64;
  one.bucket_bytes = one.bucket_offset + elements * bucket_size + 64;
  return one;
}

Scale Draw::scale(DType dtype) {
  constexpr std::uint32_t kDivisors[] = {1, 2, 3, 7, 8, 100, 255, 256, 65537, 4294967295U};
  Scale scale;
  scale.divisor = kDivisors[below(std::size(kDivisors))];
  const bool is_float =
      dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
  if (is_float && one_in(2)) scale.factor = one_in(2) ? 1024.0 : 1.0 / 3.0;
  return one_in(3) ? Scale{} : scale;
}

OnDevice::OnDevice(const PackCase& one, Draw& draw)
    : case_(one), tensors_(one.tensor_bytes), bucket_(one.bucket_bytes) {
  fill(draw);
  for (const PackCase::Place& place : one.tensors) {
    ranges_.push_back({tensors_.data() + place.offset, place.count});
  }
}

void OnDevice::fill(Draw& draw) {
  tensors_before_ = draw.bytes_of(case_.tensor_dtype, case_.tensor_bytes);
  bucket_before_ = draw.bytes_of(case_.bucket_dtype, case_.bucket_bytes);
  tensors_.write(tensors_before_);
  bucket_.write(bucket_before_);
}

PackRequest OnDevice::request() const {
  PackRequest request;
  request.direction = case_.direction;
  request.tensor_dtype = case_.tensor_dtype;
  request.bucket_dtype = case_.bucket_dtype;
  request.scale = case_.scale;
  request.tensors = ranges_;
  request.bucket = bucket_.data() + case_.bucket_offset;
  return request;
}

void OnDevice::expect_done() const {
  std::vector<std::byte> tensors = tensors_before_;
  std::vector<std::byte> bucket = bucket_before_;
  pack_on_host(case_, tensors, bucket);
  expect_same(tensors_.read(), tensors, "tensors");
  expect_same(bucket_.read(), bucket, "bucket");
}

}  // namespace elastic::gpu
