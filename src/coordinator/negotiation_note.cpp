#include "coordinator/negotiation_note.hpp"

#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

namespace elastic::coordinator {
namespace {

// A note is a version byte and items; an item is the index of its type in NoteItem, then its
// members. Numbers are LEB128 (base 128, low digits first, the high bit set in all bytes but the
// last). Strings and lists are preceded by their length.
constexpr std::uint8_t kVersion = 4;
/// Bounds the memory that a malformed note takes.
constexpr std::size_t kMaxRanks = 1'000'000;
constexpr std::size_t kMaxTextBytes = 16 * 1024;
constexpr auto kLastDType = static_cast<std::uint8_t>(kDTypes.back());
/// In the byte of a request's op: the two factors of its scale follow.
constexpr unsigned kScaled = 0x80;
constexpr Scale kUnscaled(1, 1);
constexpr auto kLastOp = static_cast<std::uint8_t>(kReduceOps.back());

class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  void byte(std::uint8_t value) { bytes_.push_back(std::byte{value}); }
  void number(std::uint64_t value) {
    for (; value >= 128; value >>= 7) byte(static_cast<std::uint8_t>((value & 127) | 128));
    byte(static_cast<std::uint8_t>(value));
  }
  void text(std::string_view value) {
    number(value.size());
    const auto* first = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), first, first + value.size());
  }
  /// 8 bytes, the lowest first.
  void real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) byte(static_cast<std::uint8_t>(bits >> shift));
  }
  void request(const TensorRequest& value) {
    text(value.name);
    byte(value.kind);
    const bool scaled = !(value.scale == kUnscaled);
    byte(static_cast<std::uint8_t>(static_cast<unsigned>(value.op) | (scaled ? kScaled : 0U)));
    if (scaled) {
      real(value.scale.before());
      real(value.scale.after());
    }
    number(value.tensors.size());
    for (const TensorShape& tensor : value.tensors) {
      byte(static_cast<std::uint8_t>(tensor.dtype));
      number(tensor.count);
    }
  }

  void call(const GroupRequest& value) {
    request(value.request);
    number(value.ranks.size());
    int last = -1;
    for (const int rank : value.ranks)
      number(static_cast<std::uint64_t>(rank - std::exchange(last, rank)));
  }

  void operator()(const SubmitByName& item) { request(item.request); }
  void operator()(const BucketReady& item) { number(item.bucket); }
  void operator()(const Dissolve& item) { number(item.bucket); }
  void operator()(const Define& item) {
    number(item.bucket);
    number(item.requests.size());
    for (const TensorRequest& one : item.requests) request(one);
  }
  void operator()(const Run& item) { number(item.bucket); }
  void operator()(const Blocked& /*item*/) {}
  void operator()(const Mismatch& item) {
    text(item.name);
    text(std::string_view(item.text).substr(0, kMaxTextBytes));
  }
  void operator()(const SubmitToGroup& item) { call(item.call); }
  void operator()(const RunInGroup& item) {
    call(item.call);
    text(std::string_view(item.mismatch).substr(0, kMaxTextBytes));
  }
  void operator()(const Joined& item) { number(item.position); }
  void operator()(const EndJoin& item) { number(static_cast<std::uint64_t>(item.last)); }

 private:
  std::vector<std::byte>& bytes_;
};

