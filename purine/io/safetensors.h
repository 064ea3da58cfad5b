// Tensors in files of the safetensors format (https://github.com/huggingface/safetensors, "Format").
//
// A file is: the header's length as 8 bytes, little-endian; the header, JSON padded with spaces to a multiple
// of 8; the tensors' bytes, little-endian and row-major, one after the other without gaps. The header maps
// each name to {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, the offsets counted from the
// end of the header, and `__metadata__` to an object of texts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "purine/io/host_tensor.h"

namespace purine::io {

/// Texts that a file carries beside its tensors.
using Metadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  TensorInfo info;
  std::uint64_t offset = 0;  ///< of its first byte, from the end of the header
};

/// What a file holds, without the tensors' bytes.
struct SafetensorsHeader {
  Metadata metadata;
  std::vector<SafetensorsEntry> entries;  ///< in the order in which they lie in the file
};

struct Safetensors {
  Metadata metadata;
  std::vector<HostTensor> tensors;  ///< in the order in which they lie in the file
};

/// Writes a file, atomically (see AtomicFile). Equal tensors and metadata give equal bytes whatever the order
/// in which they are given: the larger elements lie first, so that every tensor is aligned (i64, f64, f32,
/// i32, u8: the order of the Python package), and equal types are sorted by name. Throws Error for a name
/// that is given twice, is reserved (`__metadata__`) or isn't UTF-8, and for data that doesn't fit its shape.
void save_safetensors(const std::filesystem::path& path, std::span<const HostTensor> tensors,
                      const Metadata& metadata = {});

/// Reads a file whole. Everything is checked: the header's length and text, names, dtypes, shapes, offsets
/// that overlap, leave gaps or lie outside, and the file's length. What is wrong throws Error naming the file
/// and the tensor; nothing is returned by halves. Dtypes: F32, F64, I32, I64, U8.
Safetensors load_safetensors(const std::filesystem::path& path);

/// Reads and checks the header alone.
SafetensorsHeader load_safetensors_header(const std::filesystem::path& path);

}  // namespace purine::io
