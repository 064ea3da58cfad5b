#include "purine/session/variables.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/core/random.h"
#include "purine/runtime/cpu_workers.h"

namespace purine {
namespace {

/// Calls a function by as many threads as there are cores, but no more than so much work is worth.
void on_all_cores(std::size_t bytes, std::size_t bytes_a_thread, const std::function<void(int, int)>& work) {
  const std::size_t cores = CpuWorkers::available_cores().size();
  const int threads = static_cast<int>(std::clamp<std::size_t>(bytes / bytes_a_thread, 1, cores));
  if (threads == 1) return work(0, 1);
  const CpuWorkers workers(threads, false, [&](int thread) { work(thread, threads); });
}

/// The system gives memory, cleared, when it is first written, which takes up to a second a gigabyte.
void clear(std::byte* memory, std::size_t bytes) {
  on_all_cores(bytes, std::size_t{64} << 20U, [=](int thread, int threads) {
    const auto boundary = [=](int of) {
      return bytes / static_cast<std::size_t>(threads) * static_cast<std::size_t>(of);
    };
    const std::size_t end = thread + 1 == threads ? bytes : boundary(thread + 1);
    std::memset(memory + boundary(thread), 0, end - boundary(thread));
  });
}

/// A variable that is about to get its initial values.
struct NewVariable {
  std::string path;
  Variables::Entry entry;
  std::unique_ptr<Kernel> kernel;
};

/// A part of that.
struct Initialisation {
  const NewVariable* variable = nullptr;
  int part = 0;
  std::exception_ptr error = nullptr;

  void run() {
    try {
      const AlignedBuffer scratch(variable->kernel->scratch_bytes());
      const std::array<std::byte*, 1> pointers = {variable->entry.buffer.data()};
      variable->kernel->run({{}, pointers, scratch.data(), 0, part});
    } catch (...) {
      error = std::current_exception();
    }
  }
};

}  // namespace

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
  clear(memory, bytes);
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
  std::vector<NewVariable> made;
  std::size_t bytes = 0;
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
    const std::array<TensorInfo, 1> outputs = {variable.info()};
    const std::array<Layout, 1> layouts = {Layout::plain};
    made.push_back(
        {path,
         {variable.info(), AlignedBuffer(variable.info().bytes())},
         kernels.bind(
             {variable.initial(), {}, outputs, {}, layouts, seed, hash_text(logical_path(path)), path})});
    bytes += variable.info().bytes();
  }
  std::vector<Initialisation> parts;
  for (const NewVariable& variable : made) {
    for (int part = 0; part < variable.kernel->parts(); ++part) parts.push_back({&variable, part});
  }
  std::atomic<std::size_t> next = 0;
  on_all_cores(bytes, std::size_t{4} << 20U, [&](int, int) {
    for (std::size_t i = next++; i < parts.size(); i = next++) parts[i].run();
  });
  for (const Initialisation& part : parts) {
    if (part.error != nullptr) std::rethrow_exception(part.error);
  }
  for (NewVariable& variable : made) entries_.emplace(std::move(variable.path), std::move(variable.entry));
}

}  // namespace purine