/// Decodes up to the first fault; from then on every read fails, so that callers check once per
/// item.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : all_(bytes), rest_(bytes) {}

  bool more() const { return fault_.empty() && !rest_.empty(); }
  bool failed() const { return !fault_.empty(); }
  Status status() const {
    if (fault_.empty()) return {};
    return Status(Code::kProtocol, "a note of " + std::to_string(all_.size()) +
                                       " bytes is malformed at byte " +
                                       std::to_string(all_.size() - rest_.size()) + ": " + fault_);
  }

  std::uint8_t byte() {
    if (failed()) return 0;
    if (rest_.empty()) {
      fail("it ends too early");
      return 0;
    }
    const auto value = std::to_integer<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !failed(); shift += 7) {
      const std::uint8_t digit = byte();
      if (shift == 63 && digit > 1) {
        fail("a number has more than 64 bits");
        break;
      }
      value |= static_cast<std::uint64_t>(digit & 127) << shift;
      if (digit < 128) break;
    }
    return failed() ? 0 : value;
  }
  /// Reads the length of a list with entries of `least` bytes or more. A length that the note
  /// cannot hold is a fault, so none is ever allocated.
  std::size_t length(std::size_t most, std::size_t least) {
    const std::uint64_t value = number();
    if (failed()) return 0;
    if (value > most || value > rest_.size() / least) {
      fail("a length of " + std::to_string(value) + " is out of bounds");
      return 0;
    }
    return static_cast<std::size_t>(value);
  }
  std::string text(std::size_t most) {
    const std::size_t size = length(most, 1);
    std::string value(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  std::uint64_t bucket() {
    const std::uint64_t id = number();
    if (!failed() && id == 0) fail("0 is not the id of a bucket");
    return id;
  }
  double real() {
    std::uint64_t bits = 0;
    for (unsigned shift = 0; shift < 64; shift += 8) bits |= std::uint64_t{byte()} << shift;
    return std::bit_cast<double>(bits);
  }
  TensorRequest request() {
    TensorRequest value;
    value.name = text(kMaxNameBytes);
    value.kind = byte();
    const std::uint8_t op = byte();
    value.op = static_cast<ReduceOp>(
        enumerator(static_cast<std::uint8_t>(op & ~kScaled), kLastOp, "reduction"));
    if ((op & kScaled) != 0) {
      const double before = real();
      value.scale = Scale(before, real());
    }
    value.tensors.resize(length(kMaxTensorsInGroup, 2));
    for (TensorShape& tensor : value.tensors) {
      tensor.dtype = static_cast<DType>(enumerator(byte(), kLastDType, "element type"));
      tensor.count = number();
    }
    if (!failed()) {
      if (const Status valid = validate(value); !valid.ok()) fail(valid.message());
    }
    return value;
  }
  /// Ranks are written as the distances between them.
  GroupRequest call() {
    GroupRequest value;
    value.request = request();
    const std::size_t size = length(kMaxRanks, 1);
    if (!failed() && size == 0) fail("a group has no ranks");
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < size && !failed(); ++i) {
      const std::uint64_t step = number();
      if (step == 0 || step > kMaxRanks || last + step > kMaxRanks) {
        fail("the ranks of a group do not ascend, or are too many");
        break;
      }
      last += step;
      value.ranks.push_back(static_cast<int>(last) - 1);
    }
    return value;
  }
  int rank() {
    const std::uint64_t value = number();
    if (!failed() && value >= kMaxRanks) fail(std::to_string(value) + " is no rank");
    return failed() ? 0 : static_cast<int>(value);
  }
  NoteItem item();

 private:
  void fail(std::string what) { fault_ = std::move(what); }
  std::uint8_t enumerator(std::uint8_t value, std::uint8_t last, const char* what) {
    if (value <= last) return value;
    fail(std::string("there is no ") + what + " " + std::to_string(value));
    return 0;
  }

  std::span<const std::byte> all_;
  std::span<const std::byte> rest_;
  std::string fault_;
};

NoteItem Decoder::item() {
  const std::uint8_t type = byte();
  switch (type) {
    case 0:
      return SubmitByName{request()};
    case 1:
      return BucketReady{bucket()};
    case 2:
      return Dissolve{bucket()};
    case 3: {
      Define define{bucket(), {}};
      const std::size_t size = length(NoteWriter::kMaxNoteBytes, 6);
      if (!failed() && size == 0) fail("a bucket is defined as empty");
      for (std::size_t i = 0; i < size && !failed(); ++i) define.requests.push_back(request());
      return define;
    }
    case 4:
      return Run{bucket()};
    case 5: {
      Mismatch mismatch;
      mismatch.name = text(kMaxNameBytes);
      mismatch.text = text(kMaxTextBytes);
      return mismatch;
    }
    case 6:
      return Blocked{};
    case 7:
      return SubmitToGroup{call()};
    case 8: {
      RunInGroup run{call(), {}};
      run.mismatch = text(kMaxTextBytes);
      return run;
    }
    case 9:
      return Joined{number()};
    case 10:
      return EndJoin{rank()};
    default:
      if (!failed()) fail("there is no item of type " + std::to_string(type));
      return BucketReady{};
  }
}

}  // namespace

void NoteWriter::add(const NoteItem& item) {
  if (notes_.empty() || notes_.back().size() >= kFullNoteBytes) {
    notes_.push_back({std::byte{kVersion}});
  }
  Encoder encoder(notes_.back());
  encoder.byte(static_cast<std::uint8_t>(item.index()));
  std::visit(encoder, item);
}

std::vector<std::vector<std::byte>> NoteWriter::take() {
  return std::exchange(notes_, {});
}

Result<std::vector<NoteItem>> read_note(std::span<const std::byte> note) {
  if (note.empty()) return Status(Code::kProtocol, "a note is empty");
  if (note.size() > NoteWriter::kMaxNoteBytes) {
    return Status(Code::kProtocol, "a note has " + std::to_string(note.size()) +
                                       " bytes; at most " +
                                       std::to_string(NoteWriter::kMaxNoteBytes) + " are possible");
  }
  Decoder decoder(note);
  const std::uint8_t version = decoder.byte();
  if (version != kVersion) {
    return Status(Code::kProtocol, "a note has version " + std::to_string(version) +
                                       ", and this worker speaks " + std::to_string(kVersion));
  }
  std::vector<NoteItem> items;
  while (decoder.more()) items.push_back(decoder.item());
  if (decoder.failed()) return decoder.status();
  return items;
}

}  // namespace elastic::coordinator
