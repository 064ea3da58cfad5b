// The storage of variables, which outlives programs and may serve several.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/shape.h"
#include "purine/graph/graph.h"
#include "purine/io/host_tensor.h"
#include "purine/program/kernel.h"

namespace purine {

/// Zeroed memory aligned to 64 bytes; large blocks use huge pages where the system offers them. Throws Error
/// if there is none.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// Variables by path. A training and an evaluation session share one, and so work on the same weights.
class Variables {
 public:
  struct Entry {
    TensorInfo info;
    AlignedBuffer buffer;

    std::span<std::byte> bytes() const { return {buffer.data(), info.bytes()}; }
  };

  bool has(std::string_view path) const;
  /// A variable that exists; throws Error naming the nearest path otherwise.
  const Entry& at(std::string_view path) const;
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// The values of all variables, sorted by path: what io::save_safetensors takes.
  std::vector<io::HostTensor> values() const;
  /// Makes the graph's variables at a rank that don't exist yet and gives them their initial values, each
  /// from the random stream of its logical path. One that exists must have the graph's info.
  void create(Graph& graph, const KernelRegistry& kernels, std::uint64_t seed, std::int32_t rank = 0);

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace purine
