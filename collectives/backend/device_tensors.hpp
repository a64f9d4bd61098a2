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

/// A tensor in the memory of a CUDA device, which its caller owns.
struct DeviceTensor {
  DType dtype = DType::kU8;
  std::size_t count = 0;    ///< elements of the input; the kind of call gives those of the result
  std::uint64_t input = 0;  ///< addresses
  std::uint64_t output = 0;
  /// Bytes from the start of a bucket of all tensors to this one.
  std::size_t offset = 0;
  Wire wire{dtype};  ///< type of the elements there
  /// Bytes of memory at `output`. The backend may write the result there as soon as it has it, and
  /// parts of a result in an attempt that fails, but changes no input by that.
  std::size_t room = 0;

  std::size_t bytes() const { return count * size_of(dtype); }  ///< at the addresses
  std::size_t bytes_of_wire() const { return count * size_of(wire.dtype); }
  std::size_t end() const { return offset + bytes_of_wire(); }
  bool is_cast() const { return wire.dtype != dtype; }
};

/// The tensors of a collective, at least one of them on a CUDA device. An allreduce has any number
/// of tensors, other collectives have one. The device has finished computing the inputs, and the
/// program does not change the tensors until they have received a result.
class DeviceTensors {
 public:
  /// The number of the device if all tensors are on one device, otherwise -1.
  virtual int device() const = 0;
  /// The tensors in the order of their offsets, if all are on one device.
  virtual std::span<const DeviceTensor> tensors() const = 0;
  /// Those of all inputs, also where the tensors are not on one device.
  virtual std::size_t bytes() const {
    std::size_t bytes = 0;
    for (const DeviceTensor& tensor : tensors()) bytes += tensor.bytes();
    return bytes;
  }
  /// Copies the inputs to host memory, and sets `payload` up as for tensors in host memory. May be
  /// called in each attempt. kUnavailable: CUDA has failed.
  virtual Status to_host(Payload& payload) = 0;

 protected:
  ~DeviceTensors() = default;
};

/// The result of a collective, in device memory that it owns. It may outlive the backend.
class DeviceResult {
 public:
  virtual ~DeviceResult() = default;
  /// Has the device copy the result to the outputs, which have room for it, and divide it if the
  /// call is an average. \returns the stream on which this is queued; the result must live until
  /// it is done. Null: it is done.
  virtual Result<void*> begin_unpack() = 0;
};

}  // namespace elastic::collectives
