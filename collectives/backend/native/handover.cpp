#include "collectives/backend/native/handover.hpp"

#include <array>
#include <bit>
#include <string>
#include <vector>

namespace elastic::collectives {
namespace {

using transport::Link;
using transport::Mesh;

static_assert(std::endian::native == std::endian::little, "the descriptor is sent as it lies");

/// The first message of a parcel. Three messages follow: error, counts, data. A result that is of
/// use to its own rank only stays there: the taker has its own.
struct Descriptor {
  transport::Fingerprint fingerprint;
  std::uint64_t error_bytes = 0;
  std::uint64_t counts = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t own_block_complete = 0;
};
constexpr std::size_t kMessages = 4;
constexpr std::uint64_t kMaxError = 1U << 20;
constexpr std::uint64_t kMaxCounts = 1'000'000;
constexpr std::uint64_t kMaxData = std::uint64_t{1} << 40;

template <typename T>
std::span<std::byte> bytes_of(std::span<T> values) {
  return std::as_writable_bytes(values);
}

/// Receives one parcel over one link.
class Taker {
 public:
  Taker(Link& link, Backend::Parcel& parcel) : link_(link), parcel_(parcel) {
    link_.receive({bytes_of(std::span(&descriptor_, 1)), {}});
  }

  /// True when the parcel is complete or was refused.
  bool advance() {
    if (!described_ && link_.received() >= 1) {
      described_ = true;
      if (acceptable()) expect_content();
    }
    return refused_ || link_.received() == kMessages;
  }
  Status status(int holder) const {
    if (!refused_) return {};
    return Status(Code::kProtocol,
                  "rank " + std::to_string(holder) + " hands over a result of impossible size (" +
                      std::to_string(descriptor_.data_bytes) + " bytes, " +
                      std::to_string(descriptor_.counts) + " counts)",
                  holder);
  }

 private:
  bool acceptable() {
    refused_ = descriptor_.error_bytes > kMaxError || descriptor_.counts > kMaxCounts ||
               descriptor_.data_bytes > kMaxData;
    return !refused_;
  }
  void expect_content() {
    parcel_.fingerprint = descriptor_.fingerprint;
    parcel_.error.resize(descriptor_.error_bytes);
    parcel_.payload.data.resize(descriptor_.data_bytes);
    std::span<std::uint64_t> counts;
    if (descriptor_.counts > 0 || descriptor_.own_block_complete != 0) {
      Blocks& blocks = parcel_.payload.form.emplace<Blocks>();
      blocks.counts.resize(descriptor_.counts);
      blocks.own_block_complete = descriptor_.own_block_complete != 0;
      counts = blocks.counts;
    }
    link_.receive({bytes_of(std::span(parcel_.error)), {}});
    link_.receive({bytes_of(counts), {}});
    link_.receive({parcel_.payload.data.bytes(), {}});
  }

  Link& link_;
  Backend::Parcel& parcel_;
  Descriptor descriptor_;
  bool described_ = false;
  bool refused_ = false;
};

std::span<const std::byte> shared_data(const Backend::Parcel& parcel) {
  return parcel.payload.stays_here() ? std::span<const std::byte>() : parcel.payload.data.bytes();
}

Descriptor describe(const Backend::Parcel& parcel) {
  return {parcel.fingerprint, parcel.error.size(), parcel.payload.counts().size(),
          shared_data(parcel).size(), parcel.payload.own_block_complete() ? 1U : 0U};
}

void send_parcel(Link& link, const Descriptor& descriptor, const Backend::Parcel& parcel) {
  link.send(std::as_bytes(std::span(&descriptor, 1)));
  link.send(std::as_bytes(std::span(parcel.error)));
  link.send(std::as_bytes(parcel.payload.counts()));
  link.send(shared_data(parcel));
}

}  // namespace

std::vector<int> peers_in(const Backend::HandoverPairs& pairs, int rank) {
  std::vector<int> peers;
  for (std::size_t i = 0; i < pairs.senders.size(); ++i) {
    if (pairs.senders[i] == rank) peers.push_back(pairs.takers[i]);
    if (pairs.takers[i] == rank) peers.push_back(pairs.senders[i]);
  }
  return peers;
}

/// A holder sends four messages to each of its takers: the descriptor with all sizes, then error,
/// counts and data. A taker receives the descriptor first, refuses impossible sizes before it
/// allocates memory, and then receives the other three.
Status hand_over_parcel(Mesh& mesh, const Backend::HandoverPairs& pairs, Backend::Parcel& parcel) {
  // One message carries the data, so it has to be contiguous.
  parcel.payload.make_contiguous();
  const Descriptor descriptor = describe(parcel);
  std::vector<Link*> taker_links;
  int holder = -1;
  for (std::size_t i = 0; i < pairs.senders.size(); ++i) {
    if (pairs.senders[i] == mesh.rank()) {
      taker_links.push_back(&mesh.link(pairs.takers[i]));
      send_parcel(*taker_links.back(), descriptor, parcel);
    } else if (pairs.takers[i] == mesh.rank()) {
      holder = pairs.senders[i];
    }
  }
  const auto all_sent = [&taker_links] {
    for (const Link* link : taker_links) {
      if (link->sent() < kMessages) return false;
    }
    return true;
  };
  if (holder < 0) return mesh.run_until(all_sent);
  Taker taker(mesh.link(holder), parcel);
  const Status status = mesh.run_until([&] { return taker.advance() && all_sent(); });
  return status.ok() ? taker.status(holder) : status;
}

}  // namespace elastic::collectives
