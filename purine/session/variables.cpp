#include "purine/session/variables.h"

#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "purine/core/error.h"
#include "purine/core/random.h"

namespace purine {

void AlignedBuffer::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  constexpr std::size_t huge_page = std::size_t{2} << 20U;
  const std::size_t alignment = bytes >= huge_page ? huge_page : 64;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (memory == nullptr) {
    throw Error("memory", std::to_string(bytes) + " bytes can't be had", "use a smaller batch or model");
  }
  data_.reset(memory);
  if (alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
}

bool Variables::has(std::string_view path) const {
  return entries_.find(path) != entries_.end();
}

const Variables::Entry& Variables::at(std::string_view path) const {
  const auto found = entries_.find(path);
  if (found != entries_.end()) return found->second;
  std::string hint = "there are no variables";
  if (!entries_.empty()) {
    auto near = entries_.lower_bound(path);
    if (near == entries_.end()) --near;
    hint = "one near it is " + near->first;
  }
  throw Error("variables", "there is no variable " + std::string(path), hint);
}

std::vector<io::HostTensor> Variables::values() const {
  std::vector<io::HostTensor> tensors;
  for (const auto& [path, entry] : entries_) {
    const std::span<const std::byte> bytes = entry.bytes();
    tensors.push_back({path, entry.info, {bytes.begin(), bytes.end()}});
  }
  return tensors;
}

void Variables::create(Graph& graph, const KernelRegistry& kernels, std::uint64_t seed, std::int32_t rank) {
  for (const Variable variable : graph.variables()) {
    if (variable.location().rank != rank) continue;
    const std::string path = variable.path();
    if (const auto found = entries_.find(path); found != entries_.end()) {
      if (!(found->second.info == variable.info())) {
        throw Error(
            "variables",
            "the graph's is " + variable.info().text() + ", the stored one is " + found->second.info.text(),
            "two sessions share variables only for the same model")
            .at(path);
      }
      continue;
    }
    Entry entry{variable.info(), AlignedBuffer(variable.info().bytes())};
    const std::array<TensorInfo, 1> outputs = {variable.info()};
    const std::array<Layout, 1> layouts = {Layout::plain};
    const std::unique_ptr<Kernel> kernel = kernels.bind(
        {variable.initial(), {}, outputs, {}, layouts, seed, hash_text(logical_path(path)), path});
    const AlignedBuffer scratch(kernel->scratch_bytes());
    const std::array<std::byte*, 1> pointers = {entry.buffer.data()};
    for (int part = 0; part < kernel->parts(); ++part) kernel->run({{}, pointers, scratch.data(), 0, part});
    entries_.emplace(path, std::move(entry));
  }
}

}  // namespace purine
