#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/backend/wire.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives {

struct Payload;

/// A tensor in the memory of a CUDA device. Not owned.
struct DeviceTensor {
  DType dtype = DType::kU8;
  std::size_t count = 0;    ///< of the input; that of the result depends on the kind of call
  std::uint64_t input = 0;  ///< addresses
  std::uint64_t output = 0;
  /// Where its result lies in the data of a payload that has been gathered, in bytes; there for an
  /// average divided already, or not.
  std::size_t offset = 0;
  bool divided = false;
  Wire wire{dtype};  ///< what it is in that data; other than the tensor's only if not `divided`

  std::size_t bytes() const { return count * size_of(dtype); }  ///< at the addresses
  std::size_t bytes_of_wire() const { return count * size_of(wire.dtype); }
  std::size_t end() const { return offset + bytes_of_wire(); }
  bool is_narrowed() const { return wire.dtype != dtype; }
};

/// The tensors of a collective of which some lie on a CUDA device: of an allreduce any number, of
/// others one. The device has made them, and
/// nobody changes them before a result is brought to them.
class DeviceTensors {
 public:
  /// Where all lie on one device: its number. Otherwise -1.
  virtual int device() const = 0;
  /// Where all lie on one device, they; in the order of their offsets.
  virtual std::span<const DeviceTensor> tensors() const = 0;
  /// Brings the inputs to host memory, and puts them into `payload` as if they had been there all
  /// the time. May be called in each attempt. kUnavailable: CUDA has failed.
  virtual Status to_host(Payload& payload) = 0;

 protected:
  ~DeviceTensors() = default;
};

/// The result of a collective, in memory of a device that is the backend's. Outlives the backend.
class DeviceResult {
 public:
  virtual ~DeviceResult() = default;
  /// Copies it to the outputs, for an average divided, and waits until it is there. They have room
  /// for it.
  virtual Status unpack() = 0;
  /// Copies it to host memory, as the data of a payload that has been gathered.
  virtual Status gather(Buffer& data) = 0;
};

}  // namespace elastic::collectives
